/* SPDX-License-Identifier: Apache-2.0
 *
 * update_writer: provides functions that write parts of an update, such as a pass or the optimiser,
 * for update_schedule.c and schedule_1f1b.c. The writer keeps the latest instructions that used
 * each place in memory, so that later ones can depend on them.
 */
#ifndef TRAIN_UPDATE_WRITER_H
#define TRAIN_UPDATE_WRITER_H

#include "update_schedule.h"

/** In place of an instruction's number: there is no such instruction. */
enum { UPDATE_NOTHING = -1 };

typedef struct update_writer {
    update_schedule *schedule;
    const train_partition *partition;
    int zero_stage, micro_batches;
    int slot;                   /* slot of the passes that are written */
    int gathered[LIVE_BUCKETS]; /* by live place: the latest GATHER into it */
    int left[LIVE_BUCKETS]; /* by live place: the last FORWARD or BACKWARD of its latest bucket */
    int reduced[LIVE_BUCKETS];  /* by live place: the latest REDUCE of the range in it */
    int beside[LIVE_BUCKETS];   /* by live place: the latest REDUCE of the range's second bucket */
    int computed;               /* the latest FORWARD or BACKWARD of the current pass */
    update_instruction *visits; /* [visit_count] visits of the pass that is planned */
    int visit_count, visit_room;
    int kept_slot;    /* slot whose activations are stored */
    int kept_segment; /* first node of the segment whose activations are stored */
    bool failed;      /* an allocation has failed */
} update_writer;

/** Begins an empty list. End with update_writer_finish(). */
update_writer update_writer_start(update_schedule *schedule, const train_partition *partition,
                                  int zero_stage, int micro_batches);

/** @return RING_OK, or RING_ERR_MEMORY if the list could not grow. */
ring_status update_writer_finish(update_writer *w);

/** Appends an instruction. @return its number, or UPDATE_NOTHING without memory. */
int update_write(update_writer *w, update_instruction instruction);

/** Makes instruction @p number wait for @p earlier. Either may be UPDATE_NOTHING. */
void update_follow(update_writer *w, int number, int earlier);

/** Writes the forward pass of a micro-batch over all buckets, in w->slot. @return the number of the
 *  last FORWARD. */
int update_write_forward(update_writer *w, int micro);

/** Writes the backward pass of a micro-batch over all buckets, in w->slot, and the reductions that
 * the stage of ZeRO requires. @return the number of the last BACKWARD. */
int update_write_backward(update_writer *w, int micro);

/** Writes the sum of the loss over the ranks, if @p micro is the last micro-batch. */
void update_write_loss(update_writer *w, int micro);

/** Writes CLIP, OPTIMIZE of all buckets, and the gathers of updated parameters that the stage of
 * ZeRO requires. */
void update_write_optimize(update_writer *w);

#endif
