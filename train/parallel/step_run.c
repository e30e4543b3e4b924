/* SPDX-License-Identifier: Apache-2.0
 * A walk over the list. Works of the wire are kept by the number of their instruction. */
#include "step_run.h"

#include <math.h>
#include <string.h>

#include "agree.h"
#include "bucket_casts.h"
#include "clock.h"
#include "errors.h"
#include "subnormals.h"

/* One run of one list. */
typedef struct step_machine {
    train_engine *engine;
    const step_schedule *schedule;
    step_batch *batch;
    ring_work **works; /* [schedule->count] the engine's */
    bool *runs;        /* [schedule->count] started and not ended; the engine's */
    int oldest;        /* no instruction before it runs */
    double clip;       /* what gradients are multiplied with */
    bool skip;         /* the update: its gradients are not finite */
} step_machine;

static const ring_comm *comm_of(const train_engine *engine, const step_instruction *at)
{
    if (at->kind == STEP_SEND || at->kind == STEP_RECV)
        return engine->pipe;
    return at->kind == STEP_REDUCE && at->bucket == BUCKET_LOSS ? engine->world : engine->comm;
}

static ring_status check_ring(const step_machine *machine, int number, ring_status status)
{
    return train_ring(comm_of(machine->engine, &machine->schedule->list[number]), status);
}

/* ---- Compute ------------------------------------------------------------------------------- */

static size_t rows_of(const step_batch *batch, int micro)
{
    const size_t begin = (size_t)micro * batch->micro;
    const size_t left = begin < batch->samples ? batch->samples - begin : 0;
    return left < batch->micro ? left : batch->micro;
}

/* NULL where activations come from another stage. */
static float *images_of(const train_engine *engine, int slot)
{
    const train_model *model = &engine->model;
    if (engine->images == NULL)
        return NULL;
    return engine->images + (size_t)slot * model->max_batch * shape_count(&model->input);
}

static ring_status load(step_machine *machine, const step_instruction *at)
{
    train_engine *engine = machine->engine;
    const step_batch *batch = machine->batch;
    const uint32_t *order = batch->order + (size_t)at->micro * batch->micro;
    const size_t rows = rows_of(batch, at->micro);
    if (rows == 0)
        return RING_OK;
    float *images = images_of(engine, at->slot);
    dataset_take(batch->dataset, order, rows, images, engine->labels);
    const op_random random = {.seed = engine->seed,
                              .step = (uint32_t)engine->optimizer.step,
                              .samples = order};
    return model_load(&engine->model, at->slot,
                      &(model_batch){.input = images,
                                     .rows = rows,
                                     .training = batch->training,
                                     .random = random});
}

static void add_loss(step_machine *machine, const step_instruction *at, size_t rows)
{
    train_engine *engine = machine->engine;
    step_batch *batch = machine->batch;
    const train_model *model = &engine->model;
    const size_t labels = shape_rows(&model->output); /* of a sample */
    batch->local_loss += loss_sum(engine->loss, model_output(model, at->slot), engine->labels,
                                  rows * labels, shape_width(&model->output),
                                  batch->scale / (double)labels,
                                  model_delta(model, at->slot, model->node_count - 1)) /
                         (double)labels;
}

static ring_status forward(step_machine *machine, const step_instruction *at)
{
    train_model *model = &machine->engine->model;
    const size_t rows = rows_of(machine->batch, at->micro);
    if (rows == 0)
        return RING_OK; /* this rank has no samples left to evaluate, but parts to send */
    casts_load_params(&machine->engine->memory, at->bucket);
    RING_TRY(model_forward(model, at->slot, at->first, at->end, NULL));
    if (machine->batch->training && at->end == model->node_count &&
        pipeline_is_last(&machine->engine->pipeline))
        add_loss(machine, at, rows);
    return RING_OK;
}

/* Of this rank's samples in the micro-batch; zeros if it has none left and others have.
 * @param add  to what earlier micro-batches left */
static ring_status compute_grads(step_machine *machine, const step_instruction *at, bool add)
{
    const zero_memory *memory = &machine->engine->memory;
    const partition_bucket *bucket = &machine->engine->partition.buckets[at->bucket];
    if (rows_of(machine->batch, at->micro) > 0) {
        casts_load_params(memory, at->bucket);
        return model_backward(&machine->engine->model, at->slot, at->first, at->end, add, NULL);
    }
    if (!add)
        memset(zero_bucket(memory, memory->node_grads, at->bucket), 0,
               bucket->count * sizeof(float));
    return RING_OK;
}

