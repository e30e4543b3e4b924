/* SPDX-License-Identifier: Apache-2.0
 * Partitions and schedules as what they are, data: what ranks own, and whether the instructions'
 * dependencies keep every buffer for its user, for all stages and numbers of buckets. */
#include "check.h"
#include "update_order.h"

#include <builtin.h>
#include <errors.h>
#include <stdlib.h>
#include <string.h>
#include <train_engine.h>

enum { BUCKETS_MAX = 6, MICROS_MAX = 5 };

/* ---- Partitions ---------------------------------------------------------------------------- */

static void check_buckets(const train_partition *partition, const train_model *model)
{
    size_t offset = 0, own = 0;
    int node = 0;
    for (int b = 0; b < partition->count; b++) {
        const partition_bucket *bucket = &partition->buckets[b];
        assert_int_equal(bucket->first, node);
        assert_true(bucket->end > node && bucket->used > 0);
        assert_int_equal(bucket->at[LAYOUT_FULL], offset);
        assert_int_equal(bucket->at[LAYOUT_OWN], own);
        assert_int_equal(bucket->part * (size_t)partition->ranks, bucket->count);
        assert_in_range(bucket->count - bucket->used, 0, (size_t)partition->ranks - 1);
        assert_true(bucket->count * LIVE_BUCKETS <= partition->elements[LAYOUT_LIVE]);
        assert_int_equal(partition_bucket_of(partition, bucket->first), b);
        assert_int_equal(partition_bucket_of(partition, bucket->end - 1), b);
        offset += bucket->count;
        own += bucket->part;
        node = bucket->end;
    }
    assert_int_equal(node, model->node_count);
    assert_int_equal(offset, partition->elements[LAYOUT_FULL]);
    assert_int_equal(own, partition->elements[LAYOUT_OWN]);
    assert_int_equal(offset, model->tensors.elements);
}

/* Tensors follow each other within their node's bucket, and fill it. */
static void check_tensors(const train_partition *partition, const train_model *model)
{
    for (int b = 0; b < partition->count; b++) {
        size_t at = partition->buckets[b].at[LAYOUT_FULL];
        for (int n = partition->buckets[b].first; n < partition->buckets[b].end; n++) {
            for (int t = 0; t < model->nodes[n].use.tensor_count; t++) {
                const train_tensor *tensor = &model->tensors.list[model->nodes[n].tensors[t]];
                assert_int_equal(tensor->offset, at);
                at += tensor->count;
            }
        }
        assert_int_equal(at, partition->buckets[b].at[LAYOUT_FULL] + partition->buckets[b].used);
    }
}

static ring_status create(train_partition *partition, train_model *model, size_t bytes, int ranks)
{
    return partition_create(partition, model, &(partition_rules){.bucket_bytes = bytes}, ranks);
}

static void buckets_are_padded_and_owned_in_equal_parts(void **state)
{
    static const char *const names[] = {"mlp", "lenet5"};
    for (size_t m = 0; m < COUNT_OF(names); m++) {
        for (int ranks = 1; ranks <= 7; ranks++) {
            for (size_t bytes = 1; bytes <= 1U << 20; bytes *= 32) {
                model_spec spec;
                train_model model;
                train_partition partition;
                assert_int_equal(model_build(&spec, names[m]), RING_OK);
                assert_int_equal(model_create(&model, &spec, 1, 1), RING_OK);
                assert_int_equal(create(&partition, &model, bytes, ranks), RING_OK);
                check_buckets(&partition, &model);
                check_tensors(&partition, &model);
                partition_free(&partition);
                model_destroy(&model);
                model_spec_free(&spec);
            }
        }
    }
}

static void nodes_without_parameters_have_no_bucket_of_their_own(void **state)
{
    model_spec spec;
    train_model model;
    train_partition partition;
    model_spec_start(&spec, "m", (op_shape){.dim = {1, 2, 2}, .dims = 3});
    model_spec_add(&spec, &op_tanh, NULL);
    model_spec_add(&spec, &op_flatten, NULL);
    model_spec_add(&spec, &op_linear, &(op_settings){.outputs = 3});
    model_spec_add(&spec, &op_linear, &(op_settings){.outputs = 3});
    assert_int_equal(model_create(&model, &spec, 1, 1), RING_OK);
    assert_int_equal(create(&partition, &model, 1, 2), RING_OK);
    assert_int_equal(partition.count, 2);
    check_buckets(&partition, &model);
    assert_int_equal(partition.buckets[0].end, 3);
    assert_int_equal(partition.buckets[0].used, 15);
    assert_int_equal(partition.buckets[0].count, 16);
    assert_int_equal(partition.buckets[1].at[LAYOUT_FULL], 16);
    partition_free(&partition);
    model_destroy(&model);
    model_spec_free(&spec);
}

