/* SPDX-License-Identifier: Apache-2.0
 * Compares the programs of all ranks of a call, without links: the messages that one rank sends
 * over a channel must be those that the other receives from it, and a program that uses a wrong
 * channel, slice or number is detected. */
#include "program_cache.h"
#include "shared_plan.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { MOST_RANKS = 5 };

/* ---- Ranks without links ------------------------------------------------------------------- */

typedef struct ranks {
    int count;
    ring_comm *of[MOST_RANKS];
    program *programs[MOST_RANKS];
} ranks;

static ring_comm *rank_new(int rank, int count, const char *algorithm, int channels)
{
    ring_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    comm->rank = rank;
    comm->ranks = count;
    comm->plan_world = (plan_world){.ranks = count, .hosts = 1};
    comm->settings.channels = channels;
    (void)text_format(comm->settings.algo, sizeof comm->settings.algo, "%s", algorithm);
    assert_int_equal(tuner_new(comm, &comm->tuner), RING_OK);
    assert_int_equal(programs_new(&comm->programs), RING_OK);
    return comm;
}

static void rank_free(ring_comm *comm)
{
    channels_free(comm);
    programs_free(comm->programs);
    tuner_free(comm->tuner);
    free(comm);
}

static ranks lower_all(int count, const char *algorithm, int channels, const call_signature *call)
{
    ranks all = {.count = count};
    for (int r = 0; r < count; r++) {
        all.of[r] = rank_new(r, count, algorithm, channels);
        assert_int_equal(programs_get(all.of[r], call, &all.programs[r]), RING_OK);
    }
    return all;
}

static void free_all(ranks *all)
{
    for (int r = 0; r < all->count; r++)
        rank_free(all->of[r]);
}

/* ---- Messages ------------------------------------------------------------------------------- */

/* The facts of a message that both ends must agree on. */
typedef struct said {
    int32_t slice;
    size_t skip, bytes;
} said;

typedef struct conversation {
    said *all;
    size_t count, capacity;
} conversation;

static void say(conversation *c, said s)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? 2 * c->capacity : 64;
        c->all = realloc(c->all, c->capacity * sizeof *c->all);
        assert_non_null(c->all);
    }
    c->all[c->count++] = s;
}

static bool goes_over(const program *p, int32_t index, const operand *at, int peer, int32_t over)
{
    if (at->peer == OPERAND_LOCAL)
        return false;
    const struct channel *on = p->on[index * p->peer_count + at->peer];
    return on->rank == peer && on->index == over;
}

/* The messages of one slice, out or in, over one channel with one peer. */
static void say_slice(conversation *c, const program *p, int32_t slice, int peer, int32_t over,
                      bool out)
{
    for (int32_t i = 0; i < p->op_count; i++) {
        const program_op *o = &p->ops[i];
        const operand *at = &p->operands[o->first + (out ? o->ins : 0)];
        for (int k = 0; o->kind != PLAN_STEP_WAIT && k < (out ? o->outs : o->ins); k++)
            if (goes_over(p, slice % p->channels, &at[k], peer, over))
                say(c, (said){.slice = slice,
                              .skip = program_skip(p, o, slice),
                              .bytes = program_count(p, o, slice) * at[k].width});
    }
}

/* All that @p p says, in the order in which the channel's works run. */
static conversation talk(const program *p, int peer, int32_t over, bool out)
{
    conversation c = {0};
    for (int32_t index = 0; index < p->channels; index++)
        for (int32_t slice = index; slice < p->slices; slice += p->channels)
            say_slice(&c, p, slice, peer, over, out);
    return c;
}

static bool agree(const program *from, const program *to, int a, int b, int32_t over)
{
    conversation sent = talk(from, b, over, true), taken = talk(to, a, over, false);
    bool same = sent.count == taken.count;
    for (size_t i = 0; same && i < sent.count; i++)
        same = sent.all[i].slice == taken.all[i].slice && sent.all[i].skip == taken.all[i].skip &&
               sent.all[i].bytes == taken.all[i].bytes;
    free(sent.all);
    free(taken.all);
    return same;
}

static bool all_agree(const ranks *all)
{
    for (int a = 0; a < all->count; a++)
        for (int b = 0; b < all->count; b++)
            for (int32_t over = 0; a != b && over < SETTINGS_MOST_CHANNELS; over++)
                if (!agree(all->programs[a], all->programs[b], a, b, over))
                    return false;
    return true;
}

/* ---- Right ones ------------------------------------------------------------------------------ */

static void check_call(int count, const char *algorithm, int channels, const call_signature *call)
{
    ranks all = lower_all(count, algorithm, channels, call);
    for (int r = 0; r < count; r++) {
        const program *p = all.programs[r];
        assert_int_equal(p->channels, all.programs[0]->channels);
        assert_int_equal(p->slices, all.programs[0]->slices);
        assert_true(p->channels >= 1 && p->channels <= channels && p->channels <= p->slices);
        for (int32_t index = 0, runs = 0; index < p->channels; index++) {
            runs += program_runs(p, index);
            assert_true(index + 1 < p->channels || runs == p->slices);
        }
    }
    assert_true(all_agree(&all));
    free_all(&all);
}

static const size_t counts[] = {0, 1, 1000, 40000, 100003, 1000003};

