/* SPDX-License-Identifier: Apache-2.0
 * Buffers that nobody registered, over links that reach memory: whatever is done to them between
 * calls, and to other memory meanwhile, a call sees what they hold now. Over the double of
 * libibverbs, whose registrations keep the pages they were made of.
 * Usage: test_coll_cached [short|copied], for a limit on what is registered, and where nothing that
 * nobody registered may be */
#include "harness.h"
#include "pinned.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, COUNT = 40001, BYTES = COUNT * sizeof(int32_t), PAGE = 4096 };
enum { WHOLE = (BYTES + PAGE - 1) / PAGE * PAGE };

static int rounds(void)
{
    return (int)harness_number("RING_TEST_REMAPS", 100);
}

static void fill(int rank, int32_t *x, int round)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (rank + 1) * (i % 11) + round;
}

static int check(const int32_t *x, int round)
{
    for (int i = 0; i < COUNT; i++)
        EXPECT(x[i] == 3 * (i % 11) + RANKS * round, "element %d of round %d is %d", i, round,
               x[i]);
    return 0;
}

static int reduce(ring_comm *comm, int32_t *x, int round)
{
    fill(ring_comm_rank(comm), x, round);
    EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_INT32, RING_SUM, comm, NULL));
    return check(x, round);
}

static void *map(void *at)
{
    void *memory = mmap(at, WHOLE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static int run(harness_body body, void *arg)
{
    return harness_run(HARNESS_THREADS, RANKS, body, arg, NULL);
}

/* ---- Changes to a buffer ------------------------------------------------------------ */

static void *leave(void *memory)
{
    return memory;
}

/* Mostly at the same address, or that of another rank's before. */
static void *unmap_and_map(void *memory)
{
    pinned_pages_go(memory, WHOLE);
    munmap(memory, WHOLE);
    return map(NULL);
}

static void *map_over(void *memory)
{
    pinned_pages_go(memory, WHOLE);
    return map(memory);
}

static void *move(void *memory)
{
    void *room = map(NULL);
    return mremap(memory, WHOLE, WHOLE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
}

static void *discard(void *memory)
{
    pinned_pages_go(memory, WHOLE);
    madvise(memory, WHOLE, MADV_DONTNEED);
    return memory;
}

static void *discard_a_page(void *memory)
{
    pinned_pages_go((char *)memory + 5 * (size_t)PAGE, PAGE);
    madvise((char *)memory + 5 * (size_t)PAGE, PAGE, MADV_DONTNEED);
    return memory;
}

/* Never without any page there: another thread would map its own. */
static void *map_over_a_page(void *memory)
{
    char *page = (char *)memory + WHOLE - PAGE;
    pinned_pages_go(page, PAGE);
    mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return memory;
}

static int change_buffers(int rank, int ranks, harness_board *board, void *arg)
{
    static void *(*const changes[])(void *) = {leave,   unmap_and_map,  map_over,       move,
                                               discard, discard_a_page, map_over_a_page};
    ring_comm *comm;
    void *memory = map(NULL);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < rounds(); round++) {
        if (reduce(comm, memory, round) != 0)
            return 1;
        memory = changes[(size_t)round % (sizeof changes / sizeof *changes)](memory);
        EXPECT(memory != NULL, "round %d", round);
    }
    ring_comm_destroy(comm);
    munmap(memory, WHOLE);
    return 0;
}

static void test_changed_buffers(void **state)
{
    assert_int_equal(run(change_buffers, NULL), 0);
}

/* free() unmaps what is large. */
static int allocate_anew(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < rounds(); round++) {
        int32_t *memory = malloc(BYTES);
        EXPECT(memory != NULL, "round %d", round);
        if (reduce(comm, memory, round) != 0)
            return 1;
        pinned_pages_go(memory, BYTES);
        free(memory);
        malloc_trim(0);
    }
    ring_comm_destroy(comm);
    return 0;
}

static void test_allocated_buffers(void **state)
{
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and it stays there */
    assert_int_equal(run(allocate_anew, NULL), 0);
}

/* ---- Other threads ------------------------------------------------------------------ */

enum { BUFFERS = 3 };

/* One is at rest, and its pages are exchanged, while a call uses another. */
typedef struct remapper {
    _Atomic int done; /* rounds of the rank */
    _Atomic bool over;
    void *buffers[BUFFERS];
} remapper;

static void *remap_idle(void *arg)
{
    remapper *r = arg;
    for (int round = 0; !r->over; round++) {
        void *other = map(NULL);
        memset(other, 1, PAGE);
        munmap(other, WHOLE);
        madvise(r->buffers[BUFFERS - 1], WHOLE, MADV_DONTNEED);
    }
    return NULL;
}

static int reduce_beside(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    remapper r = {0};
    pthread_t thread;
    for (int i = 0; i < BUFFERS; i++)
        r.buffers[i] = map(NULL);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (reduce(comm, r.buffers[BUFFERS - 1], 0) != 0) /* so that it is watched */
        return 1;
    pthread_create(&thread, NULL, remap_idle, &r);
    int failed = 0;
    for (int round = 0; round < rounds() && failed == 0; round++) {
        void *memory = r.buffers[round % (BUFFERS - 1)];
        failed = reduce(comm, memory, round);
        if (round % 4 == 3)
            failed |= map_over(memory) == NULL;
    }
    r.over = true;
    pthread_join(thread, NULL);
    ring_comm_destroy(comm);
    for (int i = 0; i < BUFFERS; i++)
        munmap(r.buffers[i], WHOLE);
    return failed;
}

static void test_other_threads(void **state)
{
    assert_int_equal(run(reduce_beside, NULL), 0);
}

/* ---- Users' registrations ----------------------------------------------------------- */

/* While a call is under way on automatic regions, its user registers what overlaps. */
static int register_amid_calls(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    char *memory = mmap(NULL, 2 * WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                        0);
    int32_t *x = (int32_t *)(void *)memory;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < rounds(); round++) {
        char *at = round % 3 == 0 ? memory : memory + PAGE; /* all of it, or a part and more */
        ring_work *work = NULL;
        ring_call options = RING_CALL_INIT;
        options.work = &work;
        fill(rank, x, round);
        EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_INT32, RING_SUM, comm, &options));
        EXPECT_OK(ring_mem_register(at, WHOLE));
        EXPECT_OK(ring_wait(&work));
        if (check(x, round) != 0 || reduce(comm, x, round) != 0)
            return 1;
        EXPECT_OK(ring_mem_deregister(at));
    }
    ring_comm_destroy(comm);
    munmap(memory, 2 * WHOLE);
    return 0;
}

