/* SPDX-License-Identifier: Apache-2.0
 * Lists of all stages of a pipeline, run against each other: every message meets its other end
 * though no message is ever kept on the way, buffers are kept for their users, and the idle slots
 * are those of the formula. */
#include "check.h"
#include "update_order.h"

#include <errors.h>
#include <schedule_1f1b.h>
#include <stdlib.h>
#include <string.h>
#include <update_times.h>

enum { STAGES_MAX = 6, MICROS_MAX = 9, BUCKETS_MAX = 3, NOWHERE = -1 };

static train_partition made_up(partition_bucket *buckets, int count)
{
    for (int b = 0; b < count; b++)
        buckets[b] = (partition_bucket){.first = 2 * b, .end = 2 * b + 2};
    return (train_partition){.ranks = 2, .buckets = buckets, .ranges = count, .count = count};
}

/* ---- All ranks at once --------------------------------------------------------------------- */

/* A rank walks its list as update_run() does: computing ends at once, a message when both ends have
 * begun it. Each FORWARD and BACKWARD takes one unit of time. */
typedef struct walker {
    update_schedule schedule;
    int at, clock;
    int *begun, *ended; /* [count] when, or NOWHERE */
} walker;

static bool has_ended(const walker *w, int number)
{
    return w->ended[number] != NOWHERE;
}

/* @return the number of the list's @p nth instruction like @p kind and @p towards. */
static int find_message(const walker *w, update_kind kind, int towards, int nth)
{
    for (int i = 0; i < w->schedule.count; i++) {
        const update_instruction *at = &w->schedule.list[i];
        if (at->kind == kind && at->towards == towards && nth-- == 0)
            return i;
    }
    return NOWHERE;
}

/* How many messages of the same kind and direction come before it. */
static int place_of(const walker *w, int number)
{
    const update_instruction *at = &w->schedule.list[number];
    int place = 0;
    for (int i = 0; i < number; i++)
        place += w->schedule.list[i].kind == at->kind && w->schedule.list[i].towards == at->towards;
    return place;
}

/* Libring matches messages of a pair by their order: the micro-batches must be the same. */
static void meet(walker *walkers, int stage, int number)
{
    walker *mine = &walkers[stage];
    const update_instruction *at = &mine->schedule.list[number];
    walker *theirs = &walkers[stage + at->towards];
    const update_kind other = at->kind == UPDATE_SEND ? UPDATE_RECV : UPDATE_SEND;
    const int there = find_message(theirs, other, -at->towards, place_of(mine, number));
    if (there == NOWHERE)
        fail_msg("stage %d: nobody meets instruction %d", stage, number);
    assert_int_equal(theirs->schedule.list[there].micro, at->micro);
    if (theirs->begun[there] == NOWHERE)
        return;
    const int later = mine->begun[number] > theirs->begun[there] ? mine->begun[number]
                                                                 : theirs->begun[there];
    mine->ended[number] = theirs->ended[there] = later;
}

/* @return false if something that it waits for has not ended. */
static bool may_begin(walker *w, const update_instruction *at)
{
    int ready = w->clock;
    for (int i = 0; i < w->at; i++) {
        bool waits = at->after_all;
        for (int k = 0; k < at->after_count; k++)
            waits |= at->after[k] == i;
        if (waits && !has_ended(w, i))
            return false;
        if (waits && w->ended[i] > ready)
            ready = w->ended[i];
    }
    w->clock = ready;
    return true;
}

static bool advance(walker *walkers, int stage)
{
    walker *w = &walkers[stage];
    if (w->at == w->schedule.count)
        return false;
    const update_instruction *at = &w->schedule.list[w->at];
    if (!may_begin(w, at))
        return false;
    w->begun[w->at] = w->clock;
    if (at->kind == UPDATE_SEND || at->kind == UPDATE_RECV) {
        meet(walkers, stage, w->at);
    } else {
        w->clock += at->kind == UPDATE_FORWARD || at->kind == UPDATE_BACKWARD;
        w->ended[w->at] = w->clock;
    }
    w->at++;
    return true;
}

