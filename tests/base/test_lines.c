/* SPDX-License-Identifier: Apache-2.0
 * The ring of lines: one thread steps through its states, then two race through them. */
#include "lines.h"
#include "membarrier.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

enum { SEGMENT_LINES = 1 + TRANSPORT_SEGMENT / RING_CACHE_LINE };

typedef struct both_ends {
    lines_ring *ring;
    lines_producer producer;
    lines_consumer consumer;
    uint64_t sent, taken;
} both_ends;

static int make_ring(void **state)
{
    both_ends *b = calloc(1, sizeof *b);
    b->ring = aligned_alloc(_Alignof(lines_ring), sizeof *b->ring);
    memset(b->ring, 0xa5, sizeof *b->ring); /* its old content looks like headers */
    lines_clear(b->ring);
    lines_consume_from(&b->consumer, b->ring);
    *state = b;
    return lines_produce(&b->producer, b->ring, -1) == RING_OK ? 0 : -1;
}

static int drop_ring(void **state)
{
    both_ends *b = *state;
    lines_produce_no_more(&b->producer);
    free(b->ring);
    free(b);
    return 0;
}

static transport_frame numbered(uint64_t number, size_t bytes)
{
    transport_frame frame = {.flags = FRAME_LONG, .message = number, .signature = ~number};
    frame.ext.bytes = bytes;
    return frame;
}

/* @return false: no room. */
static bool put(both_ends *b, size_t bytes)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    const transport_frame frame = numbered(b->sent, bytes);
    if (lines_room(&b->producer, bytes) != RING_OK)
        return false;
    memset(payload, (int)b->sent & 255, bytes);
    assert_false(lines_publish(&b->producer, &frame, payload));
    b->sent++;
    return true;
}

static const unsigned char *oldest_payload(const both_ends *b)
{
    return (const unsigned char *)(b->ring->line + b->consumer.line + 1);
}

static void expect_oldest(both_ends *b, transport_frame *frame)
{
    assert_int_equal(lines_oldest(&b->consumer, frame), RING_OK);
    assert_int_equal(frame->message, b->taken);
    assert_int_equal(frame->signature, ~b->taken);
}

static void take(both_ends *b)
{
    transport_frame frame;
    expect_oldest(b, &frame);
    const size_t bytes = transport_behind(&frame);
    for (size_t i = 0; i < bytes; i += (bytes > 200 ? 61 : 1))
        assert_int_equal(oldest_payload(b)[i], b->taken & 255);
    assert_false(lines_consume(&b->consumer, lines_of(bytes)));
    b->taken++;
}

static void take_all(both_ends *b)
{
    transport_frame frame;
    while (b->taken < b->sent)
        take(b);
    assert_int_equal(lines_oldest(&b->consumer, &frame), RING_IN_PROGRESS);
}

/* ---- One thread ---------------------------------------------------------------- */

static void a_new_ring_is_empty_and_has_room(void **state)
{
    both_ends *b = *state;
    transport_frame frame;
    assert_int_equal(lines_oldest(&b->consumer, &frame), RING_IN_PROGRESS);
    assert_true(lines_fit(&b->producer, TRANSPORT_SEGMENT));
    assert_int_equal(lines_room(&b->producer, TRANSPORT_SEGMENT), RING_OK);
}

static void a_window_fits_wherever_it_begins(void **state)
{
    both_ends *b = *state;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < round; i++) {
            put(b, 300);
            take(b);
        }
        uint64_t fit = 0;
        while (put(b, TRANSPORT_SEGMENT))
            fit++;
        assert_in_range(fit, TRANSPORT_WINDOW + 1, LINES / SEGMENT_LINES);
        take_all(b);
    }
}

static void a_full_ring_has_room_again_once_enough_is_taken(void **state)
{
    both_ends *b = *state;
    for (int lap = 0; lap < 5; lap++) {
        while (put(b, 0))
            continue;
        assert_false(lines_fit(&b->producer, 0));
        take(b);
        assert_false(lines_fit(&b->producer, 64));
        take(b);
        assert_true(put(b, 0));
        while (b->taken + 2000 < b->sent)
            take(b);
    }
    take_all(b);
}