static void test_users_registrations(void **state)
{
    assert_int_equal(run(register_amid_calls, NULL), 0);
}

/* A buffer of which a part is registered is held by nobody, so that part may end amid the call,
 * when the peer has been told of messages and not taken them. */
static int deregister_amid_calls(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LONG = 32 * WHOLE, ELEMENTS = LONG / sizeof(int32_t) };
    ring_comm *comm;
    ring_work *work = NULL;
    ring_call options = RING_CALL_INIT;
    int32_t *x = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    options.work = &work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < 4; round++) {
        x[0] = x[ELEMENTS - 1] = rank == 0 ? round : 0;
        EXPECT_OK(ring_barrier(comm, NULL));
        if (rank == 0)
            EXPECT_OK(ring_mem_register(x, LONG / 2));
        else
            usleep(20000);
        EXPECT_OK(ring_broadcast(x, x, ELEMENTS, RING_INT32, 0, comm, &options));
        if (rank == 0)
            EXPECT_OK(ring_mem_deregister(x));
        EXPECT_OK(ring_wait(&work));
        EXPECT(x[0] == round && x[ELEMENTS - 1] == round, "%d, %d", x[0], x[ELEMENTS - 1]);
    }
    ring_comm_destroy(comm);
    munmap(x, LONG);
    return 0;
}

static void test_parts_that_users_registered(void **state)
{
    setenv("RING_ALGO", "chain", 1);
    assert_int_equal(run(deregister_amid_calls, NULL), 0);
    unsetenv("RING_ALGO");
}

/* ---- Children ----------------------------------------------------------------------- */