static ring_status backward(step_machine *machine, const step_instruction *at)
{
    const zero_memory *memory = &machine->engine->memory;
    const bool in_place = memory->node_grads == &memory->grads;
    RING_TRY(compute_grads(machine, at, in_place && at->accumulate));
    casts_keep_grads(memory, at->bucket, at->accumulate);
    return RING_OK;
}

static ring_status step(step_machine *machine, const step_instruction *at)
{
    train_engine *engine = machine->engine;
    const zero_memory *memory = &engine->memory;
    const partition_bucket *bucket = &engine->partition.buckets[at->bucket];
    const size_t before = (size_t)engine->rank * bucket->part;
    const size_t count = zero_owned_count(memory, at->bucket);
    const void *grads = zero_owned(memory, &memory->grads, at->bucket);
    if (machine->skip)
        return RING_OK;
    const optimizer_range range = {.offset = engine->stage == 0 ? bucket->offset
                                                                : bucket->offset + before,
                                   .at = engine->stage == 0 ? bucket->offset : bucket->own,
                                   .count = count,
                                   .params = casts_begin_step(memory, at->bucket),
                                   .grads = casts_float_grads(memory, at->bucket, grads, count)};
    optimizer_step(&engine->optimizer, &range, machine->batch->lr, machine->clip);
    casts_end_step(memory, at->bucket);
    return RING_OK;
}

/* ---- The norm ------------------------------------------------------------------------------ */

/* @return the sum of squares of the gradients that rank @p rank owns; of this one, from stage 1 on.
 */
static double sum_squares(const train_engine *engine, int rank)
{
    const zero_memory *memory = &engine->memory;
    const size_t size = precision_size(memory->grads.type);
    double sum = 0.0;
    for (int b = 0; b < engine->partition.count; b++) {
        const size_t part = engine->partition.buckets[b].part;
        const size_t begin = (size_t)rank * part, before = engine->stage == 0 ? begin : 0;
        const unsigned char *owned = zero_owned(memory, &memory->grads, b);
        const float *grads = casts_float_grads(memory, b, owned + before * size, part);
        sum += pipe_ties_sum_squares(&engine->pipeline.ties, grads,
                                     engine->partition.buckets[b].offset + begin, part);
    }
    return sum;
}

/* Owner by owner in any stage, so that all stages clip alike, bit for bit. */
static ring_status compute_norm(const step_machine *machine, double *norm)
{
    const train_engine *engine = machine->engine;
    const train_pipeline *pipeline = &engine->pipeline;
    const size_t ranks = (size_t)engine->ranks;
    double *sums = &engine->norm_sums[(size_t)pipeline->place.stage * ranks], total = 0.0;
    ring_status status = RING_OK;
    if (engine->stage == 0) {
        for (int r = 0; r < engine->ranks; r++)
            sums[r] = sum_squares(engine, r);
    } else {
        sums[engine->rank] = sum_squares(engine, engine->rank);
        status = train_ring(engine->comm, ring_all_gather(&sums[engine->rank], sums, 1,
                                                          RING_FLOAT64, engine->comm, NULL));
    }
    if (status == RING_OK && pipeline->place.stages > 1)
        status = pipeline_sum(pipeline, engine->norm_sums, ranks);
    for (int r = 0; r < engine->ranks; r++)
        total += engine->norm_sums[r];
    *norm = sqrt(total);
    return status;
}

/* The sum over ranks is finite only if every rank's is; then nobody needs to ask. */
static ring_status check_finite(const step_machine *machine, double norm)
{
    train_engine *engine = machine->engine;
    const double local_loss = machine->batch->local_loss;
    if (isfinite(engine->loss_total[0]) && isfinite(norm))
        return RING_OK;
    const long update = engine->optimizer.step + 1;
    ring_status mine = RING_OK;
    if (!isfinite(local_loss))
        mine = train_fail(RING_ERR_USAGE, "the loss is %s in update %ld; " ADVICE,
                          isnan(local_loss) ? "nan" : "infinite", update);
    RING_TRY(agree(engine->world, mine));
    return agree(engine->world,
                 train_fail(RING_ERR_USAGE, "the gradient is not finite in update %ld; " ADVICE,
                            update));
}

static ring_status skip_update(step_machine *machine)
{
    train_engine *engine = machine->engine;
    const long update = engine->optimizer.step + engine->overflow.skipped + 1;
    machine->skip = machine->batch->result.skipped = true;
    return overflow_skip(&engine->overflow, &engine->memory, &engine->model.tensors, engine->world,
                         update);
}

