/* SPDX-License-Identifier: Apache-2.0
 * Ranks that share cores: by affinity masks, and by the quota of cgroups. */
#include "cpus.h"
#include "crowding.h"

#include <sched.h>

#include "unit_test.h"

/* Ranks of host 0 unless said otherwise, with equal masks of two CPUs. */
static void fill(control_card *cards, int ranks)
{
    for (int p = 0; p < ranks; p++)
        cards[p] = (control_card){.rank = p, .cpus = 2, .cpu_set = 7};
}

static void ranks_of_one_mask_are_counted_against_its_cpus(void **state)
{
    control_card cards[4];
    fill(cards, 4);
    assert_true(crowding_found(cards, 4, 0, 0));
    assert_true(crowding_found(cards, 3, 2, 0));
    assert_false(crowding_found(cards, 2, 1, 0));
}

static void bound_ranks_have_cpus_of_their_own(void **state)
{
    control_card cards[4];
    fill(cards, 4);
    for (int p = 0; p < 4; p++) {
        cards[p].cpus = 1;
        cards[p].cpu_set = (uint32_t)p;
    }
    assert_false(crowding_found(cards, 4, 3, 0));
    cards[2].cpu_set = 3; /* two on the CPU of rank 3 */
    assert_true(crowding_found(cards, 4, 3, 0));
    assert_false(crowding_found(cards, 4, 0, 0));
}

static void ranks_of_other_hosts_do_not_count(void **state)
{
    control_card cards[4];
    fill(cards, 4);
    cards[1].host[0] = cards[3].host[0] = 1;
    assert_false(crowding_found(cards, 4, 0, 0));
    assert_false(crowding_found(cards, 4, 3, 0));
}

static void a_quota_is_for_all_ranks_of_the_host(void **state)
{
    control_card cards[2];
    fill(cards, 2);
    cards[1].cpu_set = 8;
    assert_false(crowding_found(cards, 2, 0, 2.0));
    assert_true(crowding_found(cards, 2, 0, 1.5));
}

static void the_mask_is_that_of_the_thread(void **state)
{
    cpu_set_t before, one;
    size_t first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const cpus_allowed all = cpus_read();
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const cpus_allowed bound = cpus_read();
    sched_setaffinity(0, sizeof before, &before);
    assert_int_equal(all.count, CPU_COUNT(&before));
    assert_int_equal(bound.count, 1);
    assert_int_equal(all.set == bound.set, CPU_COUNT(&before) == 1);
    assert_int_equal(all.set, cpus_read().set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_mask_are_counted_against_its_cpus),
        cmocka_unit_test(bound_ranks_have_cpus_of_their_own),
        cmocka_unit_test(ranks_of_other_hosts_do_not_count),
        cmocka_unit_test(a_quota_is_for_all_ranks_of_the_host),
        cmocka_unit_test(the_mask_is_that_of_the_thread),
    };
    return cmocka_run_group_tests_name("coll.crowding", tests, NULL, NULL);
}
