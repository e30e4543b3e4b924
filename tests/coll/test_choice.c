/* SPDX-License-Identifier: Apache-2.0
 * The tuner's choices for ranks without links: the bytes that 16-bit floats travel as. */
#include "tuner.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { MOST_RANKS = 48 };

/* A communicator that knows its world, and no more. */
static ring_comm *world_new(int ranks, bool apart, const char *algorithm)
{
    static int32_t hosts[MOST_RANKS];
    ring_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    for (int r = 0; r < MOST_RANKS; r++)
        hosts[r] = r;
    comm->ranks = ranks;
    comm->links.maps_hosts = !apart;
    comm->plan_world = (plan_world){.ranks = ranks,
                                    .hosts = apart ? ranks : 1,
                                    .host_of = apart ? hosts : NULL};
    (void)text_format(comm->settings.algo, sizeof comm->settings.algo, "%s", algorithm);
    assert_int_equal(tuner_new(comm, &comm->tuner), RING_OK);
    return comm;
}

static void world_free(ring_comm *comm)
{
    tuner_free(comm->tuner);
    free(comm);
}

/* @return the bytes that all ranks send in the call with the algorithm that is chosen for it. */
static uint64_t bytes_of(const ring_comm *comm, const call_signature *call)
{
    uint64_t sum = 0;
    tuner_choice choice;
    assert_int_equal(tuner_choose(comm->tuner, call, &choice), RING_OK);
    for (int r = 0; r < comm->ranks; r++) {
        uint64_t sent = 0, messages;
        plan *p = choice.algorithm->build(
            &(algo_call){call->collective, &comm->plan_world, r, 0, choice.chunks});
        assert_non_null(p);
        plan_traffic(p, call->count, ring_dtype_size(call->dtype), kernel_acc_size(call->dtype),
                     &sent, &messages);
        sum += sent;
        plan_free(p);
    }
    return sum;
}

/* Expects 2 (n - 1) M bytes for an all-reduce of M bytes, and half of that for a reduce-scatter:
 * ranks send their contributions, and not partial sums. */
static void large_calls_of_16_bits_send_no_sums(void **state)
{
    static const ring_dtype types[] = {RING_FLOAT16, RING_BFLOAT16, RING_FLOAT32};
    for (int ranks = 2; ranks <= MOST_RANKS; ranks += ranks < 8 ? 1 : 8) {
        for (int apart = 0; apart <= 1; apart++) {
            ring_comm *comm = world_new(ranks, apart, "");
            for (size_t t = 0; t < 2 + (size_t)!apart; t++) {
                const size_t size = ring_dtype_size(types[t]), least = ranks > 16 ? 262144 : 65536;
                for (size_t bytes = least; bytes <= 64 << 20; bytes *= 4) {
                    const size_t part = bytes / size / (size_t)ranks;
                    const uint64_t all = part * (size_t)ranks * size * ((uint64_t)ranks - 1);
                    const call_signature reduce = {.collective = PLAN_ALL_REDUCE,
                                                   .dtype = types[t],
                                                   .count = part * (size_t)ranks};
                    const call_signature scatter = {.collective = PLAN_REDUCE_SCATTER,
                                                    .dtype = types[t],
                                                    .count = part};
                    assert_int_equal(bytes_of(comm, &reduce), 2 * all);
                    assert_int_equal(bytes_of(comm, &scatter), all);
                }
            }
            world_free(comm);
        }
    }
}

/* One choice is kept for each class of calls; types do not get each other's. */
static void types_do_not_disturb_each_other(void **state)
{
    ring_comm *comm = world_new(16, true, "");
    tuner_choice wide, narrow, again;
    call_signature call = {.collective = PLAN_ALL_REDUCE, .dtype = RING_FLOAT32, .count = 1 << 20};
    assert_int_equal(tuner_choose(comm->tuner, &call, &wide), RING_OK);
    call.dtype = RING_BFLOAT16;
    call.count *= 2;
    assert_int_equal(tuner_choose(comm->tuner, &call, &narrow), RING_OK);
    call.dtype = RING_FLOAT32;
    call.count /= 2;
    assert_int_equal(tuner_choose(comm->tuner, &call, &again), RING_OK);
    assert_string_not_equal(wide.algorithm->name, narrow.algorithm->name);
    assert_string_equal(narrow.algorithm->name, "direct");
    assert_ptr_equal(again.algorithm, wide.algorithm);
    world_free(comm);
}

