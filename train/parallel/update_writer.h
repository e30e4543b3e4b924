/* SPDX-License-Identifier: Apache-2.0
 *
 * update_writer: provides the parts from which the generators of schedules compose an update, and
 * the list that they write.
 */
#ifndef TRAIN_UPDATE_WRITER_H
#define TRAIN_UPDATE_WRITER_H

#include "update_schedule.h"

enum { UPDATE_NOTHING = -1 };

typedef struct update_writer {
    update_schedule *schedule;
    const train_partition *partition;
    int zero_stage, micro_batches;
    int slot;                   /* of the passes that are written */
    int gathered[LIVE_BUCKETS]; /* by place in memory: the latest GATHER into it, */
    int left[LIVE_BUCKETS];     /* the last FORWARD or BACKWARD with it, */
    int reduced[LIVE_BUCKETS];  /* REDUCE from it, */
    int beside[LIVE_BUCKETS];   /* and of the bucket beside */
    int computed;               /* the pass's latest FORWARD or BACKWARD */
    update_instruction *visits; /* [visit_count] of the pass that is planned */
    int visit_count, visit_room;
    int kept_slot,
        kept_segment; /* slot and segment (its first node) whose activations are stored */
    bool failed;      /* no memory */
} update_writer;

/** Begins an empty list. End with update_writer_finish(). */
update_writer update_writer_start(update_schedule *schedule, const train_partition *partition,
                                  int zero_stage, int micro_batches);

/** @return RING_OK, or RING_ERR_MEMORY if the list could not grow. */
ring_status update_writer_finish(update_writer *w);

/** Appends an instruction. @return its number, or UPDATE_NOTHING without memory. */
int update_write(update_writer *w, update_instruction instruction);

/** Instruction @p number waits for @p earlier; either may be UPDATE_NOTHING. */
void update_follow(update_writer *w, int number, int earlier);

/** Writes all buckets forward in w->slot. @return the last FORWARD. */
int update_write_forward(update_writer *w, int micro);

/** Writes all buckets backward, each reduced as the stage of ZeRO requires. @return the last
 *  BACKWARD. */
int update_write_backward(update_writer *w, int micro);

/** Writes the sum of the loss over the ranks. */
void update_write_loss(update_writer *w, int micro);

/** Writes the norm, the optimiser, and the gathers that the stage of ZeRO needs after it. */
void update_write_optimize(update_writer *w);

#endif