static void payload_is_copied_unless_it_lies_in_the_room(void **state)
{
    both_ends *b = *state;
    char text[] = "carried";
    const transport_frame frame = numbered(0, sizeof text);
    lines_room(&b->producer, sizeof text);
    lines_publish(&b->producer, &frame, text);
    text[0] = 'X';
    b->sent++;
    expect_oldest(b, &(transport_frame){0});
    assert_string_equal((const char *)oldest_payload(b), "carried");
    lines_consume(&b->consumer, 2);
    b->taken++;
    assert_int_equal(lines_room(&b->producer, TRANSPORT_SEGMENT), RING_OK);
    char *room = lines_payload(&b->producer);
    assert_int_equal((uintptr_t)room % RING_CACHE_LINE, 0);
    strcpy(room, "in place");
    const transport_frame less = numbered(1, 9);
    lines_publish(&b->producer, &less, room);
    expect_oldest(b, &(transport_frame){0});
    assert_ptr_equal(oldest_payload(b), room);
    assert_string_equal(room, "in place");
}

static void flagged_frames_take_one_line(void **state)
{
    both_ends *b = *state;
    transport_frame frame = numbered(0, (size_t)1 << 40);
    frame.flags |= FRAME_REF;
    assert_int_equal(lines_room(&b->producer, 0), RING_OK);
    lines_publish(&b->producer, &frame, NULL);
    b->sent++;
    expect_oldest(b, &frame);
    assert_int_equal(frame.ext.bytes, (uint64_t)1 << 40);
    assert_int_equal(b->producer.line, 1);
}

static void short_frames_come_back_while_they_are_taken(void **state)
{
    both_ends *b = *state;
    for (int i = 0; i < 10000; i++) {
        put(b, i % 3 * 8);
        take_all(b);
        assert_in_range(b->producer.line, 1, 2 * LINES_NEAR + 2);
    }
    for (int i = 0; i < 5 * LINES_NEAR; i++) { /* one stays there */
        put(b, 0);
        if (i > 0)
            take(b);
    }
    assert_in_range(b->producer.line, 4 * LINES_NEAR, LINES - 1);
}

static void long_frames_go_all_the_way_round(void **state)
{
    both_ends *b = *state;
    uint32_t farthest = 0;
    for (int i = 0; i < 2 * LINES / SEGMENT_LINES; i++) {
        put(b, TRANSPORT_SEGMENT);
        take(b);
        farthest = b->producer.line > farthest ? b->producer.line : farthest;
    }
    assert_int_equal(farthest, LINES / SEGMENT_LINES * SEGMENT_LINES);
}

static void rings_of_a_process_that_has_many_are_shorter(void **state)
{
    both_ends *b = *state;
    lines_producer others[LINES_MANY];
    assert_int_equal(b->producer.lines, LINES);
    for (int i = 0; i < LINES_MANY; i++)
        assert_int_equal(lines_produce(&others[i], b->ring, -1), RING_OK);
    assert_int_equal(others[LINES_MANY - 2].lines, LINES);
    assert_int_equal(others[LINES_MANY - 1].lines, LINES_OF_MANY);
    for (int i = 0; i < LINES_MANY; i++) {
        lines_produce_no_more(&others[i]);
        lines_produce_no_more(&others[i]); /* counts once */
    }
    lines_produce_no_more(&b->producer);
    assert_int_equal(lines_produce(&b->producer, b->ring, -1), RING_OK);
    assert_int_equal(b->producer.lines, LINES);
    b->producer.lines = b->producer.end = LINES_OF_MANY;
    uint32_t farthest = 0;
    for (int i = 0; i < 3 * LINES / SEGMENT_LINES; i++) {
        assert_true(put(b, TRANSPORT_SEGMENT));
        take(b);
        farthest = b->producer.line > farthest ? b->producer.line : farthest;
    }
    assert_int_equal(farthest, LINES_OF_MANY / SEGMENT_LINES * SEGMENT_LINES);
}

/* A call's long frames, then a barrier's short one that all is taken before: again and again the
 * same lines would be overwritten that the other side has just read. */