static void run_all(walker *walkers, int stages)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; s++)
            moved |= advance(walkers, s);
    }
    for (int s = 0; s < stages; s++) {
        if (walkers[s].at != walkers[s].schedule.count)
            fail_msg("stage %d of %d stops at instruction %d (%s)", s, stages, walkers[s].at,
                     update_kind_names[walkers[s].schedule.list[walkers[s].at].kind]);
        for (int i = 0; i < walkers[s].schedule.count; i++)
            assert_true(has_ended(&walkers[s], i));
    }
}

static void open_walkers(walker *walkers, const train_partition *partition, int stages, int micros)
{
    for (int s = 0; s < stages; s++) {
        walker *w = &walkers[s];
        *w = (walker){0};
        const pipe_place place = {stages, s};
        assert_int_equal(schedule_1f1b(&w->schedule, partition, s % 2, &place, micros), RING_OK);
        const size_t bytes = (size_t)w->schedule.count * sizeof(int);
        w->begun = malloc(bytes);
        w->ended = malloc(bytes);
        assert_non_null(w->begun);
        assert_non_null(w->ended);
        memset(w->begun, NOWHERE, bytes);
        memset(w->ended, NOWHERE, bytes);
    }
}

/* @return when the last pass of all ended. */
static int close_walkers(walker *walkers, int stages)
{
    int last = 0;
    for (int s = 0; s < stages; s++) {
        last = walkers[s].clock > last ? walkers[s].clock : last;
        schedule_free(&walkers[s].schedule);
        free(walkers[s].begun);
        free(walkers[s].ended);
    }
    return last;
}

/* ---- One list ------------------------------------------------------------------------------ */

/* @return the first or last instruction of that kind and micro-batch, or NOWHERE. */
static int find(const update_schedule *schedule, update_kind kind, int towards, int micro,
                bool last)
{
    int found = NOWHERE;
    for (int i = 0; i < schedule->count && (last || found == NOWHERE); i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == kind && at->towards == towards && at->micro == micro &&
            at->bucket != BUCKET_LOSS)
            found = i;
    }
    return found;
}

/* A micro-batch's instructions wait for their operands, and for the micro-batch that was in their
 * slot before. */
static void check_micro(const update_schedule *s, const pipe_place *place, int micro, int before)
{
    const int forward = find(s, UPDATE_FORWARD, 0, micro, false),
              forward_end = find(s, UPDATE_FORWARD, 0, micro, true),
              backward = find(s, UPDATE_BACKWARD, 0, micro, false),
              backward_end = find(s, UPDATE_BACKWARD, 0, micro, true),
              value_in = find(s, UPDATE_RECV, -1, micro, false),
              value_out = find(s, UPDATE_SEND, 1, micro, false),
              grad_in = find(s, UPDATE_RECV, 1, micro, false),
              grad_out = find(s, UPDATE_SEND, -1, micro, false);
    const bool first = place->stage == 0, last = place->stage == place->stages - 1;
    assert_int_equal(value_in == NOWHERE, first);
    assert_int_equal(grad_out == NOWHERE, first);
    assert_int_equal(value_out == NOWHERE, last);
    assert_int_equal(grad_in == NOWHERE, last);
    expect_waits(s, forward, value_in);
    expect_waits(s, forward, find(s, UPDATE_LOAD, 0, micro, false));
    expect_waits(s, backward, forward_end);
    expect_waits(s, backward, grad_in);
    if (!last)
        expect_waits(s, value_out, forward_end);
    if (!first)
        expect_waits(s, grad_out, backward_end);
    if (before < 0)
        return;
    const int freed = find(s, UPDATE_BACKWARD, 0, before, true);
    expect_waits(s, forward, freed);
    expect_waits(s, forward, find(s, UPDATE_SEND, 1, before, false));
    expect_waits(s, backward, find(s, UPDATE_SEND, -1, before, false));
    if (!first)
        expect_waits(s, value_in, freed);
    if (!last)
        expect_waits(s, grad_in, freed);
}

