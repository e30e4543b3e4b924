/* SPDX-License-Identifier: Apache-2.0
 * Converts the engine's times, one for each kind of instruction, into the parts of a report, and
 * gathers the use of memory and devices from all ranks. */
#include "run_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

#define MIB ((double)(1L << 20))

/* ---- Time ---------------------------------------------------------------------------------- */

/* The part of a report to which the time of each kind of instruction is added. */
static const report_part part_of[UPDATE_KINDS] = {
    [UPDATE_LOAD] = PART_DATA,       [UPDATE_GATHER] = PART_TRANSFER,
    [UPDATE_FORWARD] = PART_FORWARD, [UPDATE_SEND] = PART_TRANSFER,
    [UPDATE_RECV] = PART_TRANSFER,   [UPDATE_BACKWARD] = PART_BACKWARD,
    [UPDATE_REDUCE] = PART_REDUCE,   [UPDATE_CLIP] = PART_STEP,
    [UPDATE_OPTIMIZE] = PART_STEP,   [UPDATE_SUM] = PART_TRANSFER,
};

static double spent(const update_times *times, update_kind kind)
{
    return times->busy[kind] + times->waited[kind];
}

static void fill_details(const update_times *before, const update_times *after,
                         double details[DETAILS])
{
    const double checking = after->checking - before->checking;
    details[DETAIL_SEND] = spent(after, UPDATE_SEND) - spent(before, UPDATE_SEND);
    details[DETAIL_RECV] = spent(after, UPDATE_RECV) - spent(before, UPDATE_RECV);
    details[DETAIL_TIES] = after->ties - before->ties;
    details[DETAIL_NORM] = spent(after, UPDATE_CLIP) - spent(before, UPDATE_CLIP) - checking;
    details[DETAIL_CHECK] = checking;
}

report_times events_times(const update_times *before, const update_times *after, double seconds)
{
    report_times times = {.reducing = after->reducing - before->reducing,
                          .reduce_wait = after->waited[UPDATE_REDUCE] -
                                         before->waited[UPDATE_REDUCE]};
    for (int k = 0; k < UPDATE_KINDS; k++) {
        times.parts[part_of[k]] += after->busy[k] - before->busy[k];
        const bool pipeline = k == UPDATE_SEND || k == UPDATE_RECV;
        times.parts[pipeline ? PART_BUBBLE : PART_WAIT] += after->waited[k] - before->waited[k];
    }
    fill_details(before, after, times.details);
    const double other = seconds - breakdown_total(&times);
    times.parts[PART_OTHER] += other > 0.0 ? other : 0.0;
    return times;
}

/* ---- Memory and devices -------------------------------------------------------------------- */

static report_memory memory_of(const train_engine *engine)
{
    return (report_memory){.parameters = zero_param_bytes(&engine->memory),
                           .gradients = zero_grad_bytes(&engine->memory),
                           .states = optimizer_bytes(&engine->optimizer) +
                                     zero_master_bytes(&engine->memory),
                           .live = zero_live_bytes(&engine->memory),
                           .activations = model_memory_bytes(&engine->model),
                           .batch = engine_batch_bytes(engine)};
}

/* Collective: gathers @p bytes from each rank to @p all. */
static ring_status gather(const run_events *events, const void *mine, size_t bytes, void *all)
{
    return train_ring(events->comm,
                      ring_all_gather(mine, all, bytes, RING_UINT8, events->comm, NULL));
}

static ring_status gather_devices(run_events *events, device_clock *clock)
{
    const report_device mine = device_use(clock);
    return gather(events, &mine, sizeof mine, events->devices);
}

/* Prints the memory of all ranks if memory_breakdown is set, otherwise only that of rank 0. */
static void print_memory(run_events *events)
{
    const report_run *run = &events->report.run;
    const int ranks = run->config->memory_breakdown ? run->ranks : 1;
    for (int r = 0; r < ranks; r++) {
        const report_memory *memory = &events->memory[r];
        report_line(&events->report,
                    "memory of rank %d in bytes: parameters %" PRIu64 ", gradients %" PRIu64
                    ", optimizer's states %" PRIu64 ", live buckets %" PRIu64
                    ", activations %" PRIu64 ", batch %" PRIu64,
                    r, memory->parameters, memory->gradients, memory->states, memory->live,
                    memory->activations, memory->batch);
    }
}