static void long_frames_go_on_behind_short_ones(void **state)
{
    both_ends *b = *state;
    int farther = 0;
    for (int call = 0; call < 20; call++) {
        put(b, TRANSPORT_SEGMENT);
        take_all(b);
        const uint32_t behind = b->producer.line;
        put(b, 8);
        take_all(b);
        const uint32_t near = b->producer.line;
        assert_in_range(near, 1, LINES_NEAR);
        put(b, TRANSPORT_SEGMENT);
        assert_true(b->producer.at == behind || b->producer.at == near);
        farther += b->producer.at == behind;
        take_all(b);
    }
    assert_in_range(farther, 10, 19); /* not where too little would be left for a window */
}

/* The consumer stops just when the producer has come back: nearly all lines are still had. */
static void a_consumer_that_stays_behind_a_skip_costs_no_room(void **state)
{
    both_ends *b = *state;
    for (int round = 0; round < 20; round++) {
        do {
            take_all(b);
            put(b, round * 8 % 64);
        } while (b->producer.at != 0 || b->producer.skips == b->consumer.skips);
        uint32_t lines = 0;
        for (size_t bytes = (size_t)round * 50; put(b, bytes); lines += lines_of(bytes))
            continue;
        assert_in_range(lines, LINES - 2 * lines_of((size_t)round * 50) - 8, LINES);
        take_all(b);
    }
}

static void turns_go_on_when_their_numbers_wrap(void **state)
{
    both_ends *b = *state;
    b->producer.stamp = b->consumer.stamp = UINT32_MAX - 2000;
    for (int i = 0; i < 3000; i++) {
        put(b, 200);
        take_all(b);
    }
    assert_int_equal(b->producer.stamp, (uint32_t)(UINT32_MAX - 2000 + 6000));
}

/* Neither does it lead outside the ring. */
static void a_counter_that_cannot_be_right_gives_no_room(void **state)
{
    both_ends *b = *state;
    while (put(b, 0))
        continue;
    static const uint64_t wrong[] = {LINES, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX,
                                     (uint64_t)(UINT32_MAX - 2) << 32 | 100};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        b->ring->taken = wrong[i];
        assert_false(lines_fit(&b->producer, 0));
    }
    b->ring->taken = 100;
    assert_true(lines_fit(&b->producer, 0));
    for (uint64_t seed = 1; seed < 100000; seed++) {
        b->ring->taken = seed * 0x9e3779b97f4a7c15u >> (seed % 40);
        if (lines_room(&b->producer, seed % 5000) == RING_OK)
            lines_publish(&b->producer, &(transport_frame){.flags = FRAME_LONG}, NULL);
        assert_in_range(b->producer.line, 0, LINES - 1);
    }
}

static void expect_damage(both_ends *b, uint32_t turn, const transport_frame *frame)
{
    line *at = &b->ring->line[b->consumer.line];
    transport_frame got;
    memcpy(at->rest, (const char *)frame + sizeof turn, sizeof at->rest);
    at->stamp = turn;
    assert_int_equal(lines_oldest(&b->consumer, &got), RING_ERR_PEER);
}

static void headers_that_no_producer_writes_are_damage(void **state)
{
    both_ends *b = *state;
    enum { SKIP = 0x80 };
    transport_frame skip = {.flags = SKIP};
    const uint32_t turn = b->consumer.stamp;
    const transport_frame sound = numbered(0, 0);
    expect_damage(b, turn + 2, &sound);
    const transport_frame too_long[] = {numbered(0, TRANSPORT_SEGMENT + 1), numbered(0, SIZE_MAX)};
    expect_damage(b, turn, &too_long[0]);
    expect_damage(b, turn, &too_long[1]);
    static const uint64_t outside[] = {LINES, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        skip.ext.bytes = outside[i];
        expect_damage(b, turn, &skip);
    }
    skip.ext.bytes = b->consumer.line; /* to itself */
    expect_damage(b, turn, &skip);
    b->consumer.line = LINES - 1; /* there is no line after it for the next header */
    expect_damage(b, turn, &sound);
    b->consumer.line = LINES - 1000;
    const transport_frame over_the_end = numbered(0, 64 * 999);
    expect_damage(b, turn, &over_the_end);
    b->consumer.lines = LINES_OF_MANY; /* of a shorter ring's, too */
    b->consumer.line = LINES_OF_MANY - 1000;
    expect_damage(b, turn, &over_the_end);
    skip.ext.bytes = LINES_OF_MANY;
    expect_damage(b, turn, &skip);
}