/* @return tensors of the MLP that stay whole, a letter each, of at most @p most elements and @p all
 * together; checks how many are left to split. */
static const char *whole_of_mlp(size_t most, size_t all, size_t split)
{
    static char letters[8];
    const partition_rules rules = {.bucket_bytes = 65536,
                                   .persistent_most = most,
                                   .persistent_all = all};
    model_spec spec;
    train_model model;
    train_partition partition;
    memset(letters, 0, sizeof letters);
    assert_int_equal(model_build(&spec, "mlp"), RING_OK);
    assert_int_equal(model_create(&model, &spec, 1, 1), RING_OK);
    assert_int_equal(partition_create(&partition, &model, &rules, 3), RING_OK);
    for (int t = 0; t < model.tensors.count; t++)
        letters[t] = partition.persistent[t] ? 'w' : '.';
    assert_int_equal(partition_split(&partition), split);
    partition_free(&partition);
    model_destroy(&model);
    model_spec_free(&spec);
    return letters;
}

/* 200704 + 256, 16384 + 64, 640 + 10. */
static void tensors_stay_whole_while_there_is_room(void **state)
{
    assert_string_equal(whole_of_mlp(0, SIZE_MAX, 218058), "......");
    assert_string_equal(whole_of_mlp(100000, SIZE_MAX, 200704), ".wwwww");
    assert_string_equal(whole_of_mlp(1000000, SIZE_MAX, 0), "wwwwww");
    assert_string_equal(whole_of_mlp(100000, 0, 218058), "......");
    assert_string_equal(whole_of_mlp(1000000, 17000, 201344), ".www.w");
    assert_string_equal(whole_of_mlp(1000000, 200960, 17098), "ww....");
    assert_string_equal(whole_of_mlp(1000000, 200959, 17280), "w..w.w");
}

/* ---- Schedules ----------------------------------------------------------------------------- */

/* A partition of @p count buckets of two nodes each. */
static train_partition made_up(partition_bucket *buckets, int count)
{
    for (int b = 0; b < count; b++)
        buckets[b] = (partition_bucket){.first = 2 * b, .end = 2 * b + 2};
    return (train_partition){.ranks = 2, .buckets = buckets, .ranges = count, .count = count};
}

/* @return the latest instruction of @p kind before @p number that uses the same place in memory as
 * @p bucket, or -1. */
static int latest(const update_schedule *schedule, int number, update_kind kind, int bucket)
{
    for (int i = number - 1; i >= 0; i--) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == kind && at->bucket != BUCKET_LOSS &&
            at->bucket % LIVE_BUCKETS == bucket % LIVE_BUCKETS)
            return i;
    }
    return -1;
}

/* Parameters that are computed with have arrived, and were not overwritten since. */
static void check_gathered(const update_schedule *schedule, int number)
{
    const update_instruction *at = &schedule->list[number];
    const int gather = latest(schedule, number, UPDATE_GATHER, at->bucket);
    assert_true(gather >= 0);
    assert_int_equal(schedule->list[gather].bucket, at->bucket);
    expect_waits(schedule, number, gather);
}

/* No pass computes with parameters that a GATHER overwrites. */
static void check_gather(const update_schedule *schedule, int number)
{
    const int bucket = schedule->list[number].bucket;
    expect_waits(schedule, number, latest(schedule, number, UPDATE_FORWARD, bucket));
    expect_waits(schedule, number, latest(schedule, number, UPDATE_BACKWARD, bucket));
}

static void check_instruction(const update_schedule *schedule, int number, int stage)
{
    const update_instruction *at = &schedule->list[number];
    const bool computes = at->kind == UPDATE_FORWARD || at->kind == UPDATE_BACKWARD;
    assert_int_equal(at->queue, at->kind == UPDATE_GATHER || at->kind == UPDATE_REDUCE);
    for (int i = 0; i < at->after_count; i++)
        assert_in_range(at->after[i], 0, number - 1);
    if (stage == 3 && computes)
        check_gathered(schedule, number);
    if (stage == 3 && at->kind == UPDATE_GATHER)
        check_gather(schedule, number);
    if (stage >= 2 && at->kind == UPDATE_BACKWARD)
        expect_waits(schedule, number, latest(schedule, number, UPDATE_REDUCE, at->bucket));
    if (at->kind == UPDATE_REDUCE && at->bucket != BUCKET_LOSS)
        expect_waits(schedule, number, latest(schedule, number, UPDATE_BACKWARD, at->bucket));
    if (at->kind == UPDATE_GATHER && stage < 3)
        expect_waits(schedule, number, latest(schedule, number, UPDATE_OPTIMIZE, at->bucket));
}

