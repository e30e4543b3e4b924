/* SPDX-License-Identifier: Apache-2.0
 *
 * update_schedule: describes an update as a list of instructions, which update_run.h executes. The
 * list is a pure function of the partition, the stage of ZeRO and the number of micro-batches. Each
 * instruction names the earlier instructions that must end before it begins. Instructions begin in
 * the order of the list, which is the same on all ranks of a stage.
 */
#ifndef TRAIN_UPDATE_SCHEDULE_H
#define TRAIN_UPDATE_SCHEDULE_H

#include <stdbool.h>

#include "partition.h"

typedef enum update_kind {
    UPDATE_LOAD,    /* reads the samples of a micro-batch into a slot */
    UPDATE_GATHER,  /* gathers a bucket's parameters from their owners */
    UPDATE_FORWARD, /* computes nodes first to end - 1, and the loss after the last node */
    UPDATE_SUM,     /* sums over the tensor ranks: the input of node first, or the gradient of its
                       output */
    UPDATE_SEND,    /* sends an activation to the next stage, or its gradient to the previous one */
    UPDATE_RECV,    /* receives what the neighbouring stage sends by UPDATE_SEND */
    UPDATE_BACKWARD, /* computes the gradients of nodes end - 1 down to first */
    UPDATE_REDUCE,   /* reduces a bucket's gradients over the ranks, or BUCKET_LOSS, BUCKET_TIES */
    UPDATE_CLIP,     /* computes the norm of all gradients, and checks that they are finite */
    UPDATE_OPTIMIZE, /* runs the optimiser on the elements of a bucket that this rank owns */
    UPDATE_KINDS
} update_kind;

/** Names of the kinds: "load", "gather" and so on. */
extern const char *const update_kind_names[UPDATE_KINDS];

/** QUEUE_COMPUTE: the instruction runs to its end. QUEUE_WIRE: it starts a nonblocking call. */
typedef enum update_queue { QUEUE_COMPUTE, QUEUE_WIRE } update_queue;

enum {
    BUCKET_LOSS = -1,     /* in place of a bucket's number: sums of all ranks, such as the loss */
    BUCKET_TIES = -2,     /* gradients of parameters that several stages of a pipeline have */
    UPDATE_AFTER_MAX = 4, /* most dependencies of an instruction, without after_all */
    ZERO_STAGE_MAX = 3
};

typedef struct update_instruction {
    update_kind kind;
    update_queue queue;
    int bucket;
    int first, end;  /* FORWARD, BACKWARD, SUM: nodes first to end - 1 */
    int micro, slot; /* the micro-batch, and the slot that stores its activations */
    int towards;     /* SEND, RECV: 1 for the next stage of the pipeline, -1 for the previous one;
                        SUM: 1 in forward, -1 in backward */
    int owner;       /* GATHER: the only rank that sends; -1: all ranks send their parts */
    bool opens;      /* FORWARD, BACKWARD: first instruction of a pass in this bucket, before which
                        the parameters are cast */
    bool recompute;  /* FORWARD: recomputes activations for the backward pass */
    bool accumulate; /* BACKWARD, REDUCE: adds to the gradients of earlier micro-batches */
    int after[UPDATE_AFTER_MAX]; /* [after_count] numbers of instructions that must end before */
    int after_count;
    bool after_all; /* all earlier instructions must end before */
} update_instruction;

typedef struct update_schedule {
    update_instruction *list; /* [count] */
    int count, room;
} update_schedule;

/** Writes the list of one update of @p micro_batches micro-batches, without a pipeline:
 *      stage 0  gradients are all-reduced; every rank updates all parameters
 *      stage 1  gradients are reduce-scattered; each rank updates its own parameters, which are
 *               then all-gathered
 *      stage 2  as stage 1, but gradients are reduced after every micro-batch, and each rank keeps
 *               only its own
 *      stage 3  as stage 2, but each rank also keeps only its own parameters; buckets are gathered
 *               shortly before forward and backward, except persistent ones
 *  @return RING_OK or RING_ERR_MEMORY. Free with schedule_free() whatever the result. */
ring_status schedule_update(update_schedule *schedule, const train_partition *partition,
                            int zero_stage, int micro_batches);

/** Writes the list of one forward pass, otherwise as schedule_update(). */
ring_status schedule_forward(update_schedule *schedule, const train_partition *partition,
                             int zero_stage);

void schedule_free(update_schedule *schedule);

#endif
