/* SPDX-License-Identifier: Apache-2.0
 *
 * The network damages data: one bit flips, or one byte is lost or duplicated, anywhere in the bytes
 * of a rank, on its control connections or its links. Values are never wrong, and a rank without
 * right values gets an error that blames the connection. RING_TEST_DAMAGES sets the number of runs
 * (40), RING_TEST_SEED their seed. Usage: test_fault_noise */
#include "draw.h"
#include "harness.h"
#include "known_calls.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, VICTIM = 1, SEGMENT_MOST = 1 << 20 };
enum act { FLIP, DROP, DOUBLE, ACTS };
enum wire { CONTROL, LINKS, WIRES };

typedef struct damage {
    enum act act;
    enum wire wire;
    uint64_t at; /* byte of all that is sent on that wire; UINT64_MAX: none */
    int bit;
} damage;

/** Results that the ranks leave in the board. */
typedef struct findings {
    _Atomic uint64_t sent[WIRES]; /* bytes, of the victim */
    _Atomic double damaged;       /* when, 0: never       */
    known_outcome outcomes[RANKS];
} findings;

/* ---- The network ------------------------------------------------------------------- */

static damage planned;
static findings *notes; /* of the victim, while it runs */

static void send_all(int fd, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        struct pollfd entry = {.fd = fd, .events = POLLOUT};
        const ssize_t put = syscall(SYS_sendto, fd, data, bytes, MSG_NOSIGNAL, NULL, 0);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return; /* the next one tells */
        data += put > 0 ? put : 0;
        bytes -= put > 0 ? (size_t)put : 0;
        poll(&entry, 1, 100);
    }
}

static void send_damaged(int fd, unsigned char *data, size_t bytes, size_t at)
{
    switch (planned.act) {
    case FLIP:
        data[at] ^= (unsigned char)(1 << planned.bit);
        break;
    case DROP:
        memmove(data + at, data + at + 1, bytes - at - 1);
        bytes--;
        break;
    default:
        memmove(data + at + 1, data + at, bytes - at);
        bytes++;
        break;
    }
    atomic_store(&notes->damaged, harness_now());
    send_all(fd, data, bytes);
}

/* @return false if nothing is to be done to it. */
static bool meddle(enum wire wire, int fd, const struct iovec *parts, size_t count, size_t bytes)
{
    static unsigned char copy[SEGMENT_MOST + 1];
    size_t end = 0;
    const uint64_t from = atomic_load(&notes->sent[wire]);
    if (wire != planned.wire || planned.at < from || planned.at >= from + bytes ||
        bytes > SEGMENT_MOST)
        return false;
    for (size_t i = 0; i < count; end += parts[i++].iov_len)
        memcpy(copy + end, parts[i].iov_base, parts[i].iov_len);
    send_damaged(fd, copy, bytes, (size_t)(planned.at - from));
    atomic_fetch_add(&notes->sent[wire], bytes);
    return true;
}

static ssize_t counted(enum wire wire, ssize_t put)
{
    if (notes != NULL && put > 0)
        atomic_fetch_add(&notes->sent[wire], (uint64_t)put);
    return put;
}

#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

/* The library's calls come here: control and handshakes use send(), tcp links sendmsg(). */
IN_PLACE_OF_LIBC ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    const struct iovec part = {(void *)(uintptr_t)data, bytes};
    if (notes != NULL && meddle(CONTROL, fd, &part, 1, bytes))
        return (ssize_t)bytes;
    return counted(CONTROL, syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0));
}

IN_PLACE_OF_LIBC ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        bytes += message->msg_iov[i].iov_len;
    if (notes != NULL && meddle(LINKS, fd, message->msg_iov, message->msg_iovlen, bytes))
        return (ssize_t)bytes;
    return counted(LINKS, syscall(SYS_sendmsg, fd, message, flags));
}

