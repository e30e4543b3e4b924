/* SPDX-License-Identifier: Apache-2.0
 * Messages and bytes that plans promise; real runs' counters are compared with the same. */
#include "plans.h"

#include "unit_test.h"

typedef struct traffic {
    uint64_t bytes, messages;
} traffic;

static traffic traffic_of(const char *algorithm, plan_collective collective, int ranks, int rank,
                          size_t count, size_t element, size_t acc)
{
    const algo *a = algo_find(algorithm);
    const plan_world world = plans_world(ranks, 0);
    plan *p = a->build(&(algo_call){collective, &world, rank, 0, a->chunks(collective, &world, 0)});
    traffic t;
    assert_non_null(p);
    plan_traffic(p, count, element, acc, &t.bytes, &t.messages);
    plan_free(p);
    return t;
}

static void ring_all_reduce_sends_2_n_minus_1_messages_of_one_nth_each(void **state)
{
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        for (int rank = 0; rank < ranks; rank++) {
            const size_t count = 1000 * (size_t)ranks, bytes = count * sizeof(float);
            const traffic t = traffic_of("ring", PLAN_ALL_REDUCE, ranks, rank, count, 4, 4);
            assert_int_equal(t.messages, 2 * (ranks - 1));
            assert_int_equal(t.bytes, 2 * (size_t)(ranks - 1) * bytes / (size_t)ranks);
        }
    }
}

static void ring_has_as_many_steps_for_100000_ranks_as_for_5(void **state)
{
    const algo *ring = algo_find("ring");
    const plan_world five = {.ranks = 5, .hosts = 1}, many = {.ranks = 100000, .hosts = 1};
    plan *small = ring->build(&(algo_call){PLAN_ALL_REDUCE, &five, 2, 0, 5});
    plan *large = ring->build(&(algo_call){PLAN_ALL_REDUCE, &many, 2, 0, 100000});
    assert_non_null(small);
    assert_non_null(large);
    assert_int_equal(small->step_count, large->step_count);
    assert_int_equal(large->peer_count, 2);
    assert_int_equal(plan_peer_of(large, 3)->sends, 2 * 99999);
    assert_int_equal(plan_peer_of(large, 1)->recvs, 2 * 99999);
    plan_free(small);
    plan_free(large);
}

static void halves_of_the_ring_send_half(void **state)
{
    for (int ranks = 1; ranks <= 9; ranks++) {
        const size_t count = 77, block = count * sizeof(float);
        const traffic scatter = traffic_of("ring", PLAN_REDUCE_SCATTER, ranks, 0, count, 4, 4);
        const traffic gather = traffic_of("ring", PLAN_ALL_GATHER, ranks, 0, count, 4, 4);
        assert_int_equal(scatter.messages, ranks - 1);
        assert_int_equal(scatter.bytes, (size_t)(ranks - 1) * block);
        assert_int_equal(gather.messages, ranks - 1);
        assert_int_equal(gather.bytes, (size_t)(ranks - 1) * block);
    }
}

static void uneven_chunks_add_up_to_the_same_over_all_ranks(void **state)
{
    for (int ranks = 2; ranks <= 9; ranks++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += traffic_of("ring", PLAN_ALL_REDUCE, ranks, rank, 1001, 4, 4).bytes;
        assert_int_equal(sum, 2 * (uint64_t)(ranks - 1) * 1001 * 4);
    }
}

/* The first hop carries the type, the later ones float32, the all-gather the type. */
static void sixteen_bit_sums_travel_as_float32_after_the_first_hop(void **state)
{
    for (int ranks = 2; ranks <= 9; ranks++) {
        const size_t part = 10;
        const traffic t = traffic_of("ring", PLAN_ALL_REDUCE, ranks, 0, part * (size_t)ranks, 2, 4);
        const size_t hops = (size_t)ranks - 1;
        assert_int_equal(t.bytes, part * (2 + 4 * (hops - 1) + 2 * hops));
    }
}

static void direct_all_reduce_sends_as_much_as_the_ring(void **state)
{
    for (int ranks = 1; ranks <= 16; ranks++) {
        const size_t count = 64 * (size_t)ranks;
        const traffic t = traffic_of("direct", PLAN_ALL_REDUCE, ranks, 0, count, 4, 4);
        assert_int_equal(t.messages, 2 * (ranks - 1));
        assert_int_equal(t.bytes, 2 * (size_t)(ranks - 1) * 64 * 4);
    }
}