/* ---- Events -------------------------------------------------------------------------------- */

ring_status events_open(run_events *events, ring_comm *comm, const report_run *run,
                        const events_options *options)
{
    const size_t ranks = (size_t)run->ranks;
    *events = (run_events){.comm = comm, .options = *options};
    RING_TRY(report_open(&events->report, ring_comm_rank(comm) == 0, run));
    RING_TRY(train_alloc((void **)&events->memory, ranks * sizeof *events->memory, "reports"));
    RING_TRY(train_alloc((void **)&events->devices, ranks * sizeof *events->devices, "reports"));
    RING_TRY(pipeline_slots_create(&events->slots, run->config));
    return run_trace_open(&events->trace, options->trace_path, ring_comm_rank(comm));
}

ring_status events_close(run_events *events)
{
    const ring_status traced = run_trace_close(&events->trace),
                      reported = report_close(&events->report);
    pipeline_slots_free(&events->slots);
    free(events->memory);
    free(events->devices);
    events->memory = NULL;
    events->devices = NULL;
    return traced == RING_OK ? reported : traced;
}

ring_status events_start(run_events *events, train_engine *engine, report_start *start)
{
    const report_memory mine = memory_of(engine);
    events->engine = engine;
    RING_TRY(gather(events, &mine, sizeof mine, events->memory));
    start->memory = events->memory;
    print_memory(events);
    report_start_run(&events->report, start);
    device_use(&events->monitor_clock);
    device_use(&events->epoch_clock);
    return run_trace_start(&events->trace, events->comm);
}

static ring_status report_passes_of(run_events *events)
{
    return pipeline_slots_report(&events->slots, &events->engine->pipeline, &events->report);
}

ring_status events_finish(run_events *events)
{
    if (events->epoch.samples > 0) /* the last epoch is incomplete */
        RING_TRY(report_passes_of(events));
    return run_trace_gather(&events->trace, events->comm);
}

void events_begin_update(run_events *events, long step, int micro_batches)
{
    update_times *times = &events->engine->times;
    events->before = *times;
    times->trace = run_trace_next(&events->trace, step);
    times->passes = pipeline_slots_next(&events->slots, step, micro_batches);
}

ring_status events_end_update(run_events *events, report_step *step)
{
    const long every = events->options.monitor_every;
    update_times *times = &events->engine->times;
    times->trace = NULL;
    times->passes = NULL;
    step->times = events_times(&events->before, times, step->seconds);
    step->all_samples = events->all_samples += step->samples;
    events->epoch.loss += step->loss * (double)step->samples;
    events->epoch.samples += step->samples;
    breakdown_add(&events->epoch.times, &step->times);
    report_update(&events->report, step);
    if (every == 0 || step->step % every != 0)
        return RING_OK;
    RING_TRY(gather_devices(events, &events->monitor_clock));
    report_devices(&events->report, step->step, events->devices);
    return RING_OK;
}

ring_status events_end_epoch(run_events *events, report_epoch *epoch)
{
    const report_run *run = &events->report.run;
    const report_epoch *sums = &events->epoch;
    RING_TRY(gather_devices(events, &events->epoch_clock));
    epoch->loss = sums->loss / (double)sums->samples; /* an epoch has at least one update */
    epoch->samples = sums->samples;
    epoch->all_samples = events->all_samples;
    epoch->times = sums->times;
    epoch->devices = events->devices;
    report_end_epoch(&events->report, epoch);
    for (int r = 0; r < run->ranks && run->config->memory_breakdown; r++)
        report_line(&events->report, "memory of rank %d: %.1f MiB resident, %.1f MiB at most", r,
                    events->devices[r].resident / MIB, events->devices[r].peak / MIB);
    events->epoch = (report_epoch){0};
    return report_passes_of(events);
}
