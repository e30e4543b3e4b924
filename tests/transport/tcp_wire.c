/* SPDX-License-Identifier: Apache-2.0
 * Tests how a tcp link reads the bytes of its socket: it finds whole frames however the stream is
 * split, reports one clear error for anything else, and notices a cut wire. Usage:
 * test_transport_tcp_wire [MODE] TEST; MODE is plain (without checksums), aes256gcm or chacha20
 * (encrypted). RING_TEST_LONG: all damages instead of a sample (draw.h), and peers that stay silent
 * for longer. */
#include "draw.h"
#include "named.h"
#include "tcp.h"
#include "traffic.h"

#include <linux/filter.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/** A correct stream of frames 0 … FRAMES-1. */
enum { FRAMES = 40, STREAM_MAX = FRAMES * (TRANSPORT_SEGMENT + 128) };
static unsigned char stream[STREAM_MAX];

static size_t frame_bytes(uint64_t n)
{
    return n % 4 == 3 ? TRANSPORT_SEGMENT - n : scramble(n) % 2000;
}

static bool has_checksums = true;

/* Encrypts the stream as the first bytes that RANK_B sends. @return its new size. */
static size_t encrypt_stream(size_t bytes)
{
    static unsigned char plain[STREAM_MAX];
    tcp_cipher *c = tcp_cipher_new(ends_keys(RANK_B));
    size_t end = 0;
    int pipe[2];
    must(c != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe) == 0);
    memcpy(plain, stream, bytes);
    for (size_t done = 0; done < bytes;) {
        const struct iovec part = {plain + done, bytes - done};
        const ssize_t taken = tcp_cipher_send(c, pipe[0], &part, 1);
        done += taken > 0 ? (size_t)taken : 0;
        const ssize_t got = recv(pipe[1], stream + end, sizeof stream - end, MSG_DONTWAIT);
        end += got > 0 ? (size_t)got : 0;
    }
    tcp_cipher_free(c);
    fd_close(&pipe[0]);
    fd_close(&pipe[1]);
    return end;
}

static size_t write_stream(uint64_t frames)
{
    size_t end = 0;
    memset(stream, 0, sizeof stream);
    for (uint64_t n = 0; n < frames; n++) {
        transport_frame frame = frame_make(n, frame_bytes(n));
        payload_fill(stream + end + sizeof frame, n, frame.ext.bytes);
        tcp_seal(&frame, n, stream + end + sizeof frame, has_checksums);
        memcpy(stream + end, &frame, sizeof frame);
        end += sizeof frame + (frame.ext.bytes + 63) / 64 * 64;
    }
    return ends_keys(RANK_B) != NULL ? encrypt_stream(end) : end;
}

static int raw_socket(const transport_link *l)
{
    return ((const tcp_link *)l)->fd;
}

static void write_raw(const ends *e, const void *bytes, size_t count)
{
    must_ok(fd_write_all(raw_socket(e->b), bytes, count, clock_now() + PATIENCE));
}

/* A pulled payload is not in the buffer, which holds another frame's. */
static bool has_no_payload(transport_link *l)
{
    const transport_frame *frame;
    const void *payload;
    return l->transport->peek(l, &frame, &payload) == RING_OK && payload == NULL;
}

/* Reads frames with peek or pull, depending on @p seed. @return the status that ended it. */
static ring_status read_frames(transport_link *l, uint64_t seed, uint64_t *received)
{
    static unsigned char pulled[TRANSPORT_SEGMENT];
    const transport *t = l->transport;
    const transport_frame *frame;
    const void *payload;
    ring_status status;
    while ((status = t->peek(l, &frame, &payload)) == RING_OK) {
        const uint64_t way = scramble(seed + *received) % 4;
        must((uintptr_t)payload % 64 == 0);
        if (way == 0) {
            status = t->pull(l, pulled);
            must(status != RING_OK || transport_behind(frame) == 0 || has_no_payload(l));
            payload = pulled;
        } else if (way > 1 && payload == NULL && transport_behind(frame) > 0) {
            status = t->peek(l, &frame, &payload);
            if (status == RING_OK && payload == NULL)
                status = RING_IN_PROGRESS;
        }
        if (status != RING_OK)
            return status;
        if (way != 1 && transport_behind(frame) == frame_bytes(*received))
            payload_check(payload, *received, transport_behind(frame));
        t->consume(l);
        ++*received;
    }
    return status;
}

static ring_status read_until_error(transport_link *l, uint64_t seed, uint64_t *received)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    while ((status = read_frames(l, seed, received)) == RING_IN_PROGRESS)
        must(clock_now() < give_up);
    return status;
}