/* Forward from the first node to the last, backward from the last to the first. */
static void check_passes(const update_schedule *schedule, int micro, int nodes)
{
    int forward = 0, backward = nodes, loads = 0;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->micro != micro)
            continue;
        if (at->kind == UPDATE_LOAD)
            loads++;
        if (at->kind == UPDATE_FORWARD && !at->recompute) {
            assert_int_equal(at->first, forward);
            forward = at->end;
        }
        if (at->kind == UPDATE_BACKWARD) {
            assert_int_equal(forward, nodes);
            assert_int_equal(at->end, backward);
            backward = at->first;
        }
    }
    assert_int_equal(loads, 1);
    assert_int_equal(forward, nodes);
    assert_int_equal(backward, 0);
}

/* Before a node goes backward its segment ran forward, in the order of its nodes, and no other one
 * since. */
static void check_segments(const update_schedule *schedule, const int *segments)
{
    int at_node = 0, begin = 0;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        for (int n = at->first; n < at->end && at->kind == UPDATE_FORWARD; n++) {
            if (n == 0 || segments[n] != segments[n - 1])
                begin = n;
            else
                assert_int_equal(n, at_node);
            at_node = n + 1;
        }
        for (int n = at->first; n < at->end && at->kind == UPDATE_BACKWARD; n++) {
            assert_in_range(n, begin, at_node - 1);
            assert_int_equal(segments[n], segments[begin]);
        }
    }
}

/* Parameters are cast for nodes when a pass comes to their bucket from another one. */
static void check_opened(const update_schedule *schedule, int stage)
{
    int open = -1;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == UPDATE_LOAD)
            open = -1;
        if (at->kind != UPDATE_FORWARD && at->kind != UPDATE_BACKWARD)
            continue;
        open = at->opens ? at->bucket : open;
        assert_int_equal(at->bucket, open);
        if (at->opens && stage == 3)
            check_gathered(schedule, i);
    }
}

static int count_of(const update_schedule *schedule, update_kind kind)
{
    int count = 0;
    for (int i = 0; i < schedule->count; i++)
        count += schedule->list[i].kind == kind;
    return count;
}

/* The first writer of a gradient, and the later ones that add to it. */
static void check_accumulation(const update_schedule *schedule, int stage)
{
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        const update_kind adds = stage < 2 ? UPDATE_BACKWARD : UPDATE_REDUCE;
        if (at->bucket != BUCKET_LOSS && (at->kind == UPDATE_BACKWARD || at->kind == UPDATE_REDUCE))
            assert_int_equal(at->accumulate, at->kind == adds && at->micro > 0);
    }
}

static void dependencies_keep_every_buffer_for_its_user(void **state)
{
    partition_bucket buckets[BUCKETS_MAX];
    for (int count = 1; count <= BUCKETS_MAX; count++) {
        const train_partition partition = made_up(buckets, count);
        for (int stage = 0; stage <= ZERO_STAGE_MAX; stage++) {
            for (int micros = 1; micros <= MICROS_MAX; micros++) {
                const int reduces[] = {1, 1, micros, micros}, gathers[] = {0, 1, 1, 2 * micros};
                update_schedule schedule;
                assert_int_equal(schedule_update(&schedule, &partition, stage, micros), RING_OK);
                for (int i = 0; i < schedule.count; i++)
                    check_instruction(&schedule, i, stage);
                for (int m = 0; m < micros; m++)
                    check_passes(&schedule, m, 2 * count);
                check_opened(&schedule, stage);
                check_accumulation(&schedule, stage);
                assert_int_equal(count_of(&schedule, UPDATE_REDUCE), count * reduces[stage] + 1);
                assert_int_equal(count_of(&schedule, UPDATE_GATHER), count * gathers[stage]);
                assert_int_equal(count_of(&schedule, UPDATE_CLIP), 1);
                assert_int_equal(count_of(&schedule, UPDATE_OPTIMIZE), count);
                schedule_free(&schedule);
            }
        }
    }
}

static void segments_run_again_before_they_go_backward(void **state)
{
    partition_bucket buckets[BUCKETS_MAX];
    int segments[2 * BUCKETS_MAX];
    for (int count = 1; count <= BUCKETS_MAX; count++) {
        train_partition partition = made_up(buckets, count);
        partition.segments = segments;
        for (int c = 0; c < 2 * BUCKETS_MAX * (ZERO_STAGE_MAX + 1); c++) {
            const int interval = c % (2 * BUCKETS_MAX) + 1, stage = c / (2 * BUCKETS_MAX);
            update_schedule schedule;
            for (int n = 0; n < 2 * count; n++)
                segments[n] = n / interval;
            assert_int_equal(schedule_update(&schedule, &partition, stage, 2), RING_OK);
            for (int i = 0; i < schedule.count; i++)
                check_instruction(&schedule, i, stage);
            for (int m = 0; m < 2; m++)
                check_passes(&schedule, m, 2 * count);
            check_segments(&schedule, segments);
            check_opened(&schedule, stage);
            check_accumulation(&schedule, stage);
            assert_int_equal(count_of(&schedule, UPDATE_REDUCE), count * (stage < 2 ? 1 : 2) + 1);
            schedule_free(&schedule);
        }
    }
}