static bool publish_empty(both_ends *b)
{
    const transport_frame frame = numbered(b->sent++, 0);
    assert_int_equal(lines_room(&b->producer, 0), RING_OK);
    return lines_publish(&b->producer, &frame, NULL);
}

static void a_sleeper_is_told_of_once_a_sleep(void **state)
{
    both_ends *b = *state;
    for (int strict = 0; strict < 2; strict++) {
        b->producer.strict = b->consumer.strict = strict;
        assert_false(publish_empty(b));
        b->ring->consumer_sleeps = 1;
        assert_true(publish_empty(b));
        assert_false(publish_empty(b));
        b->ring->producer_sleeps = 1;
        assert_true(lines_consume(&b->consumer, 1));
        assert_false(lines_consume(&b->consumer, 1));
        b->ring->producer_sleeps = 1;
        assert_true(lines_release(&b->consumer, 7));
        assert_false(lines_consume(&b->consumer, 1));
        assert_int_equal(b->ring->released, 7);
    }
}

static size_t pages_of(int file)
{
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    return (size_t)info.st_blocks * 512 / 4096;
}

static void short_frames_commit_few_pages_of_the_file(void **state)
{
    both_ends b = {0};
    const int file = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, sizeof(lines_ring)), 0);
    b.ring = mmap(NULL, sizeof *b.ring, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(b.ring, MAP_FAILED);
    assert_int_equal(lines_produce(&b.producer, b.ring, file), RING_OK);
    lines_consume_from(&b.consumer, b.ring);
    for (int i = 0; i < 10000; i++) {
        put(&b, 40);
        take(&b);
    }
    assert_in_range(pages_of(file), 2, 4);
    assert_int_equal(b.producer.committed, pages_of(file) * 4096);
    put(&b, TRANSPORT_SEGMENT);
    assert_in_range(pages_of(file), 17, 32);
    while (put(&b, 4000))
        continue;
    assert_int_equal(pages_of(file), (sizeof(lines_ring) + 4095) / 4096);
    assert_int_equal(b.producer.committed, sizeof(lines_ring));
    munmap(b.ring, sizeof *b.ring);
    close(file);
}

static void memory_that_cannot_be_had_is_an_error(void **state)
{
    both_ends *b = *state;
    lines_producer producer;
    assert_int_equal(lines_produce(&producer, b->ring, STDIN_FILENO + 1000), RING_ERR_MEMORY);
    b->producer.file = 1000; /* no such file: as when committing fails later */
    assert_int_equal(lines_room(&b->producer, 64), RING_OK);
    assert_int_equal(lines_room(&b->producer, TRANSPORT_SEGMENT), RING_ERR_MEMORY);
}

/* ---- Two threads ---------------------------------------------------------------- */

enum { RACE_FRAMES = 60000 };

/* A sleeper's bell; the socket's part in a link. */
typedef struct race {
    both_ends *ends;
    int consumer_bell, producer_bell;
    const char *complaint;
} race;

static void ring_bell(int bell)
{
    const uint64_t one = 1;
    if (write(bell, &one, sizeof one) != sizeof one)
        abort();
}

/* A lost wake-up shows as a sleep that nothing ends. */
static bool sleep_until_bell(int bell)
{
    struct pollfd entry = {.fd = bell, .events = POLLIN};
    uint64_t rings;
    return poll(&entry, 1, 20000) == 1 && read(bell, &rings, sizeof rings) == sizeof rings;
}

/* Raises the sleeper's flag, after which the sleeper looks once more. */
static void raise_flag(_Atomic uint32_t *flag, bool strict)
{
    atomic_store(flag, 1);
    if (!strict && !membarrier_all())
        abort();
}

static size_t bytes_of(uint64_t number)
{
    const uint64_t mixed = number * 0x9e3779b97f4a7c15u >> 40;
    return mixed % 64 == 0 ? mixed % (TRANSPORT_SEGMENT + 1) : mixed % 4 == 0 ? mixed % 900 : 0;
}

