/* SPDX-License-Identifier: Apache-2.0
 *
 * partition: decides which rank owns which parameters; the decision is the same for every stage of
 * ZeRO. The nodes of a model are cut into ranges of neighbours. The tensors of a range form a
 * bucket, or two: one with persistent tensors, which every rank keeps in full in stage 3, and one
 * with the others. The flat buffers contain one bucket after another, each padded with zeros to a
 * multiple of the number of ranks; rank r owns part r of every bucket.
 *
 *     nodes       0 1 2 | 3 4 | 5            ranges, cut from the last node to the first
 *     flat buffer AAAAaaa0 BBBBbbbb CCcc     [elements[LAYOUT_FULL]] a bucket a letter, on 2 ranks
 *     of rank 1       aaa0     bbbb   cc     [elements[LAYOUT_OWN]]
 */
#ifndef TRAIN_PARTITION_H
#define TRAIN_PARTITION_H

#include <stdint.h>
#include <stdio.h>

#include "model.h"

/* Buckets that are gathered, or whose gradients are on their way, at a time from stage 3 and 2 of
 * ZeRO on: one is computed with while the next one comes or the last one goes. */
enum { LIVE_BUCKETS = 2 };

/** How an array that has a number for each parameter is laid out. In the first three the buckets
 * lie one after another, as much of each as the layout has. */
typedef enum array_layout {
    LAYOUT_FULL,     /* all of every bucket */
    LAYOUT_OWN,      /* the own part of every bucket */
    LAYOUT_KEPT,     /* all of persistent buckets, the own part of the others */
    LAYOUT_LIVE,     /* two places, used in turn by the ranges, and one for each tied bucket */
    LAYOUT_GATHERED, /* the same without persistent buckets */
    LAYOUTS
} array_layout;

typedef struct partition_bucket {
    int first, end;     /* nodes; the ranges follow each other over all nodes */
    int beside;         /* the bucket of the same range's persistent tensors; 0: none */
    size_t used;        /* elements of its tensors, */
    size_t count;       /* filled up to a multiple of the ranks, */
    size_t part;        /* and of those each rank's: count / ranks */
    bool is_persistent; /* in stage 3 of ZeRO all ranks keep all of its parameters */
    bool is_shared; /* has parameters of other stages of a pipeline, too: all ranks of this stage
                       need all of their gradients */
    bool is_tied;   /* other buckets use its parameters, too: its live place is its own */
    size_t at[LAYOUTS]; /* elements before it in an array of each layout */
} partition_bucket;

/** Numbers that tensor ranks sum before a pass comes to a node. */
enum { SUM_INPUT = 1 /* its input, in forward */, SUM_GRAD = 2 /* its gradient, in backward */ };

/** Rules by which a model is cut and parameters are gathered. */
typedef struct partition_rules {
    size_t bucket_bytes;    /* of float32 parameters, at which a range is closed */
    size_t persistent_most; /* largest number of elements of a persistent tensor; 0: no tensor is
                               persistent */
    size_t persistent_all;  /* elements of all of those together, chosen in the model's order */
    bool broadcasts;        /* owners send updated parameters one after the other */
    size_t ahead_most;      /* elements of a bucket that is gathered ahead of its use */
    size_t live_most;       /* gathered elements up to which another bucket is gathered ahead */
} partition_rules;

typedef struct train_partition {
    int ranks;
    partition_rules rules;
    partition_bucket *buckets; /* [count], in the order of the nodes: first one per range, then the
                                  second buckets of ranges */
    int ranges, count;
    bool *persistent; /* [tensors] all ranks keep it in stage 3 of ZeRO */
    uint8_t *sums;    /* [nodes] SUM_INPUT, SUM_GRAD or 0; NULL: there are none */
    int *segments;    /* [nodes] whose activations are recomputed as one; NULL: all are kept */
    size_t elements[LAYOUTS]; /* of an array of each layout, padding included */
} train_partition;

/** Cuts @p model from its last node to its first, as backward goes: a range is closed before the
 *  node at which it has rules->bucket_bytes. Moves the tensors to their offsets in the padded
 *  buffers. Free with partition_free(). @return RING_OK or RING_ERR_MEMORY. */
ring_status partition_create(train_partition *partition, train_model *model,
                             const partition_rules *rules, int ranks);
void partition_free(train_partition *partition);

/** Prints a line a bucket: its nodes, elements and each rank's part of them. */
void partition_print(const train_partition *partition, FILE *out);

/** @return the first bucket of the range of @p node. */
int partition_bucket_of(const train_partition *partition, int node);

/** @return the bucket after @p bucket in its range; -1 if there is none. */
int partition_beside(const train_partition *partition, int bucket);

/** @return elements of tensors that ranks split in stage 3 of ZeRO, without padding. */
size_t partition_split(const train_partition *partition);

#endif