/* Slots hold a micro-batch each, from its LOAD to the end of its backward. */
static void check_slots(const update_schedule *s, const pipe_place *place, int micros)
{
    const int slots = pipe_slots(place, micros);
    int held[STAGES_MAX], most = 0, count = 0;
    memset(held, NOWHERE, sizeof held);
    assert_in_range(slots, 1, place->stages - place->stage);
    for (int i = 0; i < s->count; i++) {
        const update_instruction *at = &s->list[i];
        if (at->kind == UPDATE_LOAD) {
            assert_in_range(at->slot, 0, slots - 1);
            assert_int_equal(held[at->slot], NOWHERE);
            held[at->slot] = at->micro;
            count++;
        }
        if (at->kind == UPDATE_FORWARD || at->kind == UPDATE_BACKWARD)
            assert_int_equal(held[at->slot], at->micro);
        if (at->kind == UPDATE_BACKWARD && i == find(s, UPDATE_BACKWARD, 0, at->micro, true)) {
            held[at->slot] = NOWHERE;
            count--;
        }
        most = count > most ? count : most;
    }
    assert_int_equal(most, slots);
}

static void check_reductions(const update_schedule *s, int buckets, int micros, int zero)
{
    int reduced = 0, losses = 0, steps = 0, gathers = 0;
    for (int i = 0; i < s->count; i++) {
        const update_instruction *at = &s->list[i];
        losses += at->kind == UPDATE_REDUCE && at->bucket == BUCKET_LOSS;
        steps += at->kind == UPDATE_OPTIMIZE;
        gathers += at->kind == UPDATE_GATHER;
        if (at->kind == UPDATE_BACKWARD)
            assert_int_equal(at->accumulate, at->micro > 0);
        if (at->kind != UPDATE_REDUCE || at->bucket == BUCKET_LOSS)
            continue;
        reduced++;
        assert_int_equal(at->micro, micros - 1);
        for (int k = i + 1; k < s->count; k++)
            assert_false(s->list[k].kind == UPDATE_BACKWARD && s->list[k].bucket == at->bucket);
    }
    assert_int_equal(reduced, buckets);
    assert_int_equal(losses, 1);
    assert_int_equal(steps, buckets);
    assert_int_equal(gathers, zero == 1 ? buckets : 0);
}

static void check_list(const update_schedule *s, const pipe_place *place, int buckets, int micros)
{
    const int slots = pipe_slots(place, micros);
    for (int m = 0; m < micros; m++)
        check_micro(s, place, m, m - slots);
    check_slots(s, place, micros);
    check_reductions(s, buckets, micros, place->stage % 2);
}

static void messages_meet_and_buffers_are_kept(void **state)
{
    partition_bucket buckets[BUCKETS_MAX];
    walker walkers[STAGES_MAX];
    for (int count = 1; count <= BUCKETS_MAX; count += 2) {
        const train_partition partition = made_up(buckets, count);
        for (int stages = 1; stages <= STAGES_MAX; stages++) {
            for (int micros = 1; micros <= MICROS_MAX; micros++) {
                open_walkers(walkers, &partition, stages, micros);
                for (int s = 0; s < stages; s++)
                    check_list(&walkers[s].schedule, &(pipe_place){stages, s}, count, micros);
                run_all(walkers, stages);
                const int slots = close_walkers(walkers, stages);
                assert_int_equal(slots, 2 * count * (micros + stages - 1));
            }
        }
    }
}

/* When this stage has its sums, and before the norm is taken. */
static void shared_gradients_are_summed_before_the_norm(void **state)
{
    partition_bucket buckets[BUCKETS_MAX];
    const train_partition partition = made_up(buckets, BUCKETS_MAX);
    update_schedule s;
    int found = NOWHERE, clip = NOWHERE;
    buckets[1].is_shared = true;
    assert_int_equal(schedule_1f1b(&s, &partition, 0, &(pipe_place){3, 1}, 4), RING_OK);
    for (int i = 0; i < s.count; i++) {
        if (s.list[i].kind == UPDATE_CLIP)
            clip = i;
        if (s.list[i].bucket != BUCKET_TIES)
            continue;
        assert_int_equal(found, NOWHERE);
        found = i;
    }
    assert_in_range(found, 0, clip - 1);
    for (int i = 0; i < s.count; i++) {
        if (s.list[i].kind == UPDATE_REDUCE && s.list[i].bucket >= 0)
            expect_waits(&s, found, i);
    }
    schedule_free(&s);
}

