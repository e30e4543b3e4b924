/* SPDX-License-Identifier: Apache-2.0
 * The slot ring: one thread steps through its states, then two race through them. */
#include "slots.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct both_ends {
    slots_ring *ring;
    slots_producer producer;
    slots_consumer consumer;
} both_ends;

static int make_ring(void **state)
{
    both_ends *b = calloc(1, sizeof *b);
    b->ring = aligned_alloc(_Alignof(slots_ring), sizeof *b->ring);
    memset(b->ring, 0, sizeof *b->ring);
    slots_consume_from(&b->consumer, b->ring);
    *state = b;
    return slots_produce(&b->producer, b->ring, -1) == RING_OK ? 0 : -1;
}

static int drop_ring(void **state)
{
    both_ends *b = *state;
    free(b->ring);
    free(b);
    return 0;
}

static bool put(slots_producer *p, uint64_t number, const void *payload, size_t bytes)
{
    const transport_frame frame = {.seq = number, .bytes = bytes, .count = ~number};
    return slots_publish(p, &frame, payload);
}

static void check_next(const both_ends *b, uint64_t number)
{
    const slot *oldest = slots_oldest(&b->consumer);
    assert_non_null(oldest);
    assert_int_equal(oldest->frame.seq, number);
    assert_int_equal(oldest->frame.count, ~number);
}

/* ---- One thread ---------------------------------------------------------------- */

static void a_new_ring_is_empty_and_has_room(void **state)
{
    both_ends *b = *state;
    assert_null(slots_oldest(&b->consumer));
    assert_true(slots_room(&b->producer));
}

static void a_full_ring_has_room_again_after_each_consume(void **state)
{
    both_ends *b = *state;
    uint64_t sent = 0, taken = 0;
    while (slots_room(&b->producer))
        put(&b->producer, sent++, NULL, 0);
    assert_int_equal(sent, SLOTS);
    for (int lap = 0; lap < 5 * SLOTS; lap++) {
        check_next(b, taken++);
        slots_consume(&b->consumer);
        assert_true(slots_room(&b->producer));
        put(&b->producer, sent++, NULL, 0);
        assert_false(slots_room(&b->producer));
    }
}

static void payload_is_copied_unless_it_lies_in_the_slot(void **state)
{
    both_ends *b = *state;
    char text[] = "carried";
    put(&b->producer, 0, text, sizeof text);
    text[0] = 'X';
    assert_string_equal((const char *)slots_oldest(&b->consumer)->payload, "carried");
    slots_consume(&b->consumer);
    char *room = slots_payload(&b->producer, TRANSPORT_SEGMENT);
    assert_ptr_equal(room, slots_payload(&b->producer, 8));
    assert_int_equal((uintptr_t)room % RING_CACHE_LINE, 0);
    strcpy(room, "in place");
    put(&b->producer, 1, room, 9);
    const slot *oldest = slots_oldest(&b->consumer);
    assert_ptr_equal(oldest->payload, room);
    assert_string_equal((const char *)oldest->payload, "in place");
}

static void flagged_frames_carry_no_payload(void **state)
{
    both_ends *b = *state;
    const transport_frame frame = {.flags = FRAME_REF, .bytes = (uint64_t)1 << 40};
    assert_int_equal(slots_carried(&frame), 0);
    slots_publish(&b->producer, &frame, NULL);
    assert_int_equal(slots_oldest(&b->consumer)->frame.bytes, (uint64_t)1 << 40);
}

static void turns_go_on_when_their_numbers_wrap(void **state)
{
    both_ends *b = *state;
    const uint32_t start = UINT32_MAX - 3 * SLOTS + 1;
    b->producer.produced = b->producer.consumed = b->consumer.consumed = start;
    b->ring->consumed = start;
    for (uint64_t i = 0; i < 8 * SLOTS; i++) {
        assert_null(slots_oldest(&b->consumer));
        assert_true(slots_room(&b->producer));
        put(&b->producer, i, NULL, 0);
        check_next(b, i);
        slots_consume(&b->consumer);
    }
    assert_true(b->producer.produced < SLOTS * 8);
}

static void a_counter_that_cannot_be_right_gives_no_room(void **state)
{
    both_ends *b = *state;
    for (uint64_t i = 0; i < SLOTS; i++)
        put(&b->producer, i, NULL, 0);
    static const uint32_t wrong[] = {SLOTS + 1, 1000, UINT32_MAX, 1u << 31};
    for (size_t i = 0; i < 4; i++) {
        b->ring->consumed = wrong[i];
        assert_false(slots_room(&b->producer));
    }
    b->ring->consumed = 1;
    assert_true(slots_room(&b->producer));
}

static void a_sleeper_is_told_of_once_a_sleep(void **state)
{
    both_ends *b = *state;
    assert_false(put(&b->producer, 0, NULL, 0));
    b->ring->consumer_sleeps = 1;
    assert_true(put(&b->producer, 1, NULL, 0));
    assert_false(put(&b->producer, 2, NULL, 0));
    assert_false(slots_consume(&b->consumer));
    b->ring->producer_sleeps = 1;
    assert_true(slots_consume(&b->consumer));
    assert_false(slots_consume(&b->consumer));
}

static size_t pages_of(int file)
{
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    return (size_t)info.st_blocks * 512 / 4096;
}

