/* SPDX-License-Identifier: Apache-2.0
 * Regions and the references into them. */
#include "heap.h"
#include "regions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

enum { BYTES = 4096, MOST = 16384 };

static char memory[16 * BYTES];

static void add(void *ptr, size_t bytes)
{
    assert_int_equal(ring_mem_register(ptr, bytes), RING_OK);
}

static void drop(void *ptr)
{
    assert_int_equal(ring_mem_deregister(ptr), RING_OK);
}

static void refused(ring_status status, ring_status expected, const char *word)
{
    assert_int_equal(status, expected);
    assert_non_null(strstr(fail_text(), word));
    assert_null(strchr(fail_text(), '\n'));
}

/* ---- References ------------------------------------------------------------------- */

static void references_lead_back_within_their_bounds(void **state)
{
    add(memory, BYTES);
    const uint64_t ref = region_ref(memory, BYTES);
    assert_true(ref != 0);
    assert_true(region_ref(memory + 7, BYTES - 7) == ref + 7);
    assert_ptr_equal(region_address(ref, BYTES), memory);
    assert_ptr_equal(region_address(ref + 7, BYTES - 7), memory + 7);
    assert_null(region_address(ref + 7, BYTES - 6));
    assert_null(region_address(ref, BYTES + 1));
    assert_null(region_address(ref, SIZE_MAX));
    assert_null(region_address(ref + BYTES, 1));
    assert_null(region_address(ref - 1, 1)); /* the end of the space before */
    drop(memory);
}

static void memory_across_a_bound_has_no_reference(void **state)
{
    add(memory + BYTES, BYTES);
    add(memory + 2 * BYTES, BYTES); /* a neighbour */
    assert_true(region_ref(memory + BYTES - 1, 2) == 0);
    assert_true(region_ref(memory + BYTES, BYTES + 1) == 0);
    assert_true(region_ref(memory + BYTES, SIZE_MAX) == 0);
    assert_true(region_ref(memory + 3 * BYTES, 1) == 0);
    assert_true(region_ref(NULL, 1) == 0);
    assert_true(region_ref(memory + 2 * BYTES, BYTES) != 0);
    drop(memory + BYTES);
    drop(memory + 2 * BYTES);
}

static void the_heap_is_a_shared_region(void **state)
{
    void *ptr;
    region r;
    assert_int_equal(ring_mem_alloc(&ptr, BYTES), RING_OK);
    const uint64_t ref = region_ref((char *)ptr + 9, 8);
    assert_true(region_find(ref, &r));
    assert_int_equal(r.id, REGION_HEAP_ID);
    assert_int_equal(r.kind, REGION_SHARED);
    assert_ptr_equal(region_address(ref, 8), (char *)ptr + 9);
    assert_null(region_address(ref, heap_span()));
    assert_int_equal(ring_mem_free(ptr), RING_OK);
}

static void a_plain_region_is_found_by_its_references(void **state)
{
    region r;
    add(memory + 5, 100);
    assert_true(region_find(region_ref(memory + 50, 1), &r));
    assert_int_equal(r.kind, REGION_PLAIN);
    assert_ptr_equal(r.base, memory + 5);
    assert_int_equal(r.bytes, 100);
    drop(memory + 5);
}

static void made_up_references_lead_nowhere(void **state)
{
    region r;
    add(memory, BYTES);
    const uint64_t step = UINT64_C(1) << REGION_OFFSET_BITS, ref = region_ref(memory, 1);
    const uint64_t wrong[] = {0, 5, UINT64_MAX, ref + step};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(region_find(wrong[i], &r));
        assert_null(region_address(wrong[i], 1));
    }
    drop(memory);
}

static void a_reference_to_what_is_gone_stays_dead(void **state)
{
    add(memory, BYTES);
    const uint64_t old = region_ref(memory, 1);
    drop(memory);
    for (int i = 0; i < MOST - 1; i++) {
        assert_null(region_address(old, 1));
        add(memory, BYTES);
        assert_true(region_ref(memory, 1) != old);
        drop(memory);
    }
}

/* ---- Registering ------------------------------------------------------------------ */