/* The link must break by damage, or by the end of a stream that is too short because of it. */
static void must_broken(ring_status status)
{
    must(status == RING_ERR_SYSTEM || status == RING_ERR_PEER);
}

static void expect_damage(const ends *e, uint64_t seed)
{
    uint64_t received = 0;
    must_be(read_until_error(e->a, seed, &received), RING_ERR_SYSTEM);
    must(strstr(fail_text(), "from rank 42 arrived damaged over tcp") != NULL);
}

/* Each header is wrong in one way. Over tcp no memory is exposed, so references are wrong too. */
static void test_damaged_headers(void)
{
    static const uint8_t flags[] = {0x10, 0x08, FRAME_LONG | FRAME_REF, FRAME_LONG | FRAME_STORED,
                                    FRAME_LONG | 0x08};
    enum { OTHERS = 4, KINDS = OTHERS + sizeof flags };
    for (size_t kind = 0; kind < KINDS; kind++) {
        ends e = ends_open();
        transport_frame frame = kind == 1 ? frame_make_short(0, 0) : frame_make(0, 0);
        frame.length = TRANSPORT_INLINE + (kind == 1);
        frame.ext.bytes = kind == 2 ? TRANSPORT_SEGMENT + 1 : kind == 3 ? UINT64_MAX : 0;
        frame.flags = kind >= OTHERS ? flags[kind - OTHERS] : frame.flags;
        frame.stamp = tcp_stamp(&frame, kind == 0, has_checksums);
        write_raw(&e, &frame, sizeof frame);
        expect_damage(&e, 0);
        ends_close(&e);
    }
}

static ring_status pull_until_error(transport_link *l, uint64_t *received)
{
    static unsigned char pulled[TRANSPORT_SEGMENT];
    const transport_frame *frame;
    const void *payload;
    ring_status status = RING_OK;
    while (status == RING_OK || status == RING_IN_PROGRESS) {
        status = l->transport->peek(l, &frame, &payload);
        if (status == RING_OK)
            status = l->transport->pull(l, pulled);
        if (status == RING_OK) {
            l->transport->consume(l);
            ++*received;
        }
    }
    return status;
}

static void test_lost_byte(void)
{
    const size_t last = write_stream(2), bytes = write_stream(3);
    for (size_t lost = 0; lost < bytes; lost += 61) {
        ends e = ends_open();
        uint64_t received = 0;
        write_raw(&e, stream, lost);
        write_raw(&e, stream + lost + 1, bytes - lost - 1);
        shutdown(raw_socket(e.b), SHUT_WR);
        must_broken(pull_until_error(e.a, &received));
        /* In the last frame only the missing padding tells, after the payload. */
        must(received < 3 || lost >= last);
        ends_close(&e);
    }
}

static void test_end_inside_frame(void)
{
    const size_t bytes = write_stream(1);
    for (size_t cut = 1; cut < bytes; cut += 7) {
        ends e = ends_open();
        uint64_t received = 0;
        write_raw(&e, stream, cut);
        shutdown(raw_socket(e.b), SHUT_WR);
        must_be(read_until_error(e.a, 2, &received), RING_ERR_PEER);
        must(strstr(fail_text(), "rank 42 closed the tcp connection") != NULL);
        must((strstr(fail_text(), "in the middle of a frame") != NULL) == (received == 0));
        ends_close(&e);
    }
}

static void test_random_bytes(void)
{
    static unsigned char noise[20000];
    for (uint64_t seed = 0; seed < 200; seed++) {
        ends e = ends_open();
        payload_fill(noise, seed, sizeof noise);
        write_raw(&e, noise, 64 + scramble(seed) % (sizeof noise - 64));
        expect_damage(&e, seed);
        ends_close(&e);
    }
}

/* Sends good frames up to one whose header has a random byte; the stream ends there. */
static void test_random_header_bytes(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        const uint64_t good = scramble(seed) % 3;
        const size_t start = write_stream(good), bytes = write_stream(good + 1);
        stream[start + scramble(seed + 1) % 64] ^= (unsigned char)(1 + scramble(seed + 2) % 255);
        ends e = ends_open();
        uint64_t received = 0;
        write_raw(&e, stream, bytes);
        shutdown(raw_socket(e.b), SHUT_WR);
        must_broken(read_until_error(e.a, seed, &received));
        must(received >= good);
        ends_close(&e);
    }
}

/* ---- A wire that changes bytes ----------------------------------------------------- */

