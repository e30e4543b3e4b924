/* SPDX-License-Identifier: Apache-2.0
 * Gathers the begin and end of each pass from all stages, and converts them to seconds since the
 * first pass began. */
#include "pipeline_slots.h"

#include <math.h>
#include <stdlib.h>

#include "common_clock.h"
#include "errors.h"

ring_status pipeline_slots_create(pipeline_slots *slots, const train_config *config)
{
    const size_t micros = (size_t)config->accumulation;
    const size_t passes = 2 * micros * (size_t)config->pipeline.stages;
    *slots = (pipeline_slots){.step = 0};
    if (config->pipeline.stages == 1)
        return RING_OK;
    RING_TRY(train_alloc((void **)&slots->passes.spans, 2 * micros * sizeof(pass_span),
                         "a pipeline's slots"));
    RING_TRY(train_alloc((void **)&slots->measured, 2 * passes * sizeof *slots->measured,
                         "a pipeline's slots"));
    return train_alloc((void **)&slots->predicted, passes * sizeof *slots->predicted,
                       "a pipeline's slots");
}

void pipeline_slots_free(pipeline_slots *slots)
{
    free(slots->passes.spans);
    free(slots->measured);
    free(slots->predicted);
    *slots = (pipeline_slots){.step = 0};
}

pass_times *pipeline_slots_next(pipeline_slots *slots, long step, int micro_batches)
{
    if (slots->passes.spans == NULL || micro_batches < slots->passes.micro_batches)
        return NULL;
    slots->step = step;
    pass_times_start(&slots->passes, micro_batches);
    return &slots->passes;
}

/* Subtracts the earliest time from all times. */
static void count_from_first(double *times, size_t count)
{
    double first = times[0];
    for (size_t i = 1; i < count; i++)
        first = fmin(first, times[i]);
    for (size_t i = 0; i < count; i++)
        times[i] -= first;
}

ring_status pipeline_slots_report(pipeline_slots *slots, const train_pipeline *pipeline,
                                  train_report *report)
{
    const int stages = pipeline->place.stages, micros = slots->passes.micro_batches;
    const size_t row = 4 * (size_t)micros;
    double zero, idle;
    if (slots->step == 0)
        return RING_OK;
    double *mine = &slots->measured[(size_t)pipeline->place.stage * row];
    RING_TRY(common_clock_zero(pipeline->comm, &zero));
    for (size_t i = 0; i < 2 * (size_t)micros; i++) { /* ranks without samples record passes, too */
        mine[2 * i] = slots->passes.spans[i].begin - zero;
        mine[2 * i + 1] = slots->passes.spans[i].end - zero;
    }
    RING_TRY(train_ring(pipeline->comm, ring_all_gather(mine, slots->measured, row, RING_FLOAT64,
                                                        pipeline->comm, NULL)));
    count_from_first(slots->measured, row * (size_t)stages);
    RING_TRY(pipe_count_slots(stages, micros, slots->predicted, &idle));
    report_pipeline(report, &(report_passes){.step = slots->step,
                                             .stages = stages,
                                             .micro_batches = micros,
                                             .measured = slots->measured,
                                             .predicted = slots->predicted});
    return RING_OK;
}
