/* SPDX-License-Identifier: Apache-2.0
 * Cutting a model into buckets, and its tensors' places. */
#include "partition.h"

#include <stdlib.h>

#include "errors.h"

/* Greedy, as in DeepSpeed: a tensor that is too large for what is left does not end the choice. */
static void choose_whole(train_partition *partition, const train_model *model)
{
    size_t chosen = 0;
    for (int t = 0; t < model->tensors.count; t++) {
        const train_tensor *tensor = &model->tensors.list[t];
        partition->whole[t] = tensor->tie < 0 && tensor->count <= partition->rules.whole_most &&
                              tensor->count <= partition->rules.whole_all - chosen;
        chosen += partition->whole[t] ? tensor->count : 0;
    }
}

/* Elements of the tensors that the node brings along; those of a tied one came with another.
 * @param of  [tensors] which of them count; NULL: all. */
static size_t elements_of(const train_model *model, int node, const bool *of)
{
    const model_node *at = &model->nodes[node];
    size_t elements = 0;
    for (int t = 0; t < at->use.tensor_count; t++) {
        const train_tensor *tensor = &model->tensors.list[at->tensors[t]];
        const bool counts = tensor->tie < 0 && (of == NULL || of[at->tensors[t]]);
        elements += counts ? tensor->count : 0;
    }
    return elements;
}

/* From the last node to the first; the buckets come out in that order. */
static void cut(train_partition *partition, const train_model *model)
{
    partition_bucket *open = NULL;
    for (int n = model->node_count - 1; n >= 0; n--) {
        if (open == NULL || open->used * sizeof(float) >= partition->rules.bucket_bytes) {
            open = &partition->buckets[partition->count++];
            *open = (partition_bucket){.end = n + 1};
        }
        open->first = n;
        open->used += elements_of(model, n, NULL);
    }
    if (partition->count > 1 && open->used == 0) { /* nodes without parameters at the front */
        open[-1].first = 0;
        partition->count--;
    }
}

static void reverse(train_partition *partition)
{
    for (int low = 0, high = partition->count - 1; low < high; low++, high--) {
        const partition_bucket kept = partition->buckets[low];
        partition->buckets[low] = partition->buckets[high];
        partition->buckets[high] = kept;
    }
}

/* Tensors that stay whole get a bucket, beside that of the others if there are any. */
static void set_apart(train_partition *partition, const train_model *model)
{
    partition->ranges = partition->count;
    for (int b = 0; b < partition->ranges; b++) {
        partition_bucket *bucket = &partition->buckets[b];
        size_t whole = 0;
        for (int n = bucket->first; n < bucket->end; n++)
            whole += elements_of(model, n, partition->whole);
        bucket->is_whole = whole > 0 && whole == bucket->used;
        if (whole == 0 || bucket->is_whole)
            continue;
        bucket->beside = partition->count++;
        bucket->used -= whole;
        partition->buckets[bucket->beside] = (partition_bucket){.first = bucket->first,
                                                                .end = bucket->end,
                                                                .is_whole = true,
                                                                .used = whole};
    }
}

static void lay_out(train_partition *partition)
{
    const size_t ranks = (size_t)partition->ranks;
    for (int b = 0; b < partition->count; b++) {
        partition_bucket *bucket = &partition->buckets[b];
        bucket->part = (bucket->used + ranks - 1) / ranks;
        bucket->count = bucket->part * ranks;
        bucket->offset = partition->elements;
        bucket->own = partition->own;
        partition->elements += bucket->count;
        bucket->kept_at = partition->kept;
        partition->own += bucket->part;
        partition->kept += bucket->is_whole ? bucket->count : bucket->part;
    }
}

/* @return whether a tensor of the range of @p bucket lies in it. */
static bool holds(const train_partition *partition, int bucket, int tensor)
{
    const partition_bucket *at = &partition->buckets[bucket];
    const bool alone = bucket < partition->ranges && at->beside == 0;
    return alone || at->is_whole == partition->whole[tensor];
}

static int range_of_tensor(const train_partition *partition, const train_model *model, int tensor)
{
    for (int n = 0; n < model->node_count; n++) {
        for (int t = 0; t < model->nodes[n].use.tensor_count; t++) {
            if (model->nodes[n].tensors[t] == tensor)
                return partition_bucket_of(partition, n);
        }
    }
    return 0; /* every tensor is a node's */
}

static void find_ties(train_partition *partition, const train_model *model)
{
    for (int t = 0; t < model->tensors.count; t++) {
        const int tie = model->tensors.list[t].tie;
        const int owner = tie >= 0 ? range_of_tensor(partition, model, tie) : 0;
        if (tie < 0 || owner == range_of_tensor(partition, model, t))
            continue;
        const bool here = holds(partition, owner, tie);
        partition->buckets[here ? owner : partition->buckets[owner].beside].is_tied = true;
    }
}

/* Elements of a bucket in one of the two places that ranges use alternately. */
static size_t in_turn(const partition_bucket *bucket, bool gathered)
{
    return bucket->is_tied || (gathered && bucket->is_whole) ? 0 : bucket->count;
}