static void idle_slots_are_those_of_the_formula(void **state)
{
    for (int stages = 1; stages <= 8; stages++) {
        for (int micros = 1; micros <= 32; micros++) {
            double idle;
            assert_int_equal(pipe_count_slots(stages, micros, NULL, &idle), RING_OK);
            assert_near(idle, (stages - 1.0) / (micros + stages - 1.0), 0, 1e-12);
        }
    }
}

/* As walking over the lists has it, where a pass is one instruction. */
static void passes_end_when_the_lists_have_them_end(void **state)
{
    partition_bucket buckets[1];
    const train_partition partition = made_up(buckets, 1);
    for (int stages = 2; stages <= STAGES_MAX; stages++) {
        for (int micros = 1; micros <= MICROS_MAX; micros++) {
            walker walkers[STAGES_MAX];
            int ends[STAGES_MAX * MICROS_MAX * 2];
            double idle;
            assert_int_equal(pipe_count_slots(stages, micros, ends, &idle), RING_OK);
            open_walkers(walkers, &partition, stages, micros);
            run_all(walkers, stages);
            for (int i = 0; i < stages * micros * 2; i++) {
                const update_kind kind = i % 2 == 0 ? UPDATE_FORWARD : UPDATE_BACKWARD;
                const walker *w = &walkers[i / 2 / micros];
                assert_int_equal(ends[i],
                                 w->ended[find(&w->schedule, kind, 0, i / 2 % micros, true)]);
            }
            close_walkers(walkers, stages);
        }
    }
}

/* The first instruction of a pass begins it and the last one ends it; an update forgets the last.
 */
static void passes_are_timed_as_a_whole(void **state)
{
    pass_span spans[4];
    pass_times passes = {.spans = spans};
    const update_instruction forward = {.kind = UPDATE_FORWARD, .micro = 1},
                             again = {.kind = UPDATE_FORWARD, .micro = 1, .recompute = true},
                             backward = {.kind = UPDATE_BACKWARD, .micro = 1},
                             load = {.kind = UPDATE_LOAD, .micro = 1};
    update_times times = {.passes = &passes};
    pass_times_start(&passes, 2);
    update_times_ran(&times, &load, 1, 2);
    update_times_ran(&times, &forward, 3, 4);
    update_times_ran(&times, &forward, 5, 6);
    update_times_ran(&times, &again, 7, 8);
    update_times_ran(&times, &backward, 8, 9);
    assert_near(spans[2].begin, 3, 0, 0);
    assert_near(spans[2].end, 6, 0, 0);
    assert_near(spans[3].begin, 7, 0, 0);
    assert_near(spans[3].end, 9, 0, 0);
    pass_times_start(&passes, 2);
    update_times_ran(&times, &forward, 11, 12);
    assert_near(spans[2].begin, 11, 0, 0);
    assert_near(spans[0].end + spans[1].end + spans[3].end, 0, 0, 0);
}

static void evaluation_goes_forward_from_stage_to_stage(void **state)
{
    static const update_kind want[] = {UPDATE_RECV, UPDATE_LOAD, UPDATE_FORWARD, UPDATE_FORWARD,
                                       UPDATE_SEND};
    partition_bucket buckets[2];
    const train_partition partition = made_up(buckets, 2);
    update_schedule schedule;
    assert_int_equal(schedule_pipe_forward(&schedule, &partition, 0, &(pipe_place){3, 1}), RING_OK);
    assert_int_equal(schedule.count, COUNT_OF(want));
    for (size_t i = 0; i < COUNT_OF(want); i++)
        assert_string_equal(update_kind_names[schedule.list[i].kind], update_kind_names[want[i]]);
    expect_waits(&schedule, 2, 0);
    expect_waits(&schedule, 4, 3);
    schedule_free(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_meet_and_buffers_are_kept),
        cmocka_unit_test(shared_gradients_are_summed_before_the_norm),
        cmocka_unit_test(idle_slots_are_those_of_the_formula),
        cmocka_unit_test(passes_end_when_the_lists_have_them_end),
        cmocka_unit_test(passes_are_timed_as_a_whole),
        cmocka_unit_test(evaluation_goes_forward_from_stage_to_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
