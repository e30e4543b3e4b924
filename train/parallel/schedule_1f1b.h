/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule_1f1b: writes the update of one stage of a pipeline, alternating one forward and one
 * backward pass (PipeDream-flush: Narayanan et al., ICML 2021; DeepSpeed's TrainSchedule). A stage
 * first runs one forward pass for each later stage, so it never holds more micro-batches than there
 * are stages from itself to the end.
 */
#ifndef TRAIN_SCHEDULE_1F1B_H
#define TRAIN_SCHEDULE_1F1B_H

#include "update_schedule.h"

enum { PIPE_STAGES_MAX = 256 };

/** Where a rank is in its pipeline. */
typedef struct pipe_place {
    int stages, stage;
} pipe_place;

/** A pass of a stage. */
typedef struct pipe_pass {
    bool backward;
    int micro;
} pipe_pass;

/** @return pass @p number of the 2 @p micro_batches passes of a stage. */
pipe_pass pipe_pass_of(const pipe_place *place, int micro_batches, int number);

/** @return activation slots of a stage: micro-batches that it has forward, but not yet backward. */
int pipe_slots(const pipe_place *place, int micro_batches);

/** When passes end that take one slot each, and begin when what they work on has been made.
 *  @param[out] ends  [stages][micro_batches][2] forward and backward, in slots; NULL: not wanted
 *  @param[out] idle  the share of idle slots: (p - 1) / (m + p - 1)
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status pipe_count_slots(int stages, int micro_batches, int *ends, double *idle);

/** As schedule_update() for one stage of a pipeline, with @p zero as the stage of ZeRO, 0 or 1. */
ring_status schedule_1f1b(update_schedule *schedule, const train_partition *partition, int zero,
                          const pipe_place *place, int micro_batches);

/** As schedule_forward() for one stage of a pipeline. */
ring_status schedule_pipe_forward(update_schedule *schedule, const train_partition *partition,
                                  int zero, const pipe_place *place);

#endif
