/* SPDX-License-Identifier: Apache-2.0
 * Regions that nobody registered: when they are made, kept and ended. */
#include "automatic.h"
#include "heap.h"
#include "region_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { PAGE = 4096, BYTES = AUTOMATIC_LEAST_BYTES, MOST = 3 * BYTES, FILE_BYTES = BYTES + 3 };

static struct {
    _Atomic uint64_t id;
    _Atomic int begun, times;
    _Atomic bool is_slow;
} last_end;

static void note_end(uint16_t id, uint64_t offset, size_t bytes)
{
    last_end.begun++;
    if (last_end.is_slow)
        usleep(20000);
    last_end.id = id;
    last_end.times++;
}

static char *map(void *at, size_t bytes)
{
    char *memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static uint64_t id_of(uint64_t ref)
{
    return region_id_of(ref);
}

/* Held for a moment. */
static uint64_t use(const void *memory, size_t bytes)
{
    const uint64_t ref = automatic_hold(memory, bytes);
    region_release(ref);
    return id_of(ref);
}

static size_t regions(void)
{
    automatic_counts counts;
    automatic_count(&counts);
    return counts.regions;
}

static int begin(void **state)
{
    automatic_enter();
    last_end.times = 0;
    return 0;
}

static int end(void **state)
{
    automatic_set_most(0);
    automatic_leave();
    return regions() == 0 && !regions_are_registered() ? 0 : -1;
}

/* ---- Making ----------------------------------------------------------------------- */

static void a_large_buffer_is_made_a_region_and_kept(void **state)
{
    static char small[AUTOMATIC_LEAST_BYTES - 1];
    char *memory = map(NULL, BYTES);
    const uint64_t ref = automatic_hold(memory, BYTES);
    assert_true(ref != 0);
    assert_true(region_ref(memory + 9, 8) == ref + 9);
    region_release(ref);
    assert_true(use(memory + BYTES / 2, BYTES / 2) == 0); /* small: carried */
    assert_true(automatic_hold(small, sizeof small) == 0);
    assert_true(use(memory, BYTES) == id_of(ref));
    assert_int_equal(last_end.times, 0);
    munmap(memory, BYTES);
}

static void a_part_of_a_region_is_found_in_it(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    const uint64_t id = use(memory, 4 * BYTES);
    assert_true(use(memory + BYTES + 1, 2 * BYTES) == id);
    munmap(memory, 4 * BYTES);
}

static void what_overlaps_makes_way(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    const uint64_t first = use(memory, BYTES), second = use(memory + 3 * BYTES, BYTES);
    assert_true(first != second);
    const uint64_t whole = use(memory, 4 * BYTES);
    assert_true(whole != 0 && whole != first && whole != second);
    assert_int_equal(last_end.times, 2);
    assert_int_equal(regions(), 1);
    munmap(memory, 4 * BYTES);
}

static void what_calls_use_does_not(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    const uint64_t ref = automatic_hold(memory, 2 * BYTES);
    assert_true(automatic_hold(memory + BYTES, 2 * BYTES) == 0);
    assert_true(region_ref(memory, 2 * BYTES) == ref);
    region_release(ref);
    assert_true(use(memory + BYTES, 2 * BYTES) != 0);
    munmap(memory, 4 * BYTES);
}

static void memory_of_others_is_left_alone(void **state)
{
    void *shared;
    static char small[1000];
    assert_int_equal(ring_mem_alloc(&shared, BYTES), RING_OK);
    assert_true(use(shared, BYTES) == REGION_HEAP_ID);
    assert_true(use(small, sizeof small) == 0);
    char *file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(use(file, FILE_BYTES) == 0);
    assert_true(use(file, FILE_BYTES) == 0); /* from memory */
    assert_int_equal(regions(), 0);
    munmap(file, FILE_BYTES);
    ring_mem_free(shared);
}

/* ---- Changes ---------------------------------------------------------------------- */

static void other_pages_at_an_address_are_another_region(void **state)
{
    char *memory = map(NULL, BYTES);
    uint64_t before = use(memory, BYTES);
    for (int round = 0; round < 2000; round++) {
        map(memory, BYTES);
        const uint64_t now = use(memory, BYTES);
        assert_true(now != 0 && now != before);
        assert_true(last_end.id == before);
        before = now;
    }
    assert_int_equal(regions(), 1);
    munmap(memory, BYTES);
}

static void a_call_keeps_what_it_uses(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    use(memory, 4 * BYTES); /* of which this call uses a part */
    const uint64_t ref = automatic_hold(memory, BYTES);
    munmap(memory + 2 * BYTES, 2 * BYTES);
    assert_true(use(memory, 2 * BYTES) == 0); /* for no further call */
    assert_true(region_ref(memory, BYTES) == ref);
    assert_int_equal(last_end.times, 0);
    region_release(ref);
    assert_int_equal(last_end.times, 1);
    const uint64_t id = use(memory, 2 * BYTES);
    assert_true(id != 0 && id != id_of(ref));
    munmap(memory, 2 * BYTES);
}

static void what_changed_ends_with_the_next_call(void **state)
{
    char *memory = map(NULL, BYTES), *other = map(NULL, BYTES);
    use(memory, BYTES);
    munmap(memory, BYTES);
    assert_int_equal(last_end.times, 0);
    for (int i = 0; i < 10000 && last_end.times == 0; i++)
        use(other, BYTES); /* once it is noticed */
    assert_int_equal(last_end.times, 1);
    munmap(other, BYTES);
}

/* free() unmaps, and may be called with any lock held. */
static void memory_is_unmapped_whoever_has_the_locks(void **state)
{
    char *memory = map(NULL, BYTES), *large = malloc(64 * BYTES);
    use(memory, BYTES);
    use(large, 64 * BYTES);
    pthread_mutex_lock(&region_table.lock);
    munmap(memory, BYTES);
    free(large);
    pthread_mutex_unlock(&region_table.lock);
    memory = map(NULL, 2 * BYTES);
    use(memory, 2 * BYTES);
    assert_int_equal(last_end.times, 2);
    munmap(memory, 2 * BYTES);
}

/* ---- Users' regions --------------------------------------------------------------- */

static void users_registrations_go_first(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    const uint64_t automatic = use(memory, 2 * BYTES);
    assert_int_equal(ring_mem_register(memory + BYTES, 2 * BYTES), RING_OK);
    assert_int_equal(last_end.times, 1);
    const uint64_t id = id_of(region_ref(memory + BYTES, BYTES));
    assert_true(id != 0 && id != automatic);
    assert_true(use(memory + BYTES, BYTES) == id);
    assert_true(use(memory, 2 * BYTES) == 0); /* in part */
    assert_int_equal(ring_mem_deregister(memory + BYTES), RING_OK);
    assert_true(use(memory, 2 * BYTES) != 0);
    munmap(memory, 4 * BYTES);
}

static void users_registrations_wait_for_calls(void **state)
{
    char *memory = map(NULL, 4 * BYTES);
    const uint64_t ref = automatic_hold(memory, 2 * BYTES);
    assert_int_equal(ring_mem_register(memory + BYTES, 2 * BYTES), RING_OK);
    assert_int_equal(ring_mem_register(memory + 2 * BYTES, BYTES), RING_ERR_ARGUMENT);
    assert_true(region_ref(memory + BYTES, BYTES) == ref + BYTES);
    assert_true(use(memory + 2 * BYTES, BYTES) == 0);
    assert_true(use(memory, BYTES) == 0); /* or it would wait for ever */
    region_release(ref);
    const uint64_t id = id_of(region_ref(memory + BYTES, 2 * BYTES));
    assert_true(id != 0 && id != id_of(ref));
    assert_int_equal(ring_mem_deregister(memory + BYTES), RING_OK);
    munmap(memory, 4 * BYTES);
}

static void a_registration_that_waits_is_given_up(void **state)
{
    char *memory = map(NULL, BYTES);
    const uint64_t ref = automatic_hold(memory, BYTES);
    assert_int_equal(ring_mem_deregister(memory), RING_ERR_ARGUMENT);
    assert_int_equal(ring_mem_register(memory, BYTES), RING_OK);
    assert_int_equal(ring_mem_deregister(memory), RING_OK);
    assert_int_equal(ring_mem_deregister(memory), RING_ERR_ARGUMENT);
    region_release(ref);
    assert_true(region_ref(memory, 1) == 0);
    munmap(memory, BYTES);
}

/* ---- Bounds ----------------------------------------------------------------------- */

static void the_least_recently_used_makes_way(void **state)
{
    char *memory[4];
    uint64_t id[4];
    automatic_set_most(MOST);
    for (int i = 0; i < 4; i++)
        memory[i] = map(NULL, BYTES);
    for (int i = 0; i < 3; i++)
        id[i] = use(memory[i], BYTES);
    assert_true(use(memory[0], BYTES) == id[0]);
    assert_int_equal(last_end.times, 0);
    id[3] = use(memory[3], BYTES);
    assert_int_equal(last_end.times, 1);
    assert_true(last_end.id == id[1]);
    const uint64_t held = automatic_hold(memory[0], BYTES);
    use(memory[1], BYTES);
    use(memory[2], BYTES);
    use(memory[3], BYTES);
    assert_true(id_of(held) == id[0] && id_of(region_ref(memory[0], BYTES)) == id[0]);
    region_release(held);
    assert_int_equal(regions(), 3);
    for (int i = 0; i < 4; i++)
        munmap(memory[i], BYTES);
}

static void what_is_larger_than_all_that_is_kept_is_carried(void **state)
{
    char *memory = map(NULL, MOST + BYTES);
    automatic_set_most(MOST);
    const uint64_t one = automatic_hold(memory, MOST);
    assert_true(one != 0);
    assert_true(automatic_hold(memory + MOST, BYTES) == 0); /* all is in use */
    region_release(one);
    assert_true(use(memory, MOST + BYTES) == 0);
    assert_true(use(memory + MOST, BYTES) != 0);
    munmap(memory, MOST + BYTES);
}

static void only_so_many_are_kept(void **state)
{
    uint64_t id[2 * AUTOMATIC_MOST] = {0};
    char *memory = map(NULL, sizeof id / sizeof *id * (size_t)BYTES);
    automatic_set_most(SIZE_MAX);
    for (size_t i = 0; i < sizeof id / sizeof *id; i++) {
        id[i] = use(memory + i * BYTES, BYTES);
        assert_true(id[i] != 0);
        for (size_t k = i > AUTOMATIC_MOST ? i - AUTOMATIC_MOST : 0; k < i; k++)
            assert_true(id[k] != id[i]);
    }
    assert_int_equal(regions(), AUTOMATIC_MOST);
    munmap(memory, sizeof id / sizeof *id * (size_t)BYTES);
}

static void idle_ones_are_given_up_on_demand(void **state)
{
    char *memory = map(NULL, 2 * BYTES);
    assert_false(automatic_drop_idle());
    const uint64_t ref = automatic_hold(memory, BYTES);
    use(memory + BYTES, BYTES);
    assert_true(automatic_drop_idle());
    assert_int_equal(regions(), 1);
    assert_false(automatic_drop_idle());
    region_release(ref);
    munmap(memory, 2 * BYTES);
}

/* ---- Threads, children ------------------------------------------------------------ */

static void *drop(void *unused)
{
    (void)automatic_drop_idle();
    return unused;
}

static void what_others_give_up_is_awaited(void **state)
{
    pthread_t other;
    char *memory = map(NULL, BYTES);
    use(memory, BYTES);
    const int begun = last_end.begun, times = last_end.times;
    last_end.is_slow = true;
    pthread_create(&other, NULL, drop, NULL);
    while (last_end.begun == begun)
        usleep(100);
    assert_false(automatic_drop_idle());
    assert_int_equal(last_end.times - times, 1);
    pthread_join(other, NULL);
    last_end.is_slow = false;
    munmap(memory, BYTES);
}

static _Atomic bool failed;

static void *use_and_remap(void *arg)
{
    char *memory = arg;
    for (int round = 0; round < 500 && !failed; round++) {
        const uint64_t ref = automatic_hold(memory, BYTES);
        failed |= ref != 0 && region_ref(memory, BYTES) != ref;
        region_release(ref);
        if (round % 3 == 0)
            map(memory, BYTES);
        else if (round % 3 == 1)
            madvise(memory, BYTES, MADV_DONTNEED);
        else if (ring_mem_register(memory, BYTES) == RING_OK)
            failed |= ring_mem_deregister(memory) != RING_OK;
    }
    return NULL;
}

static void threads_use_and_change_memory(void **state)
{
    pthread_t threads[4];
    char *memory = map(NULL, 4 * BYTES);
    automatic_set_most(MOST);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use_and_remap, memory + (size_t)i * BYTES);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_false(failed);
    munmap(memory, 4 * BYTES);
}

