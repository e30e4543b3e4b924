/* SPDX-License-Identifier: Apache-2.0
 * Memory that goes, and other memory at the same address: a call sees what is there now, whatever
 * an adapter, a peer or a cache still has of the pages before. RING_TEST_REMAPS: how often (100).
 * Usage: test_coll_remap TRANSPORT */
#include "harness.h"
#include "pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unit_test.h"

enum { RANKS = 2, COUNT = 40001, BYTES = COUNT * sizeof(int32_t) };

static const char *transport_name;

/* A way to allocate memory, and to replace it. */
typedef struct source {
    void *(*take)(void *before);
    ring_status (*give)(void *memory);
} source;

/* Other pages in place of those before. */
static void *map_again(void *before)
{
    const int fixed = before != NULL ? MAP_FIXED : 0;
    void *memory = mmap(before, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed,
                        -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static ring_status leave(void *memory)
{
    return RING_OK;
}

static void *map_registered(void *before)
{
    void *memory = map_again(before);
    return memory != NULL && ring_mem_register(memory, BYTES) == RING_OK ? memory : NULL;
}

/* The first place that is large enough: mostly the one that was given back. */
static void *allocate(void *before)
{
    void *memory = NULL;
    return ring_mem_alloc(&memory, BYTES) == RING_OK ? memory : NULL;
}

static const source plain = {map_again, leave}, registered = {map_registered, ring_mem_deregister},
                    shared = {allocate, ring_mem_free};

static int reduce_once(ring_comm *comm, int32_t *x, int round)
{
    const int rank = ring_comm_rank(comm);
    for (int i = 0; i < COUNT; i++)
        x[i] = (rank + 1) * (i % 11) + round;
    EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_INT32, RING_SUM, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(x[i] == 3 * (i % 11) + RANKS * round, "element %d of round %d is %d", i, round,
               x[i]);
    return 0;
}

static int exchange_memory(int rank, int ranks, harness_board *board, void *arg)
{
    const source *from = arg;
    const int rounds = (int)harness_number("RING_TEST_REMAPS", 100);
    ring_comm *comm;
    void *memory = NULL;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < rounds; round++) {
        if (from != &shared)
            pinned_pages_go(memory, BYTES);
        memory = from->take(memory);
        EXPECT(memory != NULL, "round %d", round);
        if (reduce_once(comm, memory, round) != 0)
            return 1;
        EXPECT_OK(from->give(memory));
    }
    ring_comm_destroy(comm);
    if (from != &shared)
        munmap(memory, BYTES);
    return 0;
}

static void run(const source *from)
{
    const harness_kind kind = harness_kind_of(transport_name);
    assert_int_equal(harness_run(kind, RANKS, exchange_memory, (void *)(uintptr_t)from, NULL), 0);
}

static void test_plain_memory(void **state)
{
    run(&plain);
}

/* All pages of all rounds were registered, and none stays so. */
static void test_plain_memory_in_place(void **state)
{
    const uint64_t rounds = harness_number("RING_TEST_REMAPS", 100);
    if (strcmp(transport_name, "verbs") != 0)
        skip_because("only verbs registers plain memory");
    if (!pinned_is_watched())
        skip();
    const pinned_counts before = pinned_count();
    run(&plain);
    const pinned_counts after = pinned_count();
    printf("%llu rounds: %llu registrations, %llu reads of memory in place\n",
           (unsigned long long)rounds, (unsigned long long)(after.made - before.made),
           (unsigned long long)(after.reads - before.reads));
    assert_true(after.made - before.made >= RANKS * rounds);
    assert_true(after.reads - before.reads >= rounds);
    assert_true(after.registrations == before.registrations);
}

static void test_plain_memory_copied(void **state)
{
    if (strcmp(transport_name, "verbs") != 0)
        skip_because("only verbs registers plain memory");
    setenv("RING_REGISTRATION_CACHE", "0", 1);
    const pinned_counts before = pinned_count();
    run(&plain);
    const pinned_counts after = pinned_count();
    unsetenv("RING_REGISTRATION_CACHE");
    assert_true(after.reads == before.reads);
}

static void test_registered_memory(void **state)
{
    run(&registered);
}

static void test_shared_memory(void **state)
{
    run(&shared);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_memory),        cmocka_unit_test(test_plain_memory_in_place),
        cmocka_unit_test(test_plain_memory_copied), cmocka_unit_test(test_registered_memory),
        cmocka_unit_test(test_shared_memory),
    };
    if (argc != 2)
        return 2;
    transport_name = argv[1];
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests_name("coll.remap", tests, NULL, NULL);
}