static void overlaps_are_refused_whatever_their_order(void **state)
{
    char *middle = memory + 4 * BYTES;
    add(middle, 2 * BYTES);
    const struct {
        char *at;
        size_t bytes;
    } wrong[] = {{middle, 2 * BYTES},
                 {middle, 1},
                 {middle - 1, 2},
                 {middle + BYTES, BYTES},
                 {middle + 2 * BYTES - 1, 1},
                 {middle - BYTES, 4 * BYTES}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(ring_mem_register(wrong[i].at, wrong[i].bytes), RING_ERR_ARGUMENT, "overlap");
    add(middle - BYTES, BYTES);
    add(middle + 2 * BYTES, BYTES);
    drop(middle);
    drop(middle - BYTES);
    drop(middle + 2 * BYTES);
}

static void what_is_no_memory_is_refused(void **state)
{
    void *ptr;
    refused(ring_mem_register(NULL, 1), RING_ERR_ARGUMENT, "not valid memory");
    refused(ring_mem_register(memory, 0), RING_ERR_ARGUMENT, "not valid memory");
    refused(ring_mem_register(memory, SIZE_MAX), RING_ERR_ARGUMENT, "not valid memory");
    refused(ring_mem_register(memory, (size_t)1 << 62), RING_ERR_ARGUMENT, "not valid memory");
    assert_int_equal(ring_mem_alloc(&ptr, BYTES), RING_OK);
    refused(ring_mem_register(ptr, BYTES), RING_ERR_ARGUMENT, "ring_mem_alloc");
    refused(ring_mem_register((char *)heap_base() - 1, 2), RING_ERR_ARGUMENT, "ring_mem_alloc");
    assert_int_equal(ring_mem_free(ptr), RING_OK);
}

static void what_was_not_registered_is_not_deregistered(void **state)
{
    refused(ring_mem_deregister(memory), RING_ERR_ARGUMENT, "ring_mem_deregister");
    add(memory, BYTES);
    refused(ring_mem_deregister(memory + 1), RING_ERR_ARGUMENT, "not given");
    refused(ring_mem_deregister(NULL), RING_ERR_ARGUMENT, "not given");
    drop(memory);
    refused(ring_mem_deregister(memory), RING_ERR_ARGUMENT, "not given");
}

static void what_a_call_uses_stays(void **state)
{
    assert_true(region_hold(memory, 1) == 0);
    region_release(0);
    add(memory, BYTES);
    const uint64_t one = region_hold(memory, 10), other = region_hold(memory + 10, 10);
    assert_true(one == region_ref(memory, 10));
    refused(ring_mem_deregister(memory), RING_ERR_USAGE, "running calls (2)");
    region_release(one);
    refused(ring_mem_deregister(memory), RING_ERR_USAGE, "running calls (1)");
    region_release(other);
    drop(memory);
}

/* In a scrambled order, so that both ends and the middle of the list are hit. */
static size_t scrambled(size_t i)
{
    return (i * 7919) % MOST;
}

static void as_many_as_promised_fit_and_no_more(void **state)
{
    char *bytes = malloc(2 * MOST + 2);
    for (size_t i = 0; i < MOST; i++)
        add(bytes + 2 * scrambled(i), 1);
    refused(ring_mem_register(bytes + 2 * MOST, 1), RING_ERR_MEMORY, "16384");
    for (size_t i = 0; i < MOST; i++) {
        assert_ptr_equal(region_address(region_ref(bytes + 2 * i, 1), 1), bytes + 2 * i);
        assert_true(region_ref(bytes + 2 * i + 1, 1) == 0);
    }
    for (size_t i = MOST; i-- > 0;)
        drop(bytes + 2 * scrambled(i));
    assert_true(region_ref(bytes, 1) == 0);
    free(bytes);
}

/* ---- Threads and forks ------------------------------------------------------------- */

static void *use_own_part(void *part)
{
    char *mine = part;
    for (int i = 0; i < 2000; i++) {
        if (ring_mem_register(mine, BYTES) != RING_OK)
            return "registering failed";
        const uint64_t ref = region_hold(mine + 1, 8);
        if (region_address(ref, 8) != mine + 1 || ring_mem_deregister(mine) != RING_ERR_USAGE)
            return "not held";
        region_release(ref);
        if (ring_mem_deregister(mine) != RING_OK)
            return "deregistering failed";
    }
    return NULL;
}

static void threads_register_at_the_same_time(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_own_part, memory + i * BYTES), 0);
    for (int i = 0; i < 4; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
}

/* Its exit status is the number of the first thing that is wrong. */
static int child_starts_anew(uint64_t parents)
{
    if (region_ref(memory, 1) != 0 || region_address(parents, 1) != NULL)
        return 1;
    if (ring_mem_deregister(memory) != RING_ERR_ARGUMENT)
        return 2;
    region_release(parents);
    if (ring_mem_register(memory, BYTES) != RING_OK || region_ref(memory, 1) == 0)
        return 3;
    return ring_mem_deregister(memory) == RING_OK ? 0 : 4;
}

static void a_forked_child_starts_without_regions(void **state)
{
    int status;
    add(memory, BYTES);
    const uint64_t ref = region_hold(memory, 1);
    const pid_t child = fork();
    if (child == 0)
        _exit(child_starts_anew(ref));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ptr_equal(region_address(ref, 1), memory);
    region_release(ref);
    drop(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_lead_back_within_their_bounds),
        cmocka_unit_test(memory_across_a_bound_has_no_reference),
        cmocka_unit_test(the_heap_is_a_shared_region),
        cmocka_unit_test(a_plain_region_is_found_by_its_references),
        cmocka_unit_test(made_up_references_lead_nowhere),
        cmocka_unit_test(a_reference_to_what_is_gone_stays_dead),
        cmocka_unit_test(overlaps_are_refused_whatever_their_order),
        cmocka_unit_test(what_is_no_memory_is_refused),
        cmocka_unit_test(what_was_not_registered_is_not_deregistered),
        cmocka_unit_test(what_a_call_uses_stays),
        cmocka_unit_test(as_many_as_promised_fit_and_no_more),
        cmocka_unit_test(threads_register_at_the_same_time),
        cmocka_unit_test(a_forked_child_starts_without_regions),
    };
    return cmocka_run_group_tests_name("memory.regions", tests, NULL, NULL);
}
