/* SPDX-License-Identifier: Apache-2.0
 *
 * step_writer: what the generators of schedules have in common: a list that is being written, and
 * the parts that an update consists of.
 */
#ifndef TRAIN_STEP_WRITER_H
#define TRAIN_STEP_WRITER_H

#include "step_schedule.h"

enum { STEP_NOTHING = -1 };

typedef struct step_writer {
    step_schedule *schedule;
    const train_partition *partition;
    int zero_stage, micro_batches;
    int slot;                   /* of the passes that are written */
    int gathered[LIVE_BUCKETS]; /* by place in memory: the latest GATHER into it, */
    int left[LIVE_BUCKETS];     /* the last FORWARD or BACKWARD with it, */
    int reduced[LIVE_BUCKETS];  /* REDUCE from it, */
    int beside[LIVE_BUCKETS];   /* and of the bucket beside */
    int computed;               /* the pass's latest FORWARD or BACKWARD */
    step_instruction *visits;   /* [visit_count] of the pass that is planned */
    int visit_count, visit_room;
    int kept_slot,
        kept_segment; /* whose activations all are there: the segment by its first node */
    bool failed;      /* no memory */
} step_writer;

/** Begins an empty list. End with step_writer_finish(). */
step_writer step_writer_start(step_schedule *schedule, const train_partition *partition,
                              int zero_stage, int micro_batches);

/** @return RING_OK, or RING_ERR_MEMORY if any of the list found none. */
ring_status step_writer_finish(step_writer *w);

/** Appends an instruction. @return its number, or STEP_NOTHING without memory. */
int step_write(step_writer *w, step_instruction instruction);

/** Instruction @p number waits for @p earlier; either may be STEP_NOTHING. */
void step_follow(step_writer *w, int number, int earlier);

/** All buckets forward in w->slot. @return the last FORWARD. */
int step_write_forward(step_writer *w, int micro);

/** All buckets backward, each reduced as the stage wants. @return the last BACKWARD. */
int step_write_backward(step_writer *w, int micro);

/** The loss over the ranks. */
void step_write_loss(step_writer *w, int micro);

/** Norm, optimiser, and what the stage gathers again. */
void step_write_step(step_writer *w);

#endif
