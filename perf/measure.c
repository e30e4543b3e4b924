/* SPDX-License-Identifier: Apache-2.0
 *
 * measure: measures one case: it makes the warm-up calls, chooses the number of timed calls, times
 * them, combines the times of all ranks, and checks further calls, which are not timed. All ranks
 * agree on the number of calls, so that they make the same calls.
 */
#include "measure.h"
#include "expected.h"
#include "stopwatch.h"
#include "try.h"

#include <math.h>
#include <string.h>

#define BUDGET_US 2e6  /* time of all timed calls, if -n is not given */
#define FEWEST_CALLS 5 /* even if they take longer */

/* If this rank's GPU has failed, aborts the communicator, so that the reason becomes the latest
 * error of every rank. */
static ring_status gpu_status(perf_rank *self, ring_status status)
{
    if (status != RING_OK)
        ring_comm_abort(self->comm, perf_gpu_error());
    return status;
}

static ring_status rewrite(perf_rank *self, const perf_case *c)
{
    return gpu_status(self,
                      perf_rewrite(&self->buffers, c, self->options->unalign, self->repetition++));
}

static ring_status run_call(perf_rank *self, const perf_case *c, perf_place place)
{
    const double factor = perf_oracle_factor(c->rank);
    ring_call call = RING_CALL_INIT;
    call.timeout = self->options->timeout;
    call.tagged = self->options->tagged;
    call.scale = c->op == RING_PREMUL_SUM ? &factor : NULL;
    call.stream = self->options->stream ? self->gpu->stream : NULL;
    if (self->prepared != NULL)
        return ring_prepared_start(self->prepared, &call);
    return c->collective->run(c, place.src, place.dst, self->comm, &call);
}

static ring_status meet(perf_rank *self)
{
    RING_TRY(ring_barrier(self->comm, NULL));
    if (self->gate)
        stopwatch_gate();
    return RING_OK;
}

/* Times -m calls together. With -z 1, a barrier follows each call.
 * @param[out] time  of one call */
static ring_status timed_call(perf_rank *self, const perf_case *c, perf_place place, double *time)
{
    const double start = stopwatch_us();
    for (int i = 0; i < self->options->agg_iters; i++) {
        RING_TRY(run_call(self, c, place));
        if (self->options->blocking == 1)
            RING_TRY(ring_barrier(self->comm, NULL));
    }
    *time = (stopwatch_us() - start) / self->options->agg_iters;
    return RING_OK;
}

/* By default each rank rewrites its input, which is then in its cache, and all ranks start
 * together. With --hot the calls follow each other immediately, unless -z 3 asks for a barrier
 * between them, which is not timed. */
static ring_status one_call(perf_rank *self, const perf_case *c, perf_place place, double *time)
{
    const bool hot = self->options->hot;
    if (!hot)
        RING_TRY(rewrite(self, c));
    if (!hot)
        RING_TRY(meet(self));
    RING_TRY(timed_call(self, c, place, time));
    return hot && self->options->blocking == 3 ? ring_barrier(self->comm, NULL) : RING_OK;
}

/* ---- Calls on a stream ---- */

static ring_status run_many(perf_rank *self, const perf_case *c, perf_place place, size_t calls)
{
    for (size_t i = 0; i < calls; i++)
        RING_TRY(run_call(self, c, place));
    return RING_OK;
}

/* @param[out] graph  the captured calls. The caller frees it by perf_gpu_forget(), even after a
 *                    failure. */
static ring_status capture(perf_rank *self, const perf_case *c, perf_place place, size_t calls,
                           void **graph)
{
    *graph = NULL;
    RING_TRY(gpu_status(self, perf_gpu_capture(self->gpu)));
    const ring_status status = run_many(self, c, place, calls);
    const ring_status captured = perf_gpu_captured(self->gpu, graph);
    return status != RING_OK ? status : gpu_status(self, captured);
}

/* Enqueues calls, or replays of a graph, and waits for all of them.
 * @param[out] time  of all of them together */
static ring_status timed_stream(perf_rank *self, const perf_case *c, perf_place place, size_t calls,
                                void *graph, double *time)
{
    RING_TRY(meet(self));
    const double start = stopwatch_us();
    if (graph == NULL)
        RING_TRY(run_many(self, c, place, calls));
    for (int i = 0; graph != NULL && i < self->options->graph; i++)
        RING_TRY(gpu_status(self, perf_gpu_replay(self->gpu, graph)));
    RING_TRY(gpu_status(self, perf_gpu_wait(self->gpu)));
    *time = stopwatch_us() - start;
    return RING_OK;
}

