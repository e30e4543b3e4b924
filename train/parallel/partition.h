/* SPDX-License-Identifier: Apache-2.0
 *
 * partition: which rank owns what, the same for every stage of ZeRO. The nodes of a model are cut
 * into buckets of neighbours, and the flat buffers are laid out bucket after bucket, each filled up
 * with zeros to a multiple of the ranks; rank r owns part r of every bucket. What a rank owns, its
 * parts one after another, is its own flat buffer.
 */
#ifndef TRAIN_PARTITION_H
#define TRAIN_PARTITION_H

#include <stdio.h>

#include "model.h"

typedef struct partition_bucket {
    int first, end; /* nodes; the buckets' ranges follow each other over all nodes */
    size_t offset;  /* elements before it in the flat buffers */
    size_t used;    /* elements of its tensors */
    size_t count;   /* the same, filled up to a multiple of the ranks */
    size_t part;    /* of those, each rank's: count / ranks */
    size_t own;     /* elements before its part in what a rank owns */
    bool is_shared; /* has parameters of other stages of a pipeline, too: all ranks of this stage
                       need their gradients whole */
} partition_bucket;

typedef struct train_partition {
    int ranks;
    partition_bucket *buckets; /* [count], in the order of the nodes */
    int count;
    size_t elements; /* of the flat buffers, padding included */
    size_t own;      /* elements that each rank owns: elements / ranks */
    size_t largest;  /* elements of the largest bucket */
} train_partition;

/** Cuts @p model from its last node to its first, as backward goes: a bucket is closed before the
 *  node at which it has @p bucket_bytes of float32 parameters. Moves the tensors to their offsets
 *  in the padded buffers. Free with partition_free(). @return RING_OK or RING_ERR_MEMORY. */
ring_status partition_create(train_partition *partition, train_model *model, size_t bucket_bytes,
                             int ranks);
void partition_free(train_partition *partition);

/** Prints a line a bucket: its nodes, elements and each rank's part of them. */
void partition_print(const train_partition *partition, FILE *out);

/** @return the bucket of @p node. */
int partition_bucket_of(const train_partition *partition, int node);

#endif