static ring_status clip(step_machine *machine, const step_instruction *at)
{
    train_engine *engine = machine->engine;
    engine_result *result = &machine->batch->result;
    const double scale = engine->overflow.scaler.scale;
    double norm;
    (void)at;
    result->loss = engine->loss_total[0] / (double)result->samples;
    result->stop_asked = engine->loss_total[1];
    RING_TRY(compute_norm(machine, &norm));
    result->grad_norm = norm / scale;
    if (engine->overflow.skips && !isfinite(norm))
        return skip_update(machine);
    RING_TRY(check_finite(machine, norm));
    overflow_none(&engine->overflow);
    machine->clip = optimizer_clip(result->grad_norm, engine->config->gradient_clipping) / scale;
    optimizer_begin(&engine->optimizer);
    return RING_OK;
}

/* ---- The wire ------------------------------------------------------------------------------ */

static ring_call call_of(step_machine *machine, const step_instruction *at)
{
    ring_call call = RING_CALL_INIT;
    const ptrdiff_t number = at - machine->schedule->list;
    machine->runs[number] = true;
    call.work = &machine->works[number];
    return call;
}

static ring_status reduce_loss(step_machine *machine, const step_instruction *at)
{
    const train_engine *engine = machine->engine;
    const ring_call call = call_of(machine, at);
    engine->loss_total[0] = machine->batch->local_loss;
    engine->loss_total[1] = engine->stop_asked;
    return ring_all_reduce(engine->loss_total, engine->loss_total, 2, RING_FLOAT64, RING_SUM,
                           engine->world, &call);
}

/* Where the reduced gradients that this rank owns are to lie: where they travel, or are kept. */
static void *reduced_at(const zero_memory *memory, const step_instruction *at)
{
    const bool keeps = memory->stage >= 2 && !at->accumulate;
    if (keeps && memory->grads.type == memory->wire->type)
        return zero_part(memory, &memory->grads, at->bucket);
    return zero_owned(memory, memory->wire, at->bucket);
}

static ring_status reduce(step_machine *machine, const step_instruction *at)
{
    train_engine *engine = machine->engine;
    if (at->bucket == BUCKET_TIES)
        return pipe_ties_reduce(&engine->pipeline.ties, engine->pipeline.whole.grads);
    if (at->bucket == BUCKET_LOSS)
        return reduce_loss(machine, at);
    const zero_memory *memory = &engine->memory;
    const partition_bucket *bucket = &engine->partition.buckets[at->bucket];
    void *grads = zero_bucket(memory, memory->wire, at->bucket);
    const ring_call call = call_of(machine, at);
    casts_send_grads(memory, at->bucket);
    overflow_look(&engine->overflow, memory, at->bucket);
    if (engine->stage == 0 || bucket->is_shared)
        return ring_all_reduce(grads, grads, bucket->count, memory->wire->type, RING_SUM,
                               engine->comm, &call);
    return ring_reduce_scatter(grads, reduced_at(memory, at), bucket->part, memory->wire->type,
                               RING_SUM, engine->comm, &call);
}

static ring_status gather(step_machine *machine, const step_instruction *at)
{
    const train_engine *engine = machine->engine;
    const zero_memory *memory = &engine->memory;
    const ring_call call = call_of(machine, at);
    return ring_all_gather(zero_part(memory, &memory->params, at->bucket),
                           zero_bucket(memory, memory->gathered, at->bucket),
                           engine->partition.buckets[at->bucket].part, memory->params.type,
                           engine->comm, &call);
}

/* Activations go to the next stage and come from the previous one, their gradients the other way.
 */
static float *travelling(const train_model *model, const step_instruction *at)
{
    const int node = at->towards > 0 ? model->node_count - 1 : 0;
    if ((at->kind == STEP_SEND) == (at->towards > 0))
        return model_value(model, at->slot, node);
    return model_delta(model, at->slot, node);
}

static ring_status transfer(step_machine *machine, const step_instruction *at)
{
    const train_engine *engine = machine->engine;
    const train_model *model = &engine->model;
    const int node = at->towards > 0 ? model->node_count - 1 : 0,
              peer = engine->pipeline.place.stage + at->towards;
    const size_t count = rows_of(machine->batch, at->micro) *
                         shape_count(&model->nodes[node].use.out);
    const ring_call call = call_of(machine, at);
    float *numbers = travelling(model, at);
    if (at->kind == STEP_SEND)
        return ring_send(numbers, count, RING_FLOAT32, peer, engine->pipe, &call);
    return ring_recv(numbers, count, RING_FLOAT32, peer, engine->pipe, &call);
}