/* A data loader's worker: it has plain memory, that of its parent too, and none of its links. */
static void use_memory(char *parents)
{
    char *own = malloc(BYTES);
    memset(own, 1, BYTES);
    memset(parents, 2, BYTES);
    munmap(parents, WHOLE);
    free(own);
    malloc_trim(0);
    _exit(own != NULL ? 0 : 1);
}

static int fork_amid_calls(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    void *memory = map(NULL);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < rounds(); round++) {
        const bool forks = round % 5 == rank;
        const pid_t child = forks ? fork() : 0;
        if (forks && child == 0)
            use_memory(memory);
        if (reduce(comm, memory, round) != 0)
            return 1;
        int status = 0;
        EXPECT(!forks || (waitpid(child, &status, 0) == child && status == 0), "a child: %d",
               status);
    }
    ring_comm_destroy(comm);
    munmap(memory, WHOLE);
    return 0;
}

static void test_children(void **state)
{
    assert_int_equal(run(fork_amid_calls, NULL), 0);
}

/* ---- Bounds ------------------------------------------------------------------------- */

enum { MANY = 300 };

/* More buffers than are kept. */
static int use_many(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    char *memory = mmap(NULL, (size_t)MANY * WHOLE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int i = 0; i < MANY; i++)
        if (reduce(comm, (int32_t *)(void *)(memory + (size_t)i * WHOLE), i) != 0)
            return 1;
    const pinned_counts now = pinned_count();
    EXPECT(now.registrations < 4 * MANY, "%llu", (unsigned long long)now.registrations);
    ring_comm_destroy(comm);
    munmap(memory, (size_t)MANY * WHOLE);
    return 0;
}

static void test_many_buffers(void **state)
{
    assert_int_equal(run(use_many, NULL), 0);
}

/* Automatic regions fill the registrable memory: later links and users' regions get room
 * nevertheless. */
static int come_later(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *other;
    void *shared;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    char *memory = mmap(NULL, (size_t)MANY * WHOLE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < MANY; i++)
        if (reduce(comm, (int32_t *)(void *)(memory + (size_t)i * WHOLE), i) != 0)
            return 1;
    EXPECT_OK(ring_mem_alloc(&shared, BYTES));
    EXPECT_OK(ring_comm_dup(comm, &other));
    const uint64_t reads = pinned_count().reads;
    if (reduce(other, shared, 1) != 0)
        return 1;
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT(pinned_count().reads > reads, "it was copied");
    ring_comm_destroy(other);
    ring_comm_destroy(comm);
    ring_mem_free(shared);
    munmap(memory, (size_t)MANY * WHOLE);
    return 0;
}

static void test_short_of_locked_memory(void **state)
{
    assert_int_equal(run(come_later, NULL), 0);
}

static void test_copied(void **state)
{
    assert_int_equal(run(use_many, NULL), 0);
    assert_true(pinned_count().reads == 0);
}

/* ------------------------------------------------------------------------------------- */

static int nothing_is_left(void **state)
{
    return pinned_count().registrations == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_teardown(name, nothing_is_left)
    const struct CMUnitTest tests[] = {
        TEST(test_changed_buffers),
        TEST(test_allocated_buffers),
        TEST(test_other_threads),
        TEST(test_users_registrations),
        TEST(test_parts_that_users_registered),
        TEST(test_children),
        TEST(test_many_buffers),
    };
    const struct CMUnitTest scarce[] = {TEST(test_short_of_locked_memory)};
    const struct CMUnitTest copied[] = {TEST(test_copied)};
    setenv("RING_TRANSPORT", "verbs", 1);
    setenv("RING_TIMEOUT", "20", 1);
    if (!pinned_is_watched())
        return 77;
    if (argc > 1 && strcmp(argv[1], "short") == 0)
        return cmocka_run_group_tests_name("coll.cached.short", scarce, NULL, NULL);
    if (argc > 1 && strcmp(argv[1], "copied") == 0)
        return cmocka_run_group_tests_name("coll.cached.copied", copied, NULL, NULL);
    return cmocka_run_group_tests_name("coll.cached", tests, NULL, NULL);
}