static void chain_sends_the_vector_up_and_down(void **state)
{
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 0, 100, 4, 4).bytes, 400);
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 1, 100, 4, 4).bytes, 800);
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 3, 100, 4, 4).bytes, 400);
    assert_int_equal(traffic_of("chain", PLAN_BROADCAST, 4, 3, 100, 4, 4).bytes, 0);
}

static int log2_of(int ranks)
{
    return 31 - __builtin_clz((unsigned)ranks);
}

/* 2 log2 n messages and the ring's bytes; up to 2 more messages unless n is a power of two. */
static void halving_sends_a_message_an_exchange(void **state)
{
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        const bool even = (ranks & (ranks - 1)) == 0;
        for (int rank = 0; rank < ranks; rank++) {
            const size_t count = 64 * 1000;
            const traffic t = traffic_of("halving", PLAN_ALL_REDUCE, ranks, rank, count, 4, 4);
            assert_true(t.messages <= (uint64_t)(2 * log2_of(ranks) + (even ? 0 : 2)));
            if (even) {
                assert_int_equal(t.messages, 2 * log2_of(ranks));
                assert_int_equal(t.bytes, 2 * 4 * (count - count / (size_t)ranks));
            }
        }
    }
}

static void halving_gathers_in_log_n_messages(void **state)
{
    for (int ranks = 2; ranks <= MOST_RANKS; ranks *= 2) {
        const traffic t = traffic_of("halving", PLAN_ALL_GATHER, ranks, ranks - 1, 77, 4, 4);
        assert_int_equal(t.messages, log2_of(ranks));
        assert_int_equal(t.bytes, 77 * 4 * (ranks - 1));
    }
}

static void oneshot_sends_all_to_all(void **state)
{
    for (int ranks = 1; ranks <= 16; ranks++) {
        const traffic t = traffic_of("oneshot", PLAN_ALL_REDUCE, ranks, 0, 10, 4, 4);
        assert_int_equal(t.messages, ranks - 1);
        assert_int_equal(t.bytes, 40 * (ranks - 1));
    }
    assert_int_equal(traffic_of("oneshot", PLAN_REDUCE, 5, 0, 10, 4, 4).messages, 0);
    assert_int_equal(traffic_of("oneshot", PLAN_REDUCE, 5, 3, 10, 4, 4).messages, 1);
}

/* Each block once, straight to the rank that it is for. */
static void personalized_blocks_travel_once(void **state)
{
    static const char *const by[] = {"oneshot", "direct"};
    for (int i = 0; i < 2; i++) {
        for (int ranks = 1; ranks <= 9; ranks++) {
            const uint64_t others = (uint64_t)ranks - 1;
            for (int rank = 0; rank < ranks; rank++) {
                const uint64_t is_root = rank == 0;
                const traffic to_all = traffic_of(by[i], PLAN_ALL_TO_ALL, ranks, rank, 10, 4, 4);
                const traffic in = traffic_of(by[i], PLAN_GATHER, ranks, rank, 10, 4, 4);
                const traffic out = traffic_of(by[i], PLAN_SCATTER, ranks, rank, 10, 4, 4);
                assert_int_equal(to_all.messages, others);
                assert_int_equal(to_all.bytes, 40 * others);
                assert_int_equal(in.messages, 1 - is_root);
                assert_int_equal(in.bytes, 40 * (1 - is_root));
                assert_int_equal(out.messages, is_root * others);
                assert_int_equal(out.bytes, 40 * is_root * others);
            }
        }
    }
}

/* Messages that a rank exchanges with ranks of other hosts. */
static int far_messages(const plan *p, const plan_world *world)
{
    int messages = 0;
    for (int i = 0; i < p->peer_count; i++)
        if (plan_host_of(world, p->peers[i].rank) != plan_host_of(world, p->rank))
            messages += p->peers[i].sends + p->peers[i].recvs;
    return messages;
}

/* For each root, a vector comes once to each other host, and each leader has at most a parent and
 * two children among hosts. */
static void a_tree_keeps_one_edge_a_host(void **state)
{
    const algo *tree = algo_find("tree");
    for (int root = 0; root < 23; root++) {
        const plan_world world = plans_world(23, 4);
        int all = 0;
        for (int rank = 0; rank < 23; rank++) {
            plan *p = tree->build(&(algo_call){PLAN_BROADCAST, &world, rank, root, 1});
            const int far = far_messages(p, &world);
            assert_in_range(far, 0, 3);
            assert_true(p->peer_count <= 5);
            all += far;
            plan_free(p);
        }
        assert_int_equal(all, 2 * (world.hosts - 1));
    }
}