static bool await_room(race *r, size_t bytes)
{
    lines_producer *p = &r->ends->producer;
    while (!lines_fit(p, bytes)) {
        raise_flag(&p->ring->producer_sleeps, p->strict);
        if (lines_fit(p, bytes) && atomic_exchange(&p->ring->producer_sleeps, 0) != 0)
            return true;
        if (!sleep_until_bell(r->producer_bell))
            return false;
    }
    return true;
}

static bool await_frame(race *r, transport_frame *frame)
{
    lines_consumer *c = &r->ends->consumer;
    while (atomic_load(lines_news(c)) == 0) {
        raise_flag(&c->ring->consumer_sleeps, c->strict);
        if (atomic_load(lines_news(c)) != 0 && atomic_exchange(&c->ring->consumer_sleeps, 0) != 0)
            break;
        if (!sleep_until_bell(r->consumer_bell))
            return false;
    }
    return lines_oldest(c, frame) == RING_OK;
}

/* In the room, copied to it, or past the caches. */
static void *produce(void *context)
{
    static unsigned char copied[TRANSPORT_SEGMENT];
    race *r = context;
    lines_producer *p = &r->ends->producer;
    for (uint64_t i = 0; i < RACE_FRAMES; i++) {
        const transport_frame frame = numbered(i, bytes_of(i));
        if (!await_room(r, bytes_of(i)) || lines_room(p, bytes_of(i)) != RING_OK) {
            r->complaint = "the producer slept for ever";
            break;
        }
        void *payload = i % 2 == 0 ? lines_payload(p) : copied;
        memset(payload, (int)i & 255, bytes_of(i));
        p->copier = (lines_copier){.streams = i % 4 == 3, .tried = 1e18};
        if (lines_publish(p, &frame, payload))
            ring_bell(r->consumer_bell);
        if (i % 5000 == 0)
            clock_sleep(0.001); /* long enough for the consumer to sleep */
    }
    return NULL;
}

static bool is_frame(const both_ends *b, const transport_frame *frame, uint64_t number)
{
    const size_t bytes = bytes_of(number);
    const unsigned char *payload = oldest_payload(b);
    if (frame->message != number || frame->signature != ~number || frame->ext.bytes != bytes)
        return false;
    for (size_t i = 0; i < bytes; i += 61)
        if (payload[i] != (number & 255))
            return false;
    return bytes == 0 || payload[bytes - 1] == (number & 255);
}

static const char *consume(race *r)
{
    for (uint64_t i = 0; i < RACE_FRAMES; i++) {
        transport_frame frame;
        if (!await_frame(r, &frame))
            return "the consumer slept for ever";
        if (!is_frame(r->ends, &frame, i))
            return "a frame is wrong";
        if (lines_consume(&r->ends->consumer, lines_of(bytes_of(i))))
            ring_bell(r->producer_bell);
        if (i % 7000 == 0)
            clock_sleep(0.001); /* the ring fills and the producer sleeps */
    }
    return NULL;
}

static void race_without_loss(both_ends *b, bool strict)
{
    pthread_t producer;
    race r = {.ends = b,
              .consumer_bell = eventfd(0, EFD_CLOEXEC),
              .producer_bell = eventfd(0, EFD_CLOEXEC)};
    b->producer.strict = b->consumer.strict = strict;
    assert_int_equal(pthread_create(&producer, NULL, produce, &r), 0);
    const char *complaint = consume(&r);
    if (complaint != NULL) /* the producer may wait for room that nobody gives */
        fail_msg("%s", complaint);
    pthread_join(producer, NULL);
    assert_null(r.complaint);
    assert_int_equal(lines_oldest(&b->consumer, &(transport_frame){0}), RING_IN_PROGRESS);
    close(r.consumer_bell);
    close(r.producer_bell);
}

static void no_frame_and_no_wake_up_is_lost_between_threads(void **state)
{
    race_without_loss(*state, true);
}

static void nor_where_the_sleeper_pays_for_the_order(void **state)
{
    if (!membarrier_join())
        skip_because("the kernel refuses membarrier()");
    race_without_loss(*state, false);
}

/* ---- The moment between flag and look --------------------------------------------- */

/* One publishes while the other goes to sleep, in rounds. */
typedef struct meeting {
    both_ends *ends;
    _Atomic uint64_t round, met;
    bool told; /* that the other sleeps */
} meeting;