/* ---- A rank ------------------------------------------------------------------------ */

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    findings *found = (findings *)(void *)board->data;
    known_outcome *mine = &found->outcomes[rank];
    ring_comm *comm = NULL;
    planned = *(const damage *)arg;
    notes = rank == VICTIM ? found : NULL;
    mine->status = harness_join(rank, ranks, board, &comm);
    known_calls_note(comm, rank, ranks, mine);
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Runs -------------------------------------------------------------------------- */

static findings run(const damage *d)
{
    harness_board *board;
    damage copy = *d;
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, take_part, &copy, &board), 0);
    findings *found = (findings *)(void *)board->data, result;
    memcpy(&result, found, sizeof result);
    harness_board_free(board);
    return result;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static damage nth_damage(uint64_t n, const findings *whole)
{
    damage d = {.act = (enum act)(n % ACTS),
                .wire = (enum wire)(n / ACTS % WIRES),
                .bit = (int)(scramble(n + 1) % 8)};
    d.at = scramble(n) % whole->sent[d.wire];
    return d;
}

static bool blames_the_connection(const char *text)
{
    static const char *const words[] = {"damaged", "altered", "onnection", "closed", "did not"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]) != NULL)
            return strstr(text, "left") == NULL;
    return false;
}

/* @return seconds from the damage to the last rank's error, 0: no rank had one. */
static double judge(uint64_t n, const damage *d, const findings *f)
{
    double latest = 0;
    for (int r = 0; r < RANKS; r++) {
        const known_outcome *o = &f->outcomes[r];
        if (o->wrong || (o->status != RING_OK && !blames_the_connection(o->text)))
            fail_msg("run %llu: act %d, wire %d, byte %llu: rank %d: %s, %s: %s",
                     (unsigned long long)n, (int)d->act, (int)d->wire, (unsigned long long)d->at, r,
                     o->wrong ? "wrong values" : "values right", ring_status_string(o->status),
                     o->text);
        if (o->status != RING_OK && o->over - f->damaged > latest)
            latest = o->over - f->damaged;
    }
    return latest;
}

/* Measures runs without damage: the fewest bytes that any of a few sends. The number of beats in a
 * run is random, and damage after the last byte would have no effect. */
static findings quiet_run(void)
{
    const damage none = {.at = UINT64_MAX};
    findings quiet = run(&none);
    for (int more = 0; more < 3; more++) {
        const findings f = run(&none);
        for (int wire = 0; wire < WIRES; wire++)
            quiet.sent[wire] = f.sent[wire] < quiet.sent[wire] ? f.sent[wire] : quiet.sent[wire];
    }
    return quiet;
}

static void damage_is_told_of(void **state)
{
    const uint64_t runs = harness_number("RING_TEST_DAMAGES", 40);
    const uint64_t seed = test_seed() * 100000;
    const findings whole = quiet_run();
    double *seconds = calloc(runs, sizeof *seconds), latest = 0;
    uint64_t hit = 0, ended = 0;
    assert_int_equal(whole.outcomes[0].status, RING_OK);
    assert_int_equal(whole.outcomes[VICTIM].status, RING_OK);
    for (uint64_t n = seed; n < seed + runs; n++) {
        const damage d = nth_damage(n, &whole);
        const findings f = run(&d);
        const double took = judge(n, &d, &f);
        hit += f.damaged > 0;
        if (took > 0)
            seconds[ended++] = took;
    }
    const double median = harness_median(seconds, ended);
    latest = ended > 0 ? seconds[ended - 1] : 0;
    printf("%llu runs, %llu damaged, %llu ended with an error after %.3f s (median), the latest "
           "after %.2f s\n",
           (unsigned long long)runs, (unsigned long long)hit, (unsigned long long)ended, median,
           latest);
    assert_true(hit >= runs * 3 / 4);
    assert_true(ended > runs / 2);
    assert_true(latest < HARNESS_PROMPT);
    assert_true(!harness_is_timed() || median < 1);
    free(seconds);
}

int main(void)
{
    setenv("RING_TRANSPORT", "tcp", 1);
    setenv("RING_TIMEOUT", "6", 1); /* far less than HARNESS_PROMPT: some runs end by it */
    setenv("RING_INIT_TIMEOUT", "6", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(damage_is_told_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
