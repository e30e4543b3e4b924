/* SPDX-License-Identifier: Apache-2.0
 *
 * update_schedule: describes an update as a list of instructions. The list is a pure function of
 * the partition, the stage of ZeRO and the number of micro-batches; it depends on no memory, socket
 * or clock. Each instruction names a queue and the earlier instructions that must end before it
 * begins; the instructions of one queue begin in the order of the list, which is the same on all
 * ranks.
 */
#ifndef TRAIN_UPDATE_SCHEDULE_H
#define TRAIN_UPDATE_SCHEDULE_H

#include <stdbool.h>

#include "partition.h"

typedef enum update_kind {
    UPDATE_LOAD,     /* reads the samples of a micro-batch into a slot */
    UPDATE_GATHER,   /* a bucket's parameters from their owners */
    UPDATE_FORWARD,  /* nodes first to end - 1, and the loss after the last node */
    UPDATE_SUM,      /* over tensor ranks: the input of node first, or the gradient of its output */
    UPDATE_SEND,     /* an activation to the next stage, or its gradient to the previous one */
    UPDATE_RECV,     /* and the matching receive */
    UPDATE_BACKWARD, /* nodes end - 1 down to first */
    UPDATE_REDUCE,   /* a bucket's gradients over the ranks, or BUCKET_LOSS, BUCKET_TIES */
    UPDATE_CLIP,     /* the norm of all gradients, and whether they are finite */
    UPDATE_OPTIMIZE, /* the optimiser on what this rank owns of a bucket */
    UPDATE_KINDS
} update_kind;

/** By update_kind: "load", … */
extern const char *const update_kind_names[UPDATE_KINDS];

typedef enum update_queue { QUEUE_COMPUTE, QUEUE_WIRE } update_queue;

enum {
    BUCKET_LOSS = -1,
    BUCKET_TIES = -2, /* gradients that stages of a pipeline share */
    UPDATE_AFTER_MAX = 4,
    ZERO_STAGE_MAX = 3
};

typedef struct update_instruction {
    update_kind kind;
    update_queue queue;
    int bucket;
    int first, end;  /* nodes of FORWARD and BACKWARD; of a SUM one */
    int micro, slot; /* the micro-batch, and the activation slot that it is in */
    int towards;     /* SEND, RECV: 1 the next stage of the pipeline, -1 the previous;
                        SUM: 1 forward, -1 backward */
    int owner;       /* GATHER: the only rank that sends; -1: all do */
    bool opens;      /* FORWARD, BACKWARD: the pass enters the bucket from another one */
    bool recompute;  /* FORWARD: for the backward pass, which needs its activations */
    bool accumulate; /* BACKWARD, REDUCE: adds to the gradients of earlier micro-batches */
    int after[UPDATE_AFTER_MAX]; /* instructions that must have ended */
    int after_count;
    bool after_all; /* all earlier instructions must have ended */
} update_instruction;

typedef struct update_schedule {
    update_instruction *list; /* [count] */
    int count, room;
} update_schedule;

/** One update of @p micro_batches micro-batches:
 *      stage 0  all-reduces gradients, every rank updates everything
 *      stage 1  reduce-scatters gradients, each rank updates what it owns, gathers parameters
 *      stage 2  the same, after every micro-batch: a rank keeps the gradients that it owns
 *      stage 3  and the parameters: buckets are gathered ahead of forward and of backward, but for
 *               those that stay whole
 *  Free with schedule_free() whatever the result. @return RING_OK or RING_ERR_MEMORY. */
ring_status schedule_update(update_schedule *schedule, const train_partition *partition,
                            int zero_stage, int micro_batches);

/** One batch forward, as schedule_update(). */
ring_status schedule_forward(update_schedule *schedule, const train_partition *partition,
                             int zero_stage);

void schedule_free(update_schedule *schedule);

#endif
