/* SPDX-License-Identifier: Apache-2.0
 *
 * partition: decides which rank owns which parameters; the decision is the same for every stage of
 * ZeRO. The nodes of a model are cut into ranges of consecutive nodes. The tensors of a range form
 * one bucket or two: one with persistent tensors, which every rank keeps in full in stage 3, and
 * one with the others. A flat buffer contains one bucket after another, each padded with zeros to a
 * multiple of the number of ranks; rank r owns part r of every bucket. An example with three
 * buckets A, B and C on 2 ranks, where capital letters are the part of rank 0:
 *
 *     nodes         0 1 2 | 3 4 | 5           three ranges
 *     all elements  AAAAaaa0 BBBBbbbb CCcc    [elements[LAYOUT_FULL]]
 *     of rank 1         aaa0     bbbb   cc    [elements[LAYOUT_OWN]]
 */
#ifndef TRAIN_PARTITION_H
#define TRAIN_PARTITION_H

#include <stdint.h>
#include <stdio.h>

#include "model.h"

/* Number of places for buckets that are gathered (stage 3 of ZeRO) or whose gradients are sent
 * (stages 2 and 3): nodes compute with one bucket while another one is in flight. */
enum { LIVE_BUCKETS = 2 };

/** Layout of an array that has a number for each parameter. In the first three, the buckets follow
 *  each other, as much of each as the layout contains. */
typedef enum array_layout {
    LAYOUT_FULL,     /* all of every bucket */
    LAYOUT_OWN,      /* this rank's part of every bucket */
    LAYOUT_KEPT,     /* all of persistent buckets, and this rank's part of the others */
    LAYOUT_LIVE,     /* two places, which the ranges use in turn, and one for each tied bucket */
    LAYOUT_GATHERED, /* as LAYOUT_LIVE, but without persistent buckets */
    LAYOUTS
} array_layout;

typedef struct partition_bucket {
    int first, end;     /* the range: nodes first to end - 1 */
    int beside;         /* the second bucket of the range, with its persistent tensors; 0: none */
    size_t used;        /* elements of its tensors */
    size_t count;       /* used, rounded up to a multiple of the number of ranks */
    size_t part;        /* elements of each rank's part: count / ranks */
    bool is_persistent; /* in stage 3 of ZeRO all ranks keep all of its parameters */
    bool is_shared; /* other stages of a pipeline have some of its parameters, too, so all ranks of
                       this stage need all of its gradients */
    bool is_tied;   /* nodes of other ranges use its parameters, too, so it has a live place of its
                       own */
    size_t at[LAYOUTS]; /* offset of the bucket, in elements, in an array of each layout */
} partition_bucket;

/** What tensor ranks must sum before a pass computes a node. */
enum {
    SUM_INPUT = 1, /* before forward: the node's input */
    SUM_GRAD = 2   /* before backward: the gradient of the node's output */
};

/** Rules by which a model is cut and parameters are gathered. */
typedef struct partition_rules {
    size_t alignment;       /* a tensor's offset is a multiple of so many elements; 0: of 1 */
    size_t bucket_bytes;    /* a range ends once its parameters have this size in float32 */
    size_t persistent_most; /* largest number of elements of a persistent tensor; 0: no tensor is
                               persistent */
    size_t persistent_all; /* largest number of elements of all persistent tensors together; tensors
                              are chosen in the model's order */
    bool broadcasts;       /* after an update, owners broadcast their parameters one after another,
                              instead of in one all-gather */
    size_t ahead_most;     /* largest bucket, in elements, that is gathered ahead of its use */
    size_t live_most;      /* a bucket is gathered ahead only while the gathered elements do not
                              exceed this */
} partition_rules;

typedef struct train_partition {
    int ranks;
    partition_rules rules;
    partition_bucket *buckets; /* [count] the first buckets of all ranges in the order of the nodes,
                                  then the second buckets, of those ranges that have one */
    int ranges, count;
    bool *persistent; /* [tensors] whether all ranks keep the tensor in stage 3 of ZeRO */
    uint8_t *sums;    /* [nodes] SUM_INPUT, SUM_GRAD or 0; NULL: no node needs a sum */
    int *segments;    /* [nodes] number of the segment whose activations are recomputed together;
                         NULL: all activations are kept */
    size_t elements[LAYOUTS]; /* of an array of each layout, padding included */
} train_partition;

/** Cuts @p model into ranges and buckets, from its last node to its first, as backward runs. Sets
 * the offsets of the model's tensors to their places in LAYOUT_FULL. Free with partition_free()
 * whatever the result. @return RING_OK or RING_ERR_MEMORY. */
ring_status partition_create(train_partition *partition, train_model *model,
                             const partition_rules *rules, int ranks);
void partition_free(train_partition *partition);

/** Prints a line for each bucket: its nodes, its elements, and which of them each rank owns. */
void partition_print(const train_partition *partition, FILE *out);

/** @return the first bucket of the range of @p node. */
int partition_bucket_of(const train_partition *partition, int node);

/** @return the bucket after @p bucket in its range; -1 if there is none. */
int partition_beside(const train_partition *partition, int bucket);

/** @return elements of all tensors that stage 3 of ZeRO divides among the ranks, without padding.
 */
size_t partition_split(const train_partition *partition);

#endif