/* One bit flips, one byte vanishes, or comes twice. @return the bytes of the stream after that. */
static size_t damage(uint64_t seed, size_t bytes)
{
    const size_t at = scramble(seed) % bytes, behind = bytes - at - 1;
    switch (seed % 3) {
    case 0:
        stream[at] ^= (unsigned char)(1 << scramble(seed + 1) % 8);
        return bytes;
    case 1:
        memmove(stream + at, stream + at + 1, behind);
        return bytes - 1;
    default:
        memmove(stream + at + 1, stream + at, behind + 1);
        return bytes + 1;
    }
}

/* All received frames are right; undetected damage can only be in padding. */
static void test_any_damage(void)
{
    enum { TIMES = 10000, SAMPLE = 500, SOME = 6 };
    const uint64_t times = test_is_long() ? TIMES : SAMPLE;
    uint64_t told = 0, drawn = test_seed();
    for (uint64_t i = 0; i < times; i++) {
        const uint64_t seed = test_is_long() ? i : test_draw(&drawn, TIMES);
        ends e = ends_open();
        uint64_t received = 0;
        const size_t bytes = damage(seed, write_stream(SOME));
        write_raw(&e, stream, bytes);
        shutdown(raw_socket(e.b), SHUT_WR);
        must_broken(read_until_error(e.a, seed, &received));
        told += received < SOME;
        must(received == SOME || strstr(fail_text(), "damaged") != NULL ||
             strstr(fail_text(), "in the middle of a frame") != NULL);
        ends_close(&e);
    }
    must(told > times * 95 / 100);
}

static void test_any_cut(void)
{
    const size_t bytes = write_stream(FRAMES);
    for (uint64_t seed = 0; seed < 10; seed++) {
        ends e = ends_open();
        uint64_t received = 0, cuts = 0;
        for (size_t at = 0; at < bytes; cuts++) {
            const size_t most = scramble(seed + cuts) % 8 == 0 ? 30000 : 200;
            const size_t piece = min_size(1 + scramble(seed ^ cuts) % most, bytes - at);
            write_raw(&e, stream + at, piece);
            at += piece;
            must_be(read_frames(e.a, seed, &received), RING_IN_PROGRESS);
        }
        shutdown(raw_socket(e.b), SHUT_WR);
        must_be(read_until_error(e.a, seed, &received), RING_ERR_PEER);
        must(received == FRAMES);
        ends_close(&e);
    }
}

static void test_frames_fill_lines(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT], wire[TRANSPORT_SEGMENT + 64];
    for (size_t bytes = 0; bytes <= 200; bytes++) {
        ends e = ends_open();
        transport_frame frame = frame_make(0, bytes);
        const size_t whole = 64 + (bytes + 63) / 64 * 64;
        payload_fill(payload, 0, bytes);
        must_ok(e.a->transport->send(e.a, &frame, payload, false));
        must(recv(raw_socket(e.b), wire, sizeof wire, 0) == (ssize_t)whole);
        tcp_seal(&frame, 0, payload, has_checksums);
        must(memcmp(wire, &frame, 64) == 0 && memcmp(wire + 64, payload, bytes) == 0);
        ends_close(&e);
    }
}

/* ---- Encryption -------------------------------------------------------------------- */

static size_t send_and_catch(const ends *e, const void *payload, size_t bytes,
                             unsigned char wire[STREAM_MAX])
{
    const transport_frame frame = frame_make(e->a->frames_sent, bytes);
    size_t end = 0;
    must_ok(e->a->transport->send(e->a, &frame, payload, false));
    for (ssize_t got = 1; got > 0; end += got > 0 ? (size_t)got : 0)
        got = recv(raw_socket(e->b), wire + end, STREAM_MAX - end, MSG_DONTWAIT);
    return end;
}

/* The stream contains neither a payload nor the ciphertext of another one. */
static void test_nothing_shows(void)
{
    enum { RUN = 8 };
    static unsigned char payload[20000], wire[2][STREAM_MAX];
    ends e = ends_open();
    memset(payload, 0x5a, sizeof payload);
    const size_t bytes = send_and_catch(&e, payload, sizeof payload, wire[0]);
    must(bytes > sizeof payload);
    must(send_and_catch(&e, payload, sizeof payload, wire[1]) == bytes);
    for (size_t i = 0; i + RUN <= bytes; i++) {
        must(memcmp(wire[0] + i, payload, RUN) != 0);
        must(memcmp(wire[0] + i, wire[1] + i, RUN) != 0);
    }
    ends_close(&e);
}

