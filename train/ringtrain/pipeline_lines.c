/* SPDX-License-Identifier: Apache-2.0
 * Prints how a pipeline is divided, and warns of an unbalanced division or a large bubble. After
 * the run, prints the size of the bubble as measured, as counted in the schedule, and as predicted.
 */
#include "pipeline_lines.h"

#include <inttypes.h>

#include "errors.h"
#include "stages.h"

/* Warn of a stage that has more than this multiple of an equal share of the parameters. */
static const double UNBALANCED = 1.5;
/* Warn of a bubble of more than this share of the time. */
static const double LARGE_BUBBLE = 0.25;

/* @return the share of the time in which a stage is idle if all passes take equally long. */
static double predicted(int stages, long micro_batches)
{
    return (double)(stages - 1) / (double)(micro_batches + stages - 1);
}

static size_t parameters_of(const train_pipeline *pipeline, int stage)
{
    return stages_parameters(&pipeline->whole, pipeline->starts[stage],
                             pipeline->starts[stage + 1]);
}

static double share_of(const train_pipeline *pipeline, int stage)
{
    return (double)parameters_of(pipeline, stage) / (double)model_parameters(&pipeline->whole);
}

/* Bytes that each rank of a stage allocates. */
typedef struct stage_bytes {
    uint64_t state, activations;
} stage_bytes;

static void print_stage(train_report *report, const train_engine *engine, int stage,
                        const stage_bytes *bytes)
{
    const train_pipeline *pipeline = &engine->pipeline;
    const int count = engine->ranks * engine->tensor.ranks, first = stage * count;
    char ranks[48];
    if (count == 1)
        snprintf(ranks, sizeof ranks, "rank %d", first);
    else
        snprintf(ranks, sizeof ranks, "ranks %d to %d", first, first + count - 1);
    report_line(report,
                "  stage %d: layers %d to %d, %zu parameters (%.0f %%), %" PRIu64
                " bytes of model state, %" PRIu64 " of activations; %s",
                stage, pipeline->starts[stage], pipeline->starts[stage + 1] - 1,
                parameters_of(pipeline, stage), 100.0 * share_of(pipeline, stage), bytes->state,
                bytes->activations, ranks);
}

static void warn_of_imbalance(train_report *report, const train_pipeline *pipeline)
{
    const double fair = 1.0 / pipeline->place.stages;
    int largest = 0;
    for (int s = 1; s < pipeline->place.stages; s++)
        largest = share_of(pipeline, s) > share_of(pipeline, largest) ? s : largest;
    if (share_of(pipeline, largest) > UNBALANCED * fair)
        report_line(
            report,
            "NOTE unbalanced pipeline: stage %d has %.0f %% of the parameters instead of an "
            "equal share of %.0f %%, so the other stages wait for it",
            largest, 100.0 * share_of(pipeline, largest), 100.0 * fair);
}

ring_status pipeline_lines_start(train_report *report, const train_engine *engine)
{
    const train_pipeline *pipeline = &engine->pipeline;
    const int stages = pipeline->place.stages, ranks = engine->ranks * engine->tensor.ranks;
    const long micro_batches = engine->config->accumulation;
    stage_bytes bytes[PIPE_STAGES_MAX] = {0};
    if (stages == 1)
        return RING_OK;
    stage_bytes *mine = &bytes[pipeline->place.stage];
    *mine = (stage_bytes){engine_state_bytes(engine), model_activation_bytes(&engine->model)};
    RING_TRY(train_ring(pipeline->comm,
                        ring_all_gather(mine, bytes, 2, RING_UINT64, pipeline->comm, NULL)));
    report_line(
        report,
        "pipeline of %d stages of %d rank%s; %ld micro-batch%s an update, in the order 1F1B",
        stages, ranks, plural(ranks), micro_batches, micro_batches == 1 ? "" : "es");
    for (int s = 0; s < stages; s++)
        print_stage(report, engine, s, &bytes[s]);
    warn_of_imbalance(report, pipeline);
    const double bubble = predicted(stages, micro_batches);
    const long better = 8L * (stages - 1);
    if (bubble > LARGE_BUBBLE && micro_batches < better)
        report_line(report,
                    "NOTE the pipeline's bubble is %.0f %% of the time; "
                    "gradient_accumulation_steps %ld would reduce it to %.0f %%",
                    100.0 * bubble, better, 100.0 * predicted(stages, better));
    return RING_OK;
}

ring_status pipeline_lines_end(train_report *report, const train_engine *engine)
{
    const int stages = engine->pipeline.place.stages;
    const long micro_batches = engine->config->accumulation;
    double seconds[2] = {engine->busy, engine->span}, counted;
    if (stages == 1)
        return RING_OK;
    RING_TRY(train_ring(engine->world, ring_all_reduce(seconds, seconds, 2, RING_FLOAT64, RING_SUM,
                                                       engine->world, NULL)));
    RING_TRY(pipe_count_slots(stages, (int)micro_batches, NULL, &counted));
    if (seconds[1] <= 0.0) /* no update was made */
        return RING_OK;
    report_line(report,
                "pipeline: idle %.1f %% of the passes' time, %.1f %% of the schedule's slots; "
                "(p-1)/(m+p-1) predicts %.1f %%",
                100.0 * (1.0 - seconds[0] / seconds[1]), 100.0 * counted,
                100.0 * predicted(stages, micro_batches));
    return RING_OK;
}
