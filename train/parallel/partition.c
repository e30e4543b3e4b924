/* SPDX-License-Identifier: Apache-2.0
 * Cuts a model into buckets, and gives each bucket and tensor an offset in every layout. */
#include "partition.h"

#include <stdlib.h>

#include "errors.h"

/* Chooses persistent tensors greedily, as DeepSpeed does: a tensor that exceeds the remaining limit
 * is skipped, and later, smaller ones may still be chosen. */
static void choose_persistent(train_partition *partition, const train_model *model)
{
    size_t chosen = 0;
    for (int t = 0; t < model->tensors.count; t++) {
        const train_tensor *tensor = &model->tensors.list[t];
        partition->persistent[t] = tensor->tie < 0 &&
                                   tensor->count <= partition->rules.persistent_most &&
                                   tensor->count <= partition->rules.persistent_all - chosen;
        chosen += partition->persistent[t] ? tensor->count : 0;
    }
}

/* @return elements of the tensor and of the gap after it. The gap is always 0. */
static size_t room_of(const train_partition *partition, const train_tensor *tensor)
{
    const size_t alignment = partition->rules.alignment > 0 ? partition->rules.alignment : 1;
    return (tensor->count + alignment - 1) / alignment * alignment;
}

/* @return elements of the node's tensors, without tied ones, which belong to another node.
 * @param of  [tensors] which tensors are counted; NULL: all. */
static size_t elements_of(const train_partition *partition, const train_model *model, int node,
                          const bool *of)
{
    const model_node *at = &model->nodes[node];
    size_t elements = 0;
    for (int t = 0; t < at->use.tensor_count; t++) {
        const train_tensor *tensor = &model->tensors.list[at->tensors[t]];
        const bool counts = tensor->tie < 0 && (of == NULL || of[at->tensors[t]]);
        elements += counts ? room_of(partition, tensor) : 0;
    }
    return elements;
}

/* Cuts ranges from the last node to the first, and then reverses their order. */
static void cut(train_partition *partition, const train_model *model)
{
    partition_bucket *open = NULL;
    for (int n = model->node_count - 1; n >= 0; n--) {
        if (open == NULL || open->used * sizeof(float) >= partition->rules.bucket_bytes) {
            open = &partition->buckets[partition->count++];
            *open = (partition_bucket){.end = n + 1};
        }
        open->first = n;
        open->used += elements_of(partition, model, n, NULL);
    }
    if (partition->count > 1 && open->used == 0) { /* the first nodes have no parameters */
        open[-1].first = 0;
        partition->count--;
    }
    for (int low = 0, high = partition->count - 1; low < high; low++, high--) {
        const partition_bucket kept = partition->buckets[low];
        partition->buckets[low] = partition->buckets[high];
        partition->buckets[high] = kept;
    }
}

/* Moves the persistent tensors of each range to a second bucket. If all tensors of a range are
 * persistent, its only bucket is. */
static void set_apart(train_partition *partition, const train_model *model)
{
    partition->ranges = partition->count;
    for (int b = 0; b < partition->ranges; b++) {
        partition_bucket *bucket = &partition->buckets[b];
        size_t persistent = 0;
        for (int n = bucket->first; n < bucket->end; n++)
            persistent += elements_of(partition, model, n, partition->persistent);
        bucket->is_persistent = persistent > 0 && persistent == bucket->used;
        if (persistent == 0 || bucket->is_persistent)
            continue;
        bucket->beside = partition->count++;
        bucket->used -= persistent;
        partition->buckets[bucket->beside] = (partition_bucket){.first = bucket->first,
                                                                .end = bucket->end,
                                                                .is_persistent = true,
                                                                .used = persistent};
    }
}

/* Reserves @p elements at the end of a layout. @return their offset. */
static size_t append(train_partition *partition, array_layout layout, size_t elements)
{
    const size_t at = partition->elements[layout];
    partition->elements[layout] += elements;
    return at;
}

/* Sets sizes and offsets of the buckets in the layouts in which they follow each other. */
static void lay_out(train_partition *partition)
{
    const size_t ranks = (size_t)partition->ranks;
    for (int b = 0; b < partition->count; b++) {
        partition_bucket *bucket = &partition->buckets[b];
        bucket->part = (bucket->used + ranks - 1) / ranks;
        bucket->count = bucket->part * ranks;
        bucket->at[LAYOUT_FULL] = append(partition, LAYOUT_FULL, bucket->count);
        bucket->at[LAYOUT_OWN] = append(partition, LAYOUT_OWN, bucket->part);
        bucket->at[LAYOUT_KEPT] = append(partition, LAYOUT_KEPT,
                                         bucket->is_persistent ? bucket->count : bucket->part);
    }
}

/* @return whether @p tensor, which belongs to the range of @p bucket, is in that bucket. */
static bool holds(const train_partition *partition, int bucket, int tensor)
{
    const partition_bucket *at = &partition->buckets[bucket];
    const bool alone = bucket < partition->ranges && at->beside == 0;
    return alone || at->is_persistent == partition->persistent[tensor];
}