static void await_word(_Atomic uint64_t *word, uint64_t value)
{
    unsigned turns = 0;
    while (atomic_load(word) < value)
        (void)wait_politely(&turns, false);
}

static void *publish_in_rounds(void *context)
{
    meeting *m = context;
    lines_producer *p = &m->ends->producer;
    for (uint64_t round = 1;; round++) {
        const transport_frame frame = numbered(round, 0);
        const ring_status status = lines_room(p, 0);
        await_word(&m->round, round);
        if (atomic_load(&m->round) == UINT64_MAX || status != RING_OK)
            return NULL;
        m->told = lines_publish(p, &frame, NULL);
        atomic_store(&m->met, round);
    }
}

/* @return false: it would have slept for ever. */
static bool meet(meeting *m, uint64_t round)
{
    lines_consumer *c = &m->ends->consumer;
    transport_frame frame;
    assert_int_equal(atomic_load(lines_news(c)), 0); /* the line is here, so storing takes long */
    atomic_store_explicit(&m->round, round, memory_order_release);
    for (volatile uint64_t drift = round * 7 % 256; drift > 0; drift--)
        continue;
    raise_flag(&c->ring->consumer_sleeps, c->strict);
    const bool seen = atomic_load(lines_news(c)) != 0;
    await_word(&m->met, round);
    atomic_store(&c->ring->consumer_sleeps, 0);
    assert_int_equal(lines_oldest(c, &frame), RING_OK);
    lines_consume(c, 1);
    return seen || m->told;
}

static void meet_often(both_ends *b, bool strict)
{
    pthread_t producer;
    meeting m = {.ends = b};
    const double end = clock_now() + 2;
    b->producer.strict = b->consumer.strict = strict;
    assert_int_equal(pthread_create(&producer, NULL, publish_in_rounds, &m), 0);
    uint64_t lost = 0;
    for (uint64_t round = 1; round <= 100000 && clock_now() < end; round++)
        lost += !meet(&m, round);
    atomic_store(&m.round, UINT64_MAX);
    pthread_join(producer, NULL);
    assert_int_equal(lost, 0);
}

static void whoever_publishes_while_one_falls_asleep_is_seen_or_sees(void **state)
{
    meet_often(*state, true);
}

static void nor_does_the_order_that_the_sleeper_pays_for_fail(void **state)
{
    if (!membarrier_join())
        skip_because("the kernel refuses membarrier()");
    meet_often(*state, false);
}

int main(void)
{
#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, make_ring, drop_ring)
    const struct CMUnitTest tests[] = {
        WITH_RING(a_new_ring_is_empty_and_has_room),
        WITH_RING(a_window_fits_wherever_it_begins),
        WITH_RING(a_full_ring_has_room_again_once_enough_is_taken),
        WITH_RING(payload_is_copied_unless_it_lies_in_the_room),
        WITH_RING(flagged_frames_take_one_line),
        WITH_RING(short_frames_come_back_while_they_are_taken),
        WITH_RING(long_frames_go_all_the_way_round),
        WITH_RING(rings_of_a_process_that_has_many_are_shorter),
        WITH_RING(long_frames_go_on_behind_short_ones),
        WITH_RING(a_consumer_that_stays_behind_a_skip_costs_no_room),
        WITH_RING(turns_go_on_when_their_numbers_wrap),
        WITH_RING(a_counter_that_cannot_be_right_gives_no_room),
        WITH_RING(headers_that_no_producer_writes_are_damage),
        WITH_RING(a_sleeper_is_told_of_once_a_sleep),
        cmocka_unit_test(short_frames_commit_few_pages_of_the_file),
        WITH_RING(memory_that_cannot_be_had_is_an_error),
        WITH_RING(no_frame_and_no_wake_up_is_lost_between_threads),
        WITH_RING(nor_where_the_sleeper_pays_for_the_order),
        WITH_RING(whoever_publishes_while_one_falls_asleep_is_seen_or_sees),
        WITH_RING(nor_does_the_order_that_the_sleeper_pays_for_fail),
    };
    return cmocka_run_group_tests_name("base.lines", tests, NULL, NULL);
}