/* Its exit status is the number of the first thing that is wrong. */
static int child_starts_anew(char *memory, uint64_t parents)
{
    if (regions_are_registered() || region_ref(memory, 1) != 0)
        return 1;
    region_release(parents);
    memset(memory, 7, BYTES);
    munmap(memory, BYTES);
#ifdef __SANITIZE_THREAD__ /* such children may start no threads */
    return 0;
#endif
    automatic_enter();
    char *own = map(NULL, BYTES);
    if (use(own, BYTES) == 0)
        return 2;
    automatic_leave();
    return regions_are_registered() ? 3 : 0;
}

static void a_forked_child_starts_without(void **state)
{
    int status;
    char *memory = map(NULL, BYTES);
    memset(memory, 1, BYTES);
    const uint64_t ref = automatic_hold(memory, BYTES);
    const pid_t child = fork();
    if (child == 0)
        _exit(child_starts_anew(memory, ref));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(memory[BYTES - 1], 1);
    region_release(ref);
    assert_true(use(memory, BYTES) == id_of(ref));
    munmap(memory, BYTES);
}

int main(void)
{
    static region_watcher watcher = {.gone = note_end};
    char why[200];
    watched_patience = 10;
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_large_buffer_is_made_a_region_and_kept),
        TEST(a_part_of_a_region_is_found_in_it),
        TEST(what_overlaps_makes_way),
        TEST(what_calls_use_does_not),
        TEST(memory_of_others_is_left_alone),
        TEST(other_pages_at_an_address_are_another_region),
        TEST(a_call_keeps_what_it_uses),
        TEST(what_changed_ends_with_the_next_call),
        TEST(memory_is_unmapped_whoever_has_the_locks),
        TEST(users_registrations_go_first),
        TEST(users_registrations_wait_for_calls),
        TEST(a_registration_that_waits_is_given_up),
        TEST(the_least_recently_used_makes_way),
        TEST(what_is_larger_than_all_that_is_kept_is_carried),
        TEST(only_so_many_are_kept),
        TEST(idle_ones_are_given_up_on_demand),
        TEST(what_others_give_up_is_awaited),
        TEST(threads_use_and_change_memory),
        TEST(a_forked_child_starts_without),
    };
    if (!watched_probe(why, sizeof why)) {
        printf("SKIPPED: %s\n", why);
        return 77;
    }
    region_watch(&watcher);
    return cmocka_run_group_tests_name("memory.automatic", tests, NULL, NULL);
}