static void test_both_ends_say_the_same(void **state)
{
    size_t algorithms;
    const algo *known = algo_all(&algorithms);
    for (size_t i = 0; i < algorithms; i++)
        for (int collective = PLAN_ALL_REDUCE; collective <= PLAN_REDUCE; collective++)
            for (int count = 2; count <= 5; count++)
                for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                    const call_signature call = {.collective = (plan_collective)collective,
                                                 .dtype = RING_BFLOAT16,
                                                 .op = RING_SUM,
                                                 .root = count - 1,
                                                 .count = counts[c]};
                    check_call(count, known[i].name, 1, &call);
                    check_call(count, known[i].name, 3, &call);
                    check_call(count, known[i].name, SETTINGS_MOST_CHANNELS, &call);
                }
}

static void test_long_calls_use_all_channels(void **state)
{
    const call_signature call = {.collective = PLAN_ALL_REDUCE,
                                 .dtype = RING_FLOAT32,
                                 .op = RING_SUM,
                                 .count = 1 << 20};
    ranks all = lower_all(4, "ring", 4, &call);
    assert_int_equal(all.programs[0]->channels, 4);
    free_all(&all);
}

/* ---- The cache of programs ------------------------------------------------------------------ */

static const program *get(ring_comm *comm, plan_collective collective, int root, size_t count)
{
    program *p;
    const call_signature call = {.collective = collective, .root = root, .count = count};
    assert_int_equal(programs_get(comm, &call, &p), RING_OK);
    assert_int_equal(p->from->plan->root, root);
    return p;
}

static void fill_programs(const char *algorithm, int32_t *count, size_t *bytes)
{
    enum { RANKS = 2 * PROGRAMS_MOST };
    ring_comm *comm = rank_new(RANKS - 1, RANKS, algorithm, 1);
    for (int root = 0; root < RANKS - 1; root++) {
        const program *p = get(comm, PLAN_REDUCE, root, RANKS);
        assert_ptr_equal(get(comm, PLAN_REDUCE, root, RANKS), p);
    }
    *count = programs_kept(comm->programs, bytes);
    rank_free(comm);
}

static void test_of_short_programs_so_many_are_kept(void **state)
{
    size_t bytes;
    int32_t count;
    fill_programs("direct", &count, &bytes);
    assert_int_equal(count, PROGRAMS_MOST);
    assert_in_range(bytes, 1, PROGRAMS_MOST_BYTES);
}

static void test_of_long_programs_so_many_bytes_are_kept(void **state)
{
    size_t bytes;
    int32_t count;
    fill_programs("ring", &count, &bytes);
    assert_in_range(bytes, PROGRAMS_MOST_BYTES / 2, PROGRAMS_MOST_BYTES);
    assert_in_range(count, 2, PROGRAMS_MOST - 1);
}

/* Programs of one plan share it, and it counts once; it goes with the last of them. */
static void test_calls_of_other_counts_share_a_plan(void **state)
{
    size_t bytes, first;
    ring_comm *comm = rank_new(0, 8, "direct", 1);
    const program *of_one = get(comm, PLAN_REDUCE, 1, 1);
    (void)programs_kept(comm->programs, &first);
    assert_int_equal(first, of_one->memory + of_one->from->bytes);
    const program *of_two = get(comm, PLAN_REDUCE, 1, 2);
    assert_ptr_not_equal(of_one, of_two);
    assert_ptr_equal(of_one->from, of_two->from);
    assert_ptr_not_equal(get(comm, PLAN_REDUCE, 2, 1)->from, of_two->from);
    for (int root = 0; root < 8; root++)
        (void)get(comm, PLAN_REDUCE, root, 3);
    for (size_t count = 4; count < 2 * PROGRAMS_MOST; count++)
        (void)get(comm, PLAN_REDUCE, 1, count);
    assert_int_equal(programs_kept(comm->programs, &bytes), PROGRAMS_MOST);
    assert_int_equal(get(comm, PLAN_REDUCE, 1, 1)->from->holders, PROGRAMS_MOST);
    rank_free(comm);
}

/* ---- Wrong ones ---------------------------------------------------------------- */

/* Two channels of one peer, taken for each other. */
static void swap_channels(program *p)
{
    struct channel *first = p->on[0];
    p->on[0] = p->on[p->peer_count];
    p->on[p->peer_count] = first;
}

static void use_one_channel(program *p)
{
    p->on[p->peer_count] = p->on[0];
}

static void skip_a_slice(program *p)
{
    p->slices--;
}

static void cut_elsewhere(program *p)
{
    p->slice--;
}

static void test_faults_are_seen(void **state)
{
    static void (*const faults[])(program * p) = {swap_channels, use_one_channel, skip_a_slice,
                                                  cut_elsewhere};
    const call_signature call = {.collective = PLAN_ALL_REDUCE,
                                 .dtype = RING_FLOAT32,
                                 .op = RING_SUM,
                                 .count = 1000003};
    size_t algorithms;
    const algo *known = algo_all(&algorithms);
    for (size_t i = 0; i < algorithms; i++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            ranks all = lower_all(4, known[i].name, 3, &call);
            assert_true(all_agree(&all));
            faults[f](all.programs[2]);
            assert_false(all_agree(&all));
            free_all(&all);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ends_say_the_same),
        cmocka_unit_test(test_long_calls_use_all_channels),
        cmocka_unit_test(test_of_short_programs_so_many_are_kept),
        cmocka_unit_test(test_of_long_programs_so_many_bytes_are_kept),
        cmocka_unit_test(test_calls_of_other_counts_share_a_plan),
        cmocka_unit_test(test_faults_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