static void parameters_are_gathered_one_bucket_ahead(void **state)
{
    static const update_kind want[] = {UPDATE_LOAD,   UPDATE_GATHER,  UPDATE_GATHER, UPDATE_FORWARD,
                                       UPDATE_GATHER, UPDATE_FORWARD, UPDATE_FORWARD};
    partition_bucket buckets[3];
    const train_partition partition = made_up(buckets, 3);
    update_schedule schedule;
    assert_int_equal(schedule_forward(&schedule, &partition, 3), RING_OK);
    assert_int_equal(schedule.count, COUNT_OF(want));
    for (size_t i = 0; i < COUNT_OF(want); i++)
        assert_string_equal(update_kind_names[schedule.list[i].kind], update_kind_names[want[i]]);
    for (int i = 0; i < schedule.count; i++)
        check_instruction(&schedule, i, 3);
    schedule_free(&schedule);
    assert_int_equal(schedule_forward(&schedule, &partition, 2), RING_OK);
    assert_int_equal(schedule.count, 4);
    schedule_free(&schedule);
}

/* @return whether the bucket's place is free after this instruction. */
static bool is_last_use(const update_schedule *schedule, int number)
{
    const update_kind kind = schedule->list[number].kind;
    bool free = true;
    if (kind != UPDATE_FORWARD && kind != UPDATE_BACKWARD)
        return false;
    for (int i = schedule->count - 1; i > number; i--) {
        const update_instruction *at = &schedule->list[i];
        if (at->bucket == schedule->list[number].bucket && at->kind == UPDATE_GATHER)
            free = true;
        else if (at->bucket == schedule->list[number].bucket &&
                 (at->kind == UPDATE_FORWARD || at->kind == UPDATE_BACKWARD))
            free = false;
    }
    return free;
}

/* @return the most elements that are gathered at a time. */
static size_t most_gathered(const update_schedule *schedule, const train_partition *partition)
{
    size_t now = 0, most = 0;
    for (int i = 0; i < schedule->count; i++) {
        const update_instruction *at = &schedule->list[i];
        if (at->kind == UPDATE_GATHER)
            now += partition->buckets[at->bucket].count;
        if (is_last_use(schedule, i))
            now -= partition->buckets[at->bucket].count;
        most = now > most ? now : most;
    }
    assert_int_equal(now, 0);
    return most;
}

/* Buckets of 10, 20, … 60 elements: 110 for two neighbours. */
static void bounds_of_gathered_parameters_hold(void **state)
{
    static const struct {
        size_t ahead_most, live_most, want;
    } cases[] = {{SIZE_MAX, SIZE_MAX, 110}, {SIZE_MAX, 110, 110}, {SIZE_MAX, 109, 90},
                 {SIZE_MAX, 1, 60},         {0, SIZE_MAX, 60},    {50, SIZE_MAX, 110},
                 {49, SIZE_MAX, 90},        {40, 90, 90}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        partition_bucket buckets[BUCKETS_MAX];
        train_partition partition = made_up(buckets, BUCKETS_MAX);
        update_schedule schedule;
        for (int b = 0; b < BUCKETS_MAX; b++)
            buckets[b].count = 10 * (size_t)(b + 1);
        partition.rules.ahead_most = cases[c].ahead_most;
        partition.rules.live_most = cases[c].live_most;
        assert_int_equal(schedule_update(&schedule, &partition, 3, 2), RING_OK);
        for (int i = 0; i < schedule.count; i++)
            check_instruction(&schedule, i, 3);
        assert_int_equal(most_gathered(&schedule, &partition), cases[c].want);
        assert_int_equal(count_of(&schedule, UPDATE_GATHER), 4 * BUCKETS_MAX);
        schedule_free(&schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_padded_and_owned_in_equal_parts),
        cmocka_unit_test(nodes_without_parameters_have_no_bucket_of_their_own),
        cmocka_unit_test(tensors_stay_whole_while_there_is_room),
        cmocka_unit_test(dependencies_keep_every_buffer_for_its_user),
        cmocka_unit_test(segments_run_again_before_they_go_backward),
        cmocka_unit_test(parameters_are_gathered_one_bucket_ahead),
        cmocka_unit_test(bounds_of_gathered_parameters_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