/* Hosts whose ranks do not follow each other, of several sizes. */
static void a_tree_finds_hosts_wherever_their_ranks_are(void **state)
{
    static const int32_t host_of[] = {0, 1, 0, 2, 1, 1, 0, 3, 2, 1, 3};
    const plan_world world = {.ranks = 11, .hosts = 4, .host_of = host_of};
    for (int root = 0; root < 11; root++) {
        plan_set set = {.ranks = 11};
        int all = 0;
        for (int rank = 0; rank < 11; rank++) {
            const algo_call call = {PLAN_REDUCE, &world, rank, root, 2};
            set.of[rank] = algo_find("tree")->build(&call);
            assert_non_null(set.of[rank]);
            all += far_messages(set.of[rank], &world);
        }
        assert_int_equal(all, 2 * 2 * 3);
        plans_expect_proven(&set);
        plans_free(&set);
    }
}

/* Elements between hosts, sent and received by each host's ranks; the plans are proven. */
static void measure_hosts(const plan_case *c, const plan_world *world, size_t count, uint64_t *out,
                          uint64_t *in)
{
    plan_set set = plans_build(c);
    for (int host = 0; host < world->hosts; host++)
        out[host] = in[host] = 0;
    for (int rank = 0; rank < c->ranks; rank++) {
        uint64_t sent, taken;
        plan_far_traffic(set.of[rank], world, count, 4, 4, &sent, &taken);
        out[plan_host_of(world, rank)] += sent;
        in[plan_host_of(world, rank)] += taken;
    }
    plans_expect_proven(&set);
    plans_free(&set);
}

/* Four ranks on two hosts, and others: 2 (H - 1) / H of the vector, whatever hosts are like. */
static void hierarchical_puts_each_sum_on_the_wire_once(void **state)
{
    static const int layouts[] = {2, 1, 3, 5, LAYOUT_IN_TURN, LAYOUT_GROWING, LAYOUT_SCATTERED};
    const algo *a = algo_find("hierarchical");
    uint64_t out[MOST_RANKS], in[MOST_RANKS];
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        for (int ranks = 2; ranks <= 24; ranks++) {
            const plan_world world = plans_world(ranks, layouts[i]);
            const int chunks = 2 * a->chunks(PLAN_ALL_REDUCE, &world, 0);
            const size_t count = 10 * (size_t)chunks, bytes = 4 * count;
            const plan_case c = {a, PLAN_ALL_REDUCE, ranks, 0, chunks, layouts[i]};
            measure_hosts(&c, &world, count, out, in);
            for (int host = 0; host < world.hosts; host++) {
                const size_t hosts = (size_t)world.hosts;
                assert_int_equal(out[host], 2 * (hosts - 1) * bytes / hosts);
                assert_int_equal(in[host], 2 * (hosts - 1) * bytes / hosts);
            }
        }
    }
}

/* Others leave a host with more: four ranks on two hosts, a vector of 4000 bytes. */
static void the_wire_carries_what_the_algorithm_makes_of_it(void **state)
{
    static const struct {
        const char *algorithm;
        int per_host;
        uint64_t bytes; /* out of the first host */
    } of[] = {{"hierarchical", 2, 4000}, {"hierarchical", LAYOUT_IN_TURN, 5333},
              {"halving", 2, 4000},      {"ring", 2, 6000},
              {"direct", 2, 8000},       {"oneshot", 2, 16000}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const algo *a = algo_find(of[i].algorithm);
        const plan_world world = plans_world(4, of[i].per_host);
        const plan_case c = {
            a, PLAN_ALL_REDUCE, 4, 0, a->chunks(PLAN_ALL_REDUCE, &world, 0), of[i].per_host};
        uint64_t out[MOST_RANKS], in[MOST_RANKS];
        measure_hosts(&c, &world, 1000, out, in);
        assert_in_range(out[0], of[i].bytes - 4, of[i].bytes + 4);
    }
}