/* What is left to do when the wire has done its part. */
static void end_work(step_machine *machine, int number)
{
    const step_instruction *at = &machine->schedule->list[number];
    machine->runs[number] = false;
    step_times_arrived(&machine->engine->times, at, number, train_now());
    const zero_memory *memory = &machine->engine->memory;
    if (at->kind == STEP_REDUCE && at->bucket != BUCKET_LOSS)
        casts_take_grads(memory, at->bucket, reduced_at(memory, at), at->accumulate);
}

static ring_status wait_for(step_machine *machine, int number)
{
    if (!machine->runs[number])
        return RING_OK;
    const double start = train_now();
    const ring_status status = check_ring(machine, number, ring_wait(&machine->works[number]));
    step_times_waited(&machine->engine->times, &machine->schedule->list[number], start,
                      train_now());
    if (status == RING_OK)
        end_work(machine, number);
    machine->runs[number] = false;
    return status;
}

/* Moves what runs, between computations. One test advances all works. @param now  train_now(). */
static ring_status advance(step_machine *machine, int end, double now)
{
    while (machine->oldest < end && !machine->runs[machine->oldest])
        machine->oldest++;
    if (machine->oldest >= end)
        return RING_OK;
    int done = 0;
    const int number = machine->oldest;
    RING_TRY(check_ring(machine, number, ring_test(&machine->works[number], &done)));
    step_times_moved(&machine->engine->times, &machine->schedule->list[number], now, train_now());
    if (done)
        end_work(machine, number);
    return RING_OK;
}

/* ---- The walk ------------------------------------------------------------------------------ */

static ring_status await_earlier(step_machine *machine, int number)
{
    const step_instruction *at = &machine->schedule->list[number];
    for (int i = 0; i < at->after_count; i++)
        RING_TRY(wait_for(machine, at->after[i]));
    for (int i = 0; i < number && at->after_all; i++)
        RING_TRY(wait_for(machine, i));
    return RING_OK;
}

static ring_status release(step_machine *machine, const step_instruction *at)
{
    (void)machine;
    (void)at;
    return RING_OK; /* its place is free for the next GATHER that comes after this */
}

typedef ring_status run_function(step_machine *machine, const step_instruction *at);

/* Sums over ranks are made in the usual mode: other threads may have a hand in them. */
static ring_status compute(run_function *function, step_machine *machine,
                           const step_instruction *at)
{
    const uint64_t mode = subnormals_flush();
    const ring_status status = function(machine, at);
    subnormals_restore(mode);
    return status;
}

static ring_status run_instruction(step_machine *machine, int number)
{
    static run_function *const functions[STEP_KINDS] = {
        [STEP_LOAD] = load,     [STEP_GATHER] = gather,   [STEP_FORWARD] = forward,
        [STEP_REDUCE] = reduce, [STEP_CLIP] = clip,       [STEP_BACKWARD] = backward,
        [STEP_STEP] = step,     [STEP_RELEASE] = release, [STEP_SEND] = transfer,
        [STEP_RECV] = transfer,
    };
    const step_instruction *at = &machine->schedule->list[number];
    RING_TRY(await_earlier(machine, number));
    const double start = train_now();
    ring_status status = at->queue == QUEUE_COMPUTE ? compute(functions[at->kind], machine, at)
                                                    : functions[at->kind](machine, at);
    if (at->queue == QUEUE_WIRE) {
        machine->runs[number] = status == RING_OK;
        status = check_ring(machine, number, status);
        if (status == RING_OK)
            step_times_left(&machine->engine->times, at, number, start);
    }
    const double end = train_now();
    step_times_ran(&machine->engine->times, at, start, end);
    if (status == RING_OK && at->kind == STEP_REDUCE && !machine->engine->config->overlap_comm)
        status = wait_for(machine, number);
    return status == RING_OK ? advance(machine, number + 1, end) : status;
}

/* After a failure, whose text stays. */
static void abandon(step_machine *machine)
{
    for (int i = 0; i < machine->schedule->count; i++) {
        if (machine->runs[i])
            ring_wait(&machine->works[i]);
        machine->runs[i] = false;
    }
}

static ring_status run_all(step_machine *machine)
{
    ring_status status = RING_OK;
    const int count = machine->schedule->count;
    for (int i = 0; i < count && status == RING_OK; i++)
        status = run_instruction(machine, i);
    for (int i = 0; i < count && status == RING_OK; i++)
        status = wait_for(machine, i);
    abandon(machine);
    return status;
}

ring_status step_run(train_engine *engine, const step_schedule *schedule, step_batch *batch)
{
    step_machine machine = {.engine = engine,
                            .schedule = schedule,
                            .batch = batch,
                            .works = engine->works,
                            .runs = engine->runs};
    return run_all(&machine);
}