static void a_named_algorithm_serves_all_types(void **state)
{
    ring_comm *comm = world_new(4, false, "ring");
    tuner_choice choice;
    const call_signature call = {.collective = PLAN_ALL_REDUCE,
                                 .dtype = RING_FLOAT16,
                                 .count = 1 << 20};
    assert_int_equal(tuner_choose(comm->tuner, &call, &choice), RING_OK);
    assert_string_equal(choice.algorithm->name, "ring");
    assert_int_equal(bytes_of(comm, &call), (3 * 4 - 4) * call.count * 2); /* sums in float32 */
    world_free(comm);
}

/* A step between GPUs costs as much time as 360 KB on their link, so more bytes in fewer steps are
 * cheaper than between ranks of a host. Both choices are kept. */
static void calls_of_gpus_have_prices_of_their_own(void **state)
{
    const accelerator_terms terms = {
        .apart = true,
        .eager = 32 << 10,
        .rates = {.start = 9e-6, .message = 1e-6, .link = 360e9, .memory = 2.8e12}};
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        ring_comm *comm = world_new(ranks, false, "");
        tuner_use_device(comm->tuner, &terms);
        for (size_t bytes = 8; bytes <= 64 << 20; bytes *= 2) {
            tuner_choice host, device, again;
            const call_signature by_host = {.collective = PLAN_ALL_REDUCE,
                                            .dtype = RING_FLOAT32,
                                            .count = bytes / 4};
            call_signature by_device = by_host;
            by_device.on_device = true;
            assert_int_equal(tuner_choose(comm->tuner, &by_host, &host), RING_OK);
            assert_int_equal(tuner_choose(comm->tuner, &by_device, &device), RING_OK);
            assert_int_equal(tuner_choose(comm->tuner, &by_host, &again), RING_OK);
            assert_ptr_equal(again.algorithm, host.algorithm);
            if (bytes <= 16 << 10)
                assert_string_equal(device.algorithm->name, "oneshot");
            if (bytes == 16 << 10)
                assert_string_not_equal(host.algorithm->name, "oneshot");
            if (bytes >= 1 << 20) {
                assert_int_equal(bytes_of(comm, &by_device), 2 * ((uint64_t)ranks - 1) * bytes);
                assert_string_not_equal(device.algorithm->name, "chain"); /* it does not overlap */
            }
        }
        world_free(comm);
    }
}

/* @return the bytes that the ranks of host 0 send to other hosts in the call. */
static uint64_t wire_bytes_of(const ring_comm *comm, const call_signature *call)
{
    uint64_t sum = 0;
    tuner_choice choice;
    assert_int_equal(tuner_choose(comm->tuner, call, &choice), RING_OK);
    for (int r = 0; r < comm->ranks; r++) {
        uint64_t sent = 0, taken = 0;
        plan *p = choice.algorithm->build(
            &(algo_call){call->collective, &comm->plan_world, r, 0, choice.chunks});
        assert_non_null(p);
        plan_far_traffic(p, &comm->plan_world, call->count, ring_dtype_size(call->dtype),
                         kernel_acc_size(call->dtype), &sent, &taken);
        sum += plan_host_of(&comm->plan_world, r) == 0 ? sent : 0;
        plan_free(p);
    }
    return sum;
}

/* Of GPUs on two hosts, each host sends half of a large sum and half of its result, and not as much
 * for each GPU. */
static void gpus_of_several_hosts_send_a_share_a_host(void **state)
{
    const accelerator_terms terms = {
        .apart = true,
        .far = true,
        .eager = 256 << 10,
        .rates = {.start = 9e-6, .message = 1e-6, .link = 360e9, .memory = 2.8e12}};
    static const int32_t hosts[2][8] = {{0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1}};
    for (int in_turn = 0; in_turn < 2; in_turn++) {
        ring_comm *comm = world_new(8, false, "");
        comm->plan_world.hosts = 2;
        comm->plan_world.host_of = hosts[in_turn];
        tuner_use_device(comm->tuner, &terms);
        for (size_t bytes = 4 << 20; bytes <= 256 << 20; bytes *= 4) {
            const call_signature call = {.collective = PLAN_ALL_REDUCE,
                                         .dtype = RING_FLOAT32,
                                         .count = bytes / 4,
                                         .on_device = true};
            assert_int_equal(wire_bytes_of(comm, &call), bytes);
        }
        world_free(comm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_calls_of_16_bits_send_no_sums),
        cmocka_unit_test(types_do_not_disturb_each_other),
        cmocka_unit_test(a_named_algorithm_serves_all_types),
        cmocka_unit_test(calls_of_gpus_have_prices_of_their_own),
        cmocka_unit_test(gpus_of_several_hosts_send_a_share_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
