/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_1f1b: writes the list of instructions of one pipeline stage for an update, which
 * alternates forward and backward passes (PipeDream-flush: Narayanan et al., ICML 2021; DeepSpeed's
 * TrainSchedule). A stage first runs one forward pass for each later stage, so the number of
 * micro-batches whose activations it stores never exceeds the number of stages from itself to the
 * last one.
 */
#ifndef TRAIN_SCHEDULE_1F1B_H
#define TRAIN_SCHEDULE_1F1B_H

#include "update_schedule.h"

enum { PIPE_STAGES_MAX = 256 };

/** The place of a rank in its pipeline. */
typedef struct pipe_place {
    int stages; /* number of stages */
    int stage;  /* this rank's stage, from 0 */
} pipe_place;

/** One pass of a stage: forward or backward of one micro-batch. */
typedef struct pipe_pass {
    bool backward;
    int micro; /* number of the micro-batch */
} pipe_pass;

/** @return pass @p number (from 0) of the 2 * @p micro_batches passes of a stage. */
pipe_pass pipe_pass_of(const pipe_place *place, int micro_batches, int number);

/** @return number of activation slots of a stage: the most micro-batches that are between their
 *  forward and backward passes at a time. */
int pipe_slots(const pipe_place *place, int micro_batches);

/** Simulates an update in which each pass takes one time slot and begins as soon as its input is
 *  complete.
 *  @param[out] ends  [stages][micro_batches][2] the slot in which each forward and backward pass
 *  ends, counted from 1; NULL: not wanted
 *  @param[out] idle  share of idle slots, (p - 1) / (m + p - 1) for p stages and m micro-batches
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status pipe_count_slots(int stages, int micro_batches, int *ends, double *idle);

/** As schedule_update() for one stage of a pipeline, with @p zero as the stage of ZeRO, 0 or 1. */
ring_status schedule_1f1b(update_schedule *schedule, const train_partition *partition, int zero,
                          const pipe_place *place, int micro_batches);

/** As schedule_forward() for one stage of a pipeline. */
ring_status schedule_pipe_forward(update_schedule *schedule, const train_partition *partition,
                                  int zero, const pipe_place *place);

#endif