static void rooted_vectors_cross_to_each_host_once(void **state)
{
    static const plan_collective rooted[] = {PLAN_BROADCAST, PLAN_REDUCE};
    const algo *a = algo_find("hierarchical");
    uint64_t out[MOST_RANKS], in[MOST_RANKS];
    for (int i = 0; i < 2; i++) {
        for (int root = 0; root < 17; root++) {
            const plan_world world = plans_world(17, LAYOUT_SCATTERED);
            const plan_case c = {
                a, rooted[i], 17, root, a->chunks(rooted[i], &world, 0), LAYOUT_SCATTERED};
            uint64_t all = 0;
            measure_hosts(&c, &world, 1000, out, in);
            for (int host = 0; host < world.hosts; host++) {
                assert_true(out[host] <= 4000 && in[host] <= 4000);
                all += out[host];
            }
            assert_int_equal(all, 4000 * (world.hosts - 1));
        }
    }
}

static const plan_step *longest_fold(const plan *p)
{
    const plan_step *longest = NULL;
    for (int i = 0; i < p->step_count; i++)
        if (p->steps[i].kind == PLAN_STEP_FOLD &&
            (longest == NULL || p->steps[i].ins > longest->ins))
            longest = &p->steps[i];
    return longest;
}

/* A kernel takes so many operands; hosts may have more ranks. */
static void no_fold_has_more_operands_than_a_kernel_takes(void **state)
{
    static int32_t host_of[400];
    for (int rank = 0; rank < 400; rank++)
        host_of[rank] = rank / 200;
    for (int hosts = 1; hosts <= 2; hosts++) {
        const plan_world world = {.ranks = 200 * hosts, .hosts = hosts, .host_of = host_of};
        plan *p = algo_find("hierarchical")
                      ->build(&(algo_call){PLAN_ALL_REDUCE, &world, 7, 0, 200 * hosts});
        assert_non_null(p);
        assert_int_equal(longest_fold(p)->ins, ALGO_MAX_OPERANDS);
        plan_free(p);
    }
}

static void waits_are_no_traffic(void **state)
{
    assert_int_equal(traffic_of("direct", PLAN_BROADCAST, 4, 0, 100, 4, 4).messages, 3);
    assert_int_equal(traffic_of("direct", PLAN_BROADCAST, 4, 0, 100, 4, 4).bytes, 1200);
    assert_int_equal(traffic_of("direct", PLAN_BROADCAST, 4, 1, 100, 4, 4).messages, 0);
}

static void eager_bytes_are_those_to_one_peer(void **state)
{
    const plan_world world = plans_world(6, 0);
    plan *p = algo_find("oneshot")->build(&(algo_call){PLAN_ALL_REDUCE, &world, 2, 0, 1});
    size_t eager;
    assert_int_equal(plan_eager_bytes(p, 100, 2, 4, &eager), RING_OK);
    assert_int_equal(eager, 200);
    plan_free(p);
    p = algo_find("ring")->build(&(algo_call){PLAN_ALL_REDUCE, &world, 2, 0, 6});
    assert_int_equal(plan_eager_bytes(p, 100, 2, 4, &eager), RING_OK);
    assert_int_equal(eager, 0);
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_all_reduce_sends_2_n_minus_1_messages_of_one_nth_each),
        cmocka_unit_test(ring_has_as_many_steps_for_100000_ranks_as_for_5),
        cmocka_unit_test(halves_of_the_ring_send_half),
        cmocka_unit_test(uneven_chunks_add_up_to_the_same_over_all_ranks),
        cmocka_unit_test(sixteen_bit_sums_travel_as_float32_after_the_first_hop),
        cmocka_unit_test(direct_all_reduce_sends_as_much_as_the_ring),
        cmocka_unit_test(chain_sends_the_vector_up_and_down),
        cmocka_unit_test(halving_sends_a_message_an_exchange),
        cmocka_unit_test(halving_gathers_in_log_n_messages),
        cmocka_unit_test(oneshot_sends_all_to_all),
        cmocka_unit_test(personalized_blocks_travel_once),
        cmocka_unit_test(a_tree_keeps_one_edge_a_host),
        cmocka_unit_test(a_tree_finds_hosts_wherever_their_ranks_are),
        cmocka_unit_test(hierarchical_puts_each_sum_on_the_wire_once),
        cmocka_unit_test(the_wire_carries_what_the_algorithm_makes_of_it),
        cmocka_unit_test(rooted_vectors_cross_to_each_host_once),
        cmocka_unit_test(no_fold_has_more_operands_than_a_kernel_takes),
        cmocka_unit_test(waits_are_no_traffic),
        cmocka_unit_test(eager_bytes_are_those_to_one_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