static void small_frames_commit_few_pages_of_the_file(void **state)
{
    (void)state;
    slots_producer producer;
    slots_consumer consumer;
    const int file = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, sizeof(slots_ring)), 0);
    slots_ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(ring, MAP_FAILED);
    assert_int_equal(slots_produce(&producer, ring, file), RING_OK);
    slots_consume_from(&consumer, ring);
    assert_in_range(pages_of(file), SLOTS, 2 * SLOTS);
    for (uint64_t i = 0; i < 3 * SLOTS; i++) {
        assert_non_null(slots_payload(&producer, 64));
        put(&producer, i, "", 1);
        slots_consume(&consumer);
    }
    assert_in_range(pages_of(file), SLOTS, 2 * SLOTS);
    assert_in_range(slots_memory(&producer), SLOTS, 2 * SLOTS * 4096);
    memset(slots_payload(&producer, TRANSPORT_SEGMENT), 1, TRANSPORT_SEGMENT);
    assert_in_range(pages_of(file), SLOTS + 15, 2 * SLOTS + 16);
    munmap(ring, sizeof *ring);
    close(file);
}

static void memory_that_cannot_be_had_is_an_error(void **state)
{
    both_ends *b = *state;
    slots_producer producer;
    assert_int_equal(slots_produce(&producer, b->ring, STDIN_FILENO + 1000), RING_ERR_MEMORY);
    b->producer.file = 1000; /* no such file: as when committing fails later */
    b->producer.committed[0] = sizeof(transport_frame);
    assert_null(slots_payload(&b->producer, 1));
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

static size_t bytes_of(uint64_t number)
{
    const uint64_t mixed = number * 0x9e3779b97f4a7c15u >> 40;
    return mixed % 16 == 0 ? mixed % (TRANSPORT_SEGMENT + 1) : mixed % 200;
}

static bool await_room(race *r)
{
    slots_producer *p = &r->ends->producer;
    while (!slots_room(p)) {
        atomic_store(&r->ends->ring->producer_sleeps, 1);
        if (slots_room(p) && atomic_exchange(&r->ends->ring->producer_sleeps, 0) != 0)
            return true;
        if (!sleep_until_bell(r->producer_bell))
            return false;
    }
    return true;
}

static const slot *await_frame(race *r)
{
    const slot *oldest;
    while ((oldest = slots_oldest(&r->ends->consumer)) == NULL) {
        atomic_store(&r->ends->ring->consumer_sleeps, 1);
        oldest = slots_oldest(&r->ends->consumer);
        if (oldest != NULL && atomic_exchange(&r->ends->ring->consumer_sleeps, 0) != 0)
            return oldest;
        if (!sleep_until_bell(r->consumer_bell))
            return NULL;
    }
    return oldest;
}

static void *produce(void *context)
{
    race *r = context;
    for (uint64_t i = 0; i < RACE_FRAMES; i++) {
        if (!await_room(r)) {
            r->complaint = "the producer slept for ever";
            break;
        }
        void *room = slots_payload(&r->ends->producer, bytes_of(i));
        memset(room, (int)i & 255, bytes_of(i));
        if (put(&r->ends->producer, i, room, bytes_of(i)))
            ring_bell(r->consumer_bell);
        if (i % 5000 == 0)
            clock_sleep(0.001); /* long enough for the consumer to sleep */
    }
    return NULL;
}

static bool is_frame(const slot *s, uint64_t number)
{
    const size_t bytes = bytes_of(number);
    if (s->frame.seq != number || s->frame.count != ~number || s->frame.bytes != bytes)
        return false;
    for (size_t i = 0; i < bytes; i += 61)
        if (s->payload[i] != (number & 255))
            return false;
    return bytes == 0 || s->payload[bytes - 1] == (number & 255);
}

static const char *consume(race *r)
{
    for (uint64_t i = 0; i < RACE_FRAMES; i++) {
        const slot *oldest = await_frame(r);
        if (oldest == NULL)
            return "the consumer slept for ever";
        if (!is_frame(oldest, i))
            return "a frame is wrong";
        if (slots_consume(&r->ends->consumer))
            ring_bell(r->producer_bell);
        if (i % 7000 == 0)
            clock_sleep(0.001); /* the ring fills and the producer sleeps */
    }
    return NULL;
}

static void no_frame_and_no_wake_up_is_lost_between_threads(void **state)
{
    pthread_t producer;
    race r = {.ends = *state, .consumer_bell = eventfd(0, EFD_CLOEXEC),
              .producer_bell = eventfd(0, EFD_CLOEXEC)};
    assert_int_equal(pthread_create(&producer, NULL, produce, &r), 0);
    const char *complaint = consume(&r);
    if (complaint != NULL) /* the producer may wait for room that nobody gives */
        fail_msg("%s", complaint);
    pthread_join(producer, NULL);
    assert_null(r.complaint);
    assert_null(slots_oldest(&r.ends->consumer));
    close(r.consumer_bell);
    close(r.producer_bell);
}

int main(void)
{
#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, make_ring, drop_ring)
    const struct CMUnitTest tests[] = {
        WITH_RING(a_new_ring_is_empty_and_has_room),
        WITH_RING(a_full_ring_has_room_again_after_each_consume),
        WITH_RING(payload_is_copied_unless_it_lies_in_the_slot),
        WITH_RING(flagged_frames_carry_no_payload),
        WITH_RING(turns_go_on_when_their_numbers_wrap),
        WITH_RING(a_counter_that_cannot_be_right_gives_no_room),
        WITH_RING(a_sleeper_is_told_of_once_a_sleep),
        cmocka_unit_test(small_frames_commit_few_pages_of_the_file),
        WITH_RING(memory_that_cannot_be_had_is_an_error),
        WITH_RING(no_frame_and_no_wake_up_is_lost_between_threads),
    };
    return cmocka_run_group_tests_name("base.slots", tests, NULL, NULL);
}
