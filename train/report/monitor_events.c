/* SPDX-License-Identifier: Apache-2.0
 * Selects the numbers of updates and epochs, and gives them the names that DeepSpeed uses. */
#include "monitor_events.h"

#include <math.h>

#include "timers.h"

typedef enum monitor_name {
    LOSS,
    LR,
    LOSS_SCALE,
    FORWARD_MS,
    BACKWARD_MS,
    BACKWARD_INNER_MS,
    BACKWARD_ALLREDUCE_MS,
    STEP_MS,
    ACCURACY,
    TEST_LOSS,
    NAMES
} monitor_name;

_Static_assert((int)NAMES == (int)MONITOR_NAMES, "monitors have room for every name");

static const char *const names[NAMES] = {
    [LOSS] = "Train/Samples/train_loss",
    [LR] = "Train/Samples/lr",
    [LOSS_SCALE] = "Train/Samples/loss_scale",
    [FORWARD_MS] = "Train/Samples/elapsed_time_ms_forward",
    [BACKWARD_MS] = "Train/Samples/elapsed_time_ms_backward",
    [BACKWARD_INNER_MS] = "Train/Samples/elapsed_time_ms_backward_inner",
    [BACKWARD_ALLREDUCE_MS] = "Train/Samples/elapsed_time_ms_backward_allreduce",
    [STEP_MS] = "Train/Samples/elapsed_time_ms_step",
    [ACCURACY] = "Test/Samples/accuracy",
    [TEST_LOSS] = "Test/Samples/test_loss",
};

static monitor_event event(monitor_name name, double value)
{
    return (monitor_event){names[name], (int)name, value};
}

int monitor_of_step(const report_run *run, const report_step *step,
                    monitor_event events[MONITOR_EVENTS_MAX])
{
    int count = 0;
    events[count++] = event(LOSS, step->loss);
    events[count++] = event(LR, step->next_lr);
    if (step->loss_scale > 0.0)
        events[count++] = event(LOSS_SCALE, step->loss_scale);
    if (!run->config->wall_clock_breakdown)
        return count;
    const report_timers seconds = timers_of(run, &step->times);
    events[count++] = event(FORWARD_MS, 1e3 * seconds.forward);
    events[count++] = event(BACKWARD_MS, 1e3 * seconds.backward);
    events[count++] = event(BACKWARD_INNER_MS, 1e3 * seconds.backward_inner);
    events[count++] = event(BACKWARD_ALLREDUCE_MS, 1e3 * seconds.backward_allreduce);
    events[count++] = event(STEP_MS, 1e3 * seconds.step);
    return count;
}

int monitor_of_epoch(const report_epoch *epoch, monitor_event events[MONITOR_EVENTS_MAX])
{
    events[0] = event(ACCURACY, epoch->accuracy);
    events[1] = event(TEST_LOSS, epoch->test_loss);
    return isnan(epoch->accuracy) ? 0 : 2;
}
