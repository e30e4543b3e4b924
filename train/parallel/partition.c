/* SPDX-License-Identifier: Apache-2.0
 * Cutting a model into buckets, and its tensors' places. */
#include "partition.h"

#include <stdlib.h>

#include "errors.h"

/* Elements of the tensors that the node brings along; those of a tied one came with another. */
static size_t elements_of(const train_model *model, int node)
{
    const model_node *at = &model->nodes[node];
    size_t elements = 0;
    for (int t = 0; t < at->use.tensor_count; t++) {
        const train_tensor *tensor = &model->tensors.list[at->tensors[t]];
        elements += tensor->tie < 0 ? tensor->count : 0;
    }
    return elements;
}

/* From the last node to the first; the buckets come out in that order. */
static void cut(train_partition *partition, const train_model *model, size_t bucket_bytes)
{
    partition_bucket *open = NULL;
    for (int n = model->node_count - 1; n >= 0; n--) {
        if (open == NULL || open->used * sizeof(float) >= bucket_bytes) {
            open = &partition->buckets[partition->count++];
            *open = (partition_bucket){.end = n + 1};
        }
        open->first = n;
        open->used += elements_of(model, n);
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
        partition->own += bucket->part;
        if (bucket->count > partition->largest)
            partition->largest = bucket->count;
    }
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
                tensor->offset = tensor->tie < 0 ? offset : tensors[tensor->tie].offset;
                offset += tensor->tie < 0 ? tensor->count : 0;
            }
        }
    }
    model->tensors.elements = partition->elements;
}

ring_status partition_create(train_partition *partition, train_model *model, size_t bucket_bytes,
                             int ranks)
{
    *partition = (train_partition){.ranks = ranks};
    RING_TRY(train_alloc((void **)&partition->buckets,
                         (size_t)model->node_count * sizeof *partition->buckets, "buckets"));
    cut(partition, model, bucket_bytes);
    reverse(partition);
    lay_out(partition);
    move_tensors(partition, model);
    return RING_OK;
}

void partition_free(train_partition *partition)
{
    free(partition->buckets);
    *partition = (train_partition){0};
}

int partition_bucket_of(const train_partition *partition, int node)
{
    int b = 0;
    while (node >= partition->buckets[b].end)
        b++;
    return b;
}

void partition_print(const train_partition *partition, FILE *out)
{
    for (int b = 0; b < partition->count; b++) {
        const partition_bucket *at = &partition->buckets[b];
        fprintf(out,
                "bucket %d: nodes %d to %d, %zu elements and %zu of padding; rank r has %zu "
                "from r * %zu on\n",
                b, at->first, at->end - 1, at->used, at->count - at->used, at->part, at->part);
    }
}