/* Times calls on a stream; their mean is the only sample. */
static ring_status time_stream(perf_rank *self, const perf_case *c, perf_place place, size_t calls)
{
    const int replays = self->options->graph > 0 ? self->options->graph : 1;
    double time = 0;
    void *graph = NULL;
    calls *= (size_t)self->options->agg_iters;
    ring_status status = RING_OK;
    if (self->options->graph > 0)
        status = capture(self, c, place, calls, &graph);
    if (status == RING_OK)
        status = timed_stream(self, c, place, calls, graph, &time);
    perf_gpu_forget(graph);
    self->times[0] = time / (double)calls / replays;
    return status;
}

/* ---- Agreement among ranks ---- */

static ring_status agree(perf_rank *self, double *values, size_t count, ring_op op)
{
    return ring_all_reduce(values, values, count, RING_FLOAT64, op, self->comm, NULL);
}

/* Combines the ranks' times of each call into one time (-a). */
static ring_status agree_times(perf_rank *self, size_t calls)
{
    int average = self->options->average;
    if (average == PERF_AVERAGE_DEFAULT)
        average = self->options->hot ? PERF_MEAN : PERF_SLOWEST;
    switch (average) {
    case PERF_MEAN:
        return agree(self, self->times, calls, RING_AVG);
    case PERF_FASTEST:
        return agree(self, self->times, calls, RING_MIN);
    case PERF_SLOWEST:
        return agree(self, self->times, calls, RING_MAX);
    default:
        return ring_broadcast(self->times, self->times, calls, RING_FLOAT64, 0, self->comm, NULL);
    }
}

/* @param[out] calls  the number of calls that fit into BUDGET_US, if -n is not given. */
static ring_status agree_calls(perf_rank *self, double call_us, size_t *calls)
{
    *calls = (size_t)self->options->iters;
    if (self->options->iters_given || self->options->warmup_iters == 0)
        return RING_OK;
    RING_TRY(agree(self, &call_us, 1, RING_MAX));
    if (call_us * (double)*calls > BUDGET_US)
        *calls = (size_t)fmax(FEWEST_CALLS, BUDGET_US / call_us);
    return RING_OK;
}

/* ---- The measurement ---- */

/* @param[out] call_us  duration of the last call and of its preparation; 0 if there was no call. */
static ring_status warm_up(perf_rank *self, const perf_case *c, perf_place place, double *call_us)
{
    double time;
    const int calls = self->options->warmup_iters;
    RING_TRY(rewrite(self, c));
    *call_us = 0;
    if (self->options->stream && calls > 0) {
        const size_t all = (size_t)calls * (size_t)self->options->agg_iters;
        RING_TRY(timed_stream(self, c, place, all, NULL, call_us));
        *call_us /= calls;
        return RING_OK;
    }
    for (int i = 0; i < calls; i++) {
        const double start = stopwatch_us();
        RING_TRY(one_call(self, c, place, &time));
        *call_us = stopwatch_us() - start;
    }
    return RING_OK;
}

static ring_status time_calls(perf_rank *self, const perf_case *c, perf_place place, size_t calls)
{
    if (self->options->hot)
        RING_TRY(meet(self));
    for (size_t i = 0; i < calls; i++) {
        RING_TRY(one_call(self, c, place, &self->times[i]));
        if (self->rank == 0)
            progress_show(&self->progress, c, i + 1, calls);
    }
    return RING_OK;
}

/* Reads the transport, the algorithm and the predicted time of the measured collective. The
 * communicator has these facts for its latest collective; if that was the barrier of -z, the
 * measured collective is called once more. The cost model has no times for send and receive, and
 * none for GPUs. */
static ring_status read_info(perf_rank *self, const perf_case *c, perf_place place,
                             perf_result *result)
{
    const perf_options *o = self->options;
    ring_comm_info info = {.size = sizeof info};
    if (o->blocking == 1 || (o->blocking == 3 && o->hot))
        RING_TRY(run_call(self, c, place));
    RING_TRY(ring_comm_get_info(self->comm, &info));
    memcpy(result->transport, info.transport, sizeof info.transport);
    if (c->collective->pair)
        return RING_OK;
    memcpy(result->algorithm, info.algorithm, sizeof info.algorithm);
    result->predicted_us = self->gpu == NULL ? info.predicted_us : 0;
    return agree(self, &result->predicted_us, 1, RING_MIN);
}

static double mean_of(const double *times, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    return sum / (double)count;
}