/* Bytes that are sent twice, or sent back, are rejected. */
static void test_replayed(void)
{
    static unsigned char wire[STREAM_MAX];
    for (int back = 0; back < 2; back++) {
        ends e = ends_open();
        uint64_t received = 0;
        const size_t bytes = write_stream(1);
        if (back) {
            const size_t own = send_and_catch(&e, stream, 100, wire);
            write_raw(&e, wire, own);
        } else {
            write_raw(&e, stream, bytes);
            write_raw(&e, stream, bytes);
        }
        must_be(read_until_error(e.a, 1, &received), RING_ERR_SYSTEM);
        must(received == !back && strstr(fail_text(), "cannot be decrypted with the key") != NULL);
        ends_close(&e);
    }
}

/* ---- A kernel that accepts little ------------------------------------------------- */

static void squeeze(const transport_link *l)
{
    const int least = 16384; /* with less the kernel waits for timers */
    must(setsockopt(raw_socket(l), SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
    must(setsockopt(raw_socket(l), SOL_SOCKET, SO_RCVBUF, &least, sizeof least) == 0);
}

static ends squeezed_ends(void)
{
    ends e = ends_open();
    squeeze(e.a);
    squeeze(e.b);
    return e;
}

/* A payload follows the header or is inside it; some are long enough to be lent. */
static transport_frame any_frame(uint64_t n)
{
    const uint64_t x = scramble(n);
    if (x % 3 == 0)
        return frame_make_short(n, (x >> 8) % (TRANSPORT_INLINE + 1));
    const size_t most = x % 3 == 1 ? 300 : TRANSPORT_SEGMENT;
    return frame_make(n, (x >> 8) % (most + 1));
}

static void take_any(const ends *e, uint64_t n)
{
    const void *payload;
    const transport_frame expected = any_frame(n), *frame = ends_receive(e->a, e->b, &payload);
    frame_check(frame, n, transport_carried(&expected));
    payload_check(payload, n, transport_carried(frame));
    e->b->transport->consume(e->b);
}

/* Bytes that the kernel does not accept are queued in the link and sent later, split anywhere. */
static void test_short_frames_wait_for_the_kernel(void)
{
    ends e = squeezed_ends();
    for (uint64_t n = 0; n < TRANSPORT_WINDOW_BYTES / 64; n++) {
        const transport_frame frame = frame_make_short(n, n % TRANSPORT_INLINE);
        must_ok(e.a->transport->send(e.a, &frame, NULL, true));
    }
    must(e.a->transport->flushed(e.a) < e.a->frames_sent);
    must(e.a->transport->memory(e.a) > TCP_BACKLOG);
    for (uint64_t n = 0; n < e.a->frames_sent; n++) {
        const void *payload;
        frame_check(ends_receive(e.a, e.b, &payload), n, n % TRANSPORT_INLINE);
        e.b->transport->consume(e.b);
    }
    must(e.a->transport->flushed(e.a) == e.a->frames_sent);
    ends_close(&e);
}

/* Copied and overwritten, lent until flushed, or filled in place; up to all that fits. */
static void test_all_kinds_wait_for_the_kernel(void)
{
    enum { FRAMES_OF_EACH = 1500, PLACES = 64 };
    static unsigned char places[PLACES][TRANSPORT_SEGMENT];
    ends e = squeezed_ends();
    const transport *t = e.a->transport;
    uint64_t sent = 0;
    for (uint64_t taken = 0; taken < FRAMES_OF_EACH; taken++) {
        while (sent < FRAMES_OF_EACH && sent < t->flushed(e.a) + PLACES) {
            const transport_frame frame = any_frame(sent);
            const bool copy = scramble(sent) / 8 % 2 == 0, reserve = scramble(sent) / 16 % 3 == 0;
            void *payload = reserve ? t->reserve(e.a) : places[sent % PLACES];
            if (payload == NULL)
                break;
            payload_fill(payload, sent, transport_behind(&frame));
            const ring_status status = t->send(e.a, &frame, payload, copy);
            if (status == RING_IN_PROGRESS)
                break;
            must_ok(status);
            if (copy && !reserve)
                payload_fill(payload, ~sent, transport_behind(&frame));
            sent++;
        }
        take_any(&e, taken);
    }
    end_flush(e.a);
    ends_close(&e);
}

/* ---- A cut wire ------------------------------------------------------------------- */

/* After this call the kernel drops all packets to this end, and so answers nothing. */
static void cut_wire_to(const transport_link *l)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {.len = 1, .filter = &nothing};
    must(setsockopt(raw_socket(l), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
}

static ends watched_ends(void)
{
    ends e = ends_open();
    tcp_watch_open((tcp_link *)e.a, 2);
    return e;
}

static void send_some(transport_link *l, uint64_t n)
{
    static const unsigned char payload[100];
    const transport_frame frame = frame_make(n, sizeof payload);
    must_ok(l->transport->send(l, &frame, payload, false));
}

/* Waits on the link as the engine does. @return the status that broke it, or RING_OK. */
static ring_status wait_on(transport_link *l, double seconds)
{
    const double end = clock_now() + seconds;
    ring_status status = RING_OK;
    while (status == RING_OK && clock_now() < end) {
        struct pollfd entry = {.fd = l->transport->wake_fd(l), .events = POLLIN};
        if (l->transport->arm(l, false))
            poll(&entry, 1, 50);
        l->transport->disarm(l);
        status = l->transport->progress(l);
    }
    return status;
}

static void expect_cut(transport_link *l, double soonest, double latest)
{
    const double start = clock_now();
    must_be(wait_on(l, latest), RING_ERR_PEER);
    must(clock_now() - start > soonest);
    must(strstr(fail_text(), "rank 42's host has acknowledged nothing over tcp for 2 s") != NULL);
}

static void test_cut_under_a_sender(void)
{
    ends e = watched_ends();
    cut_wire_to(e.b);
    send_some(e.a, 0);
    expect_cut(e.a, 1.9, 6);
    ends_close(&e);
}

/* No data is in flight: only the kernel's keepalive probes get no answer. */
static void test_cut_under_a_receiver(void)
{
    ends e = watched_ends();
    cut_wire_to(e.b);
    expect_cut(e.a, 1.9, 8);
    ends_close(&e);
}

/* Data unacknowledged while this rank computed is probed again before a peer is blamed. */
static void test_cut_is_judged_by_who_waits(void)
{
    ends e = watched_ends();
    cut_wire_to(e.b);
    send_some(e.a, 0);
    clock_sleep(4);
    must_ok(e.a->transport->progress(e.a));
    expect_cut(e.a, 1.9, 6);
    ends_close(&e);
}

static void test_quiet_peer_lives(void)
{
    ends e = watched_ends();
    const void *payload;
    must_ok(wait_on(e.a, test_is_long() ? 7 : 3));
    send_some(e.a, 0);
    ends_receive(e.a, e.b, &payload);
    must_ok(wait_on(e.a, 1));
    ends_close(&e);
}

/* The peer reads nothing for several time-outs, and everything in the end. */
static void test_slow_reader_lives(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    ends e = watched_ends();
    const transport_frame frame = frame_make(0, sizeof payload);
    const void *got;
    while (e.a->transport->send(e.a, &frame, payload, false) == RING_OK)
        continue;
    must_ok(wait_on(e.a, test_is_long() ? 9 : 5));
    for (uint64_t n = 0; n < e.a->frames_sent; n++) {
        ends_receive(e.a, e.b, &got);
        e.b->transport->consume(e.b);
    }
    must_ok(wait_on(e.a, 1));
    ends_close(&e);
}

#define TEST(name) \
    { \
#name, test_##name \
    }
static const named_test tests[] = {
    TEST(damaged_headers),
    TEST(lost_byte),
    TEST(end_inside_frame),
    TEST(random_bytes),
    TEST(random_header_bytes),
    TEST(any_damage),
    TEST(any_cut),
    TEST(frames_fill_lines),
    TEST(nothing_shows),
    TEST(replayed),
    TEST(short_frames_wait_for_the_kernel),
    TEST(all_kinds_wait_for_the_kernel),
    TEST(cut_under_a_sender),
    TEST(cut_under_a_receiver),
    TEST(cut_is_judged_by_who_waits),
    TEST(quiet_peer_lives),
    TEST(slow_reader_lives),
};
#undef TEST

static bool choose_mode(const char *mode)
{
    has_checksums = false;
    ends_use_checksums(false);
    return strcmp(mode, "plain") == 0 || ends_use_cipher(mode);
}

int main(int argc, char **argv)
{
    if ((argc == 2 || (argc == 3 && choose_mode(argv[1]))) && ends_choose("tcp"))
        return named_run(tests, sizeof tests / sizeof *tests, argv[argc - 1]);
    fprintf(stderr, "usage: %s [plain|aes256gcm|chacha20] TEST\n", argv[0]);
    return 2;
}