static size_t largest_range(const train_partition *partition, bool gathered)
{
    size_t largest = 0;
    for (int r = 0; r < partition->ranges; r++) {
        size_t elements = 0;
        for (int b = r; b >= 0; b = partition_beside(partition, b))
            elements += in_turn(&partition->buckets[b], gathered);
        largest = elements > largest ? elements : largest;
    }
    return largest;
}

/* The two places, and behind them those of tied buckets. @param gathered  of what stage 3 gathers.
 * @return elements of all. */
static size_t place_live(const train_partition *partition, size_t largest, bool gathered)
{
    size_t end = LIVE_BUCKETS * largest;
    for (int r = 0; r < partition->ranges; r++) {
        size_t at = (size_t)(r % LIVE_BUCKETS) * largest;
        for (int b = r; b >= 0; b = partition_beside(partition, b)) {
            partition_bucket *bucket = &partition->buckets[b];
            const bool apart = bucket->is_tied && !(gathered && bucket->is_whole);
            *(gathered ? &bucket->gathered_at : &bucket->live_at) = apart ? end : at;
            at += in_turn(bucket, gathered);
            end += apart ? bucket->count : 0;
        }
    }
    return end;
}

static void place_all(train_partition *partition)
{
    partition->largest = largest_range(partition, false);
    partition->live = place_live(partition, partition->largest, false);
    partition->gathered = place_live(partition, largest_range(partition, true), true);
}

static void move_tensors(const train_partition *partition, train_model *model)
{
    train_tensor *tensors = model->tensors.list;
    for (int b = 0; b < partition->count; b++) {
        size_t offset = partition->buckets[b].offset;
        for (int n = partition->buckets[b].first; n < partition->buckets[b].end; n++) {
            const model_node *node = &model->nodes[n];
            for (int t = 0; t < node->use.tensor_count; t++) {
                train_tensor *tensor = &tensors[node->tensors[t]];
                if (tensor->tie >= 0 || !holds(partition, b, node->tensors[t]))
                    continue;
                tensor->offset = offset;
                offset += tensor->count;
            }
        }
    }
    for (int t = 0; t < model->tensors.count; t++)
        tensors[t].offset = tensors[tensors[t].tie >= 0 ? tensors[t].tie : t].offset;
    model->tensors.elements = partition->elements;
}

static void find_sums(const train_partition *partition, const train_model *model)
{
    for (int n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if (node->use.op->sums_input)
            partition->sums[n] = SUM_INPUT;
        else if (node->use.op->sums_delta && node->wants_delta)
            partition->sums[n] = SUM_DELTA;
    }
}

static ring_status copy_segments(train_partition *partition, const train_model *model)
{
    if (model->interval == 0)
        return RING_OK;
    RING_TRY(train_alloc((void **)&partition->segments,
                         (size_t)model->node_count * sizeof *partition->segments, "segments"));
    for (int n = 0; n < model->node_count; n++)
        partition->segments[n] = model->nodes[n].segment;
    return RING_OK;
}

ring_status partition_create(train_partition *partition, train_model *model,
                             const partition_rules *rules, int ranks)
{
    *partition = (train_partition){.ranks = ranks, .rules = *rules};
    RING_TRY(train_alloc((void **)&partition->buckets,
                         2 * (size_t)model->node_count * sizeof *partition->buckets, "buckets"));
    RING_TRY(train_alloc((void **)&partition->sums,
                         (size_t)model->node_count * sizeof *partition->sums, "buckets"));
    RING_TRY(train_alloc((void **)&partition->whole,
                         (size_t)model->tensors.count * sizeof *partition->whole, "buckets"));
    find_sums(partition, model);
    choose_whole(partition, model);
    RING_TRY(copy_segments(partition, model));
    cut(partition, model);
    reverse(partition);
    set_apart(partition, model);
    find_ties(partition, model);
    lay_out(partition);
    place_all(partition);
    move_tensors(partition, model);
    return RING_OK;
}

void partition_free(train_partition *partition)
{
    free(partition->buckets);
    free(partition->sums);
    free(partition->whole);
    free(partition->segments);
    *partition = (train_partition){0};
}

int partition_bucket_of(const train_partition *partition, int node)
{
    int b = 0;
    while (node >= partition->buckets[b].end)
        b++;
    return b;
}

int partition_beside(const train_partition *partition, int bucket)
{
    const int beside = partition->buckets[bucket].beside;
    return beside > 0 ? beside : -1;
}

size_t partition_split(const train_partition *partition)
{
    size_t elements = 0;
    for (int b = 0; b < partition->count; b++)
        elements += partition->buckets[b].is_whole ? 0 : partition->buckets[b].used;
    return elements;
}

void partition_print(const train_partition *partition, FILE *out)
{
    for (int b = 0; b < partition->count; b++) {
        const partition_bucket *at = &partition->buckets[b];
        fprintf(out,
                "bucket %d: nodes %d to %d, %zu elements and %zu of padding; rank r has %zu "
                "from r * %zu on%s\n",
                b, at->first, at->end - 1, at->used, at->count - at->used, at->part, at->part,
                at->is_whole ? "; stage 3 leaves it whole" : "");
    }
}