perf_spread perf_spread_of(double *times, size_t count)
{
    const double mean = mean_of(times, count);
    double squares = 0;
    stopwatch_median(times, count); /* sorts */
    for (size_t i = 0; i < count; i++)
        squares += (times[i] - mean) * (times[i] - mean);
    const size_t at99 = (count * 99 + 99) / 100 - 1; /* the nearest-rank percentile */
    const double deviation = sqrt(squares / (double)count);
    return (perf_spread){times[0], times[count - 1], times[at99],
                         mean > 0 ? 100 * deviation / mean : 0};
}

static void summarize(perf_rank *self, const perf_case *c, size_t calls, perf_result *result)
{
    const double bytes = (double)perf_case_bytes(c);
    const size_t skip = (size_t)self->options->per_iter_skip;
    result->time_us = mean_of(self->times, calls);
    result->spread = perf_spread_of(self->times + skip, calls - skip);
    if (!self->options->hot)
        result->time_us = stopwatch_median(self->times, calls);
    result->algbw = result->time_us > 0 ? bytes / result->time_us * 1e-3 : 0;
    result->busbw = result->algbw;
    if (c->collective->bus_factor != NULL)
        result->busbw *= c->collective->bus_factor(c->ranks);
}

/* Makes one call and checks it. @param graph  the captured call; NULL: without a graph. */
static ring_status check_call(perf_rank *self, const perf_case *c, perf_place place, void *graph,
                              perf_wrong *wrong)
{
    const int unalign = self->options->unalign;
    const uint32_t repetition = self->repetition++;
    perf_wrong here;
    RING_TRY(gpu_status(self, perf_prepare_check(&self->buffers, c, unalign, repetition)));
    RING_TRY(graph != NULL ? gpu_status(self, perf_gpu_replay(self->gpu, graph))
                           : run_call(self, c, place));
    if (self->options->stream)
        RING_TRY(gpu_status(self, perf_gpu_wait(self->gpu)));
    /* The check follows immediately, because the output must be complete when the call returns. */
    RING_TRY(gpu_status(self, perf_check(&self->buffers, c, unalign, repetition, &here)));
    wrong->elements += here.elements;
    wrong->out_of_bounds += here.out_of_bounds;
    return RING_OK;
}

/* @param[out] wrong  the wrong values of all checked calls on all ranks. */
static ring_status check_calls(perf_rank *self, const perf_case *c, perf_place place,
                               perf_wrong *wrong)
{
    void *graph = NULL;
    ring_status status = RING_OK;
    if (self->options->graph > 0)
        status = capture(self, c, place, 1, &graph);
    for (int i = 0; status == RING_OK && i < self->options->check; i++)
        status = check_call(self, c, place, graph, wrong);
    perf_gpu_forget(graph);
    if (status != RING_OK)
        return status;
    uint64_t sums[2] = {wrong->elements, wrong->out_of_bounds};
    RING_TRY(ring_all_reduce(sums, sums, 2, RING_UINT64, RING_SUM, self->comm, NULL));
    *wrong = (perf_wrong){sums[0], sums[1]};
    return RING_OK;
}

static ring_status measure_at(perf_rank *self, const perf_case *c, perf_place place,
                              perf_result *result)
{
    double call_us;
    size_t calls;
    RING_TRY(warm_up(self, c, place, &call_us));
    RING_TRY(agree_calls(self, call_us, &calls));
    if (self->options->stream)
        RING_TRY(time_stream(self, c, place, calls));
    else
        RING_TRY(time_calls(self, c, place, calls));
    RING_TRY(read_info(self, c, place, result));
    calls = self->options->stream ? 1 : calls;
    RING_TRY(agree_times(self, calls));
    summarize(self, c, calls, result);
    result->checked = self->options->check > 0;
    return result->checked ? check_calls(self, c, place, &result->wrong) : RING_OK;
}

ring_status perf_measure(perf_rank *self, const perf_case *c, perf_result *result)
{
    ring_call call = RING_CALL_INIT;
    call.prepared = &self->prepared;
    *result = (perf_result){.measured = !c->in_place || !c->collective->apart};
    if (!result->measured)
        return RING_OK;
    const perf_place place = perf_place_of(&self->buffers, c, self->options->unalign);
    if (self->options->prepared)
        RING_TRY(c->collective->run(c, place.src, place.dst, self->comm, &call));
    const ring_status status = measure_at(self, c, place, result);
    ring_prepared_destroy(self->prepared);
    self->prepared = NULL;
    return status;
}