static int range_of_tensor(const train_partition *partition, const train_model *model, int tensor)
{
    for (int n = 0; n < model->node_count; n++) {
        for (int t = 0; t < model->nodes[n].use.tensor_count; t++) {
            if (model->nodes[n].tensors[t] == tensor)
                return partition_bucket_of(partition, n);
        }
    }
    return 0; /* unreachable: every tensor belongs to a node */
}

/* Marks the buckets of tensors that nodes of other ranges use as well. */
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

/* @return whether the layout, LAYOUT_LIVE or LAYOUT_GATHERED, contains the bucket. */
static bool has_bucket(array_layout layout, const partition_bucket *bucket)
{
    return layout != LAYOUT_GATHERED || !bucket->is_persistent;
}

/* @return elements of the largest range, without tied buckets: the size of a live place. */
static size_t largest_range(const train_partition *partition, array_layout layout)
{
    size_t largest = 0;
    for (int r = 0; r < partition->ranges; r++) {
        size_t elements = 0;
        for (int b = r; b >= 0; b = partition_beside(partition, b)) {
            const partition_bucket *bucket = &partition->buckets[b];
            elements += !bucket->is_tied && has_bucket(layout, bucket) ? bucket->count : 0;
        }
        largest = elements > largest ? elements : largest;
    }
    return largest;
}

/* Range r uses live place r % LIVE_BUCKETS, in which its buckets are adjacent. A tied bucket has a
 * place of its own after these, since several ranges use it at different times. */
static void place_live(train_partition *partition, array_layout layout)
{
    const size_t largest = largest_range(partition, layout);
    append(partition, layout, LIVE_BUCKETS * largest);
    for (int r = 0; r < partition->ranges; r++) {
        size_t next = (size_t)(r % LIVE_BUCKETS) * largest;
        for (int b = r; b >= 0; b = partition_beside(partition, b)) {
            partition_bucket *bucket = &partition->buckets[b];
            const size_t count = has_bucket(layout, bucket) ? bucket->count : 0;
            bucket->at[layout] = bucket->is_tied ? append(partition, layout, count) : next;
            next += bucket->is_tied ? 0 : count;
        }
    }
}

/* Sets the tensors' offsets: bucket by bucket in LAYOUT_FULL, and within a bucket in the order of
 * the nodes. A tied tensor has the offset of its original. */
static void move_tensors(const train_partition *partition, train_model *model)
{
    train_tensor *tensors = model->tensors.list;
    for (int b = 0; b < partition->count; b++) {
        size_t offset = partition->buckets[b].at[LAYOUT_FULL];
        for (int n = partition->buckets[b].first; n < partition->buckets[b].end; n++) {
            const model_node *node = &model->nodes[n];
            for (int t = 0; t < node->use.tensor_count; t++) {
                train_tensor *tensor = &tensors[node->tensors[t]];
                if (tensor->tie >= 0 || !holds(partition, b, node->tensors[t]))
                    continue;
                tensor->offset = offset;
                offset += room_of(partition, tensor);
            }
        }
    }
    for (int t = 0; t < model->tensors.count; t++)
        tensors[t].offset = tensors[tensors[t].tie >= 0 ? tensors[t].tie : t].offset;
    model->tensors.elements = partition->elements[LAYOUT_FULL];
}

/* Finds the nodes at which tensor ranks sum activations or gradients. */
static void find_sums(const train_partition *partition, const train_model *model)
{
    for (int n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if (node->use.op->sums_input)
            partition->sums[n] = SUM_INPUT;
        else if (node->use.op->sums_grad && node->wants_grad)
            partition->sums[n] = SUM_GRAD;
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
    RING_TRY(train_alloc((void **)&partition->persistent,
                         (size_t)model->tensors.count * sizeof *partition->persistent, "buckets"));
    find_sums(partition, model);
    choose_persistent(partition, model);
    RING_TRY(copy_segments(partition, model));
    cut(partition, model);
    set_apart(partition, model);
    find_ties(partition, model);
    lay_out(partition);
    place_live(partition, LAYOUT_LIVE);
    place_live(partition, LAYOUT_GATHERED);
    move_tensors(partition, model);
    return RING_OK;
}

void partition_free(train_partition *partition)
{
    free(partition->buckets);
    free(partition->sums);
    free(partition->persistent);
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
        elements += partition->buckets[b].is_persistent ? 0 : partition->buckets[b].used;
    return elements;
}

void partition_print(const train_partition *partition, FILE *out)
{
    for (int b = 0; b < partition->count; b++) {
        const partition_bucket *at = &partition->buckets[b];
        fprintf(out,
                "bucket %d: nodes %d to %d, %zu element%s and %zu of padding; rank r has %zu "
                "from r * %zu on%s\n",
                b, at->first, at->end - 1, at->used, plural(at->used), at->count - at->used,
                at->part, at->part, at->is_persistent ? "; stage 3 leaves it whole" : "");
    }
}
