/* SPDX-License-Identifier: Apache-2.0
 * Has a function for each kind of instruction, and the loop that waits for an instruction's
 * dependencies and then runs it. The work of a call in flight is stored by the number of its
 * instruction. */
#include "update_run.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "agree.h"
#include "bucket_casts.h"
#include "clock.h"
#include "errors.h"
#include "grad_norm.h"
#include "subnormals.h"

/* Returns @p status of the call of instruction @p number, with the error text of its communicator.
 */
static ring_status check_ring(const update_machine *machine, int number, ring_status status)
{
    const train_engine *engine = machine->engine;
    const update_instruction *at = &machine->schedule->list[number];
    const ring_comm *comm = engine->comm;
    if (at->kind == UPDATE_SEND || at->kind == UPDATE_RECV)
        comm = engine->comms.pipe;
    else if (at->kind == UPDATE_SUM)
        comm = engine->comms.tensor;
    else if (at->kind == UPDATE_REDUCE && at->bucket == BUCKET_LOSS)
        comm = engine->world;
    return train_ring(comm, status);
}

/* ---- Compute ------------------------------------------------------------------------------- */

data_batch update_micro_batch(const update_batch *batch, int micro)
{
    const size_t begin = (size_t)(micro - batch->first) * batch->micro;
    const size_t left = begin < batch->samples ? batch->samples - begin : 0;
    return (data_batch){batch->dataset, batch->order + (left > 0 ? begin : 0),
                        left < batch->micro ? left : batch->micro};
}

static size_t rows_of(const update_batch *batch, int micro)
{
    return update_micro_batch(batch, micro).rows;
}

data_batch update_next_micro_batch(const update_batch *batch, int micro)
{
    const data_batch following = update_micro_batch(batch, micro + 1);
    const size_t next = batch->next_samples < batch->micro ? batch->next_samples : batch->micro;
    if (following.rows > 0)
        return following;
    return (data_batch){batch->dataset, batch->next, batch->next != NULL ? next : 0};
}

/* Reads the samples of a micro-batch, and asks the reader for the next one. Stages without images
 * read only the labels. */
static ring_status take(train_engine *engine, const update_batch *batch,
                        const update_instruction *at)
{
    const data_batch want = update_micro_batch(batch, at->micro);
    float **images = engine->images != NULL ? &engine->images[at->slot] : NULL;
    if (engine->reader == NULL)
        return dataset_take(want.dataset, want.order, want.rows, images != NULL ? *images : NULL,
                            engine->labels);
    RING_TRY(reader_take(engine->reader, &want, images, &engine->labels));
    const data_batch next = update_next_micro_batch(batch, at->micro);
    if (batch->training && next.rows > 0)
        reader_ask(engine->reader, &next);
    return RING_OK;
}

/* @return @p images of the host, or their copy at the model's place. */
static const float *place_images(const train_engine *engine, const float *images, size_t rows)
{
    const train_model *model = &engine->model;
    if (model->place->is_host || images == NULL)
        return images;
    model->place->write(model->place, engine->placed.images, images,
                        rows * shape_count(&model->input) * sizeof(float));
    return engine->placed.images;
}

/* The same for the numbers of samples, which only training needs. */
static const uint32_t *place_samples(const train_engine *engine, const uint32_t *samples,
                                     size_t rows, bool training)
{
    const nn_place *place = engine->model.place;
    if (place->is_host || !training)
        return samples;
    place->write(place, engine->placed.samples, samples, rows * sizeof *samples);
    return engine->placed.samples;
}

static ring_status load_rows(const update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    const update_batch *batch = machine->batch;
    const data_batch own = update_micro_batch(batch, at->micro);
    if (own.rows == 0)
        return RING_OK;
    /* Waits for the copies of the last micro-batch, because take() refills their buffers. */
    RING_TRY(engine->model.place->settle(engine->model.place));
    RING_TRY(take(engine, batch, at));
    const op_random random = {.seed = engine->seed,
                              .step = (uint32_t)engine->optimizer.step,
                              .samples = place_samples(engine, own.order, own.rows,
                                                       batch->training)};
    const float *images = engine->images != NULL ? engine->images[at->slot] : NULL;
    return model_load(&engine->model, at->slot,
                      &(model_batch){.input = place_images(engine, images, own.rows),
                                     .rows = own.rows,
                                     .training = batch->training,
                                     .random = random});
}

/* A failure is kept until the loss is summed, when all ranks learn of it. With loss_apart it is
 * returned at once. */
static ring_status load(update_machine *machine, const update_instruction *at)
{
    const ring_status status = load_rows(machine, at);
    if (machine->batch->loss_apart)
        return status;
    train_failure_keep(&machine->batch->failure, status);
    return RING_OK;
}

double update_fill_loss(const train_engine *engine, const update_batch *batch, int slot,
                        const uint32_t *labels, size_t rows, double weight)
{
    const train_model *model = &engine->model;
    const nn_place *place = model->place;
    const size_t per_sample = shape_rows(&model->output);
    double sum = 0.0;
    loss_run run = {.kind = engine->loss,
                    .outputs = model_output(model, slot),
                    .labels = labels,
                    .rows = rows * per_sample,
                    .classes = shape_width(&model->output),
                    .scale = weight * batch->scale / (double)per_sample,
                    .gradient = model_value_grad(model, slot, model->node_count - 1),
                    .sum = &sum};
    if (!place->is_host) {
        place->write(place, engine->placed.labels, labels, run.rows * sizeof *labels);
        place->clear(place, engine->placed.loss, sizeof *engine->placed.loss);
        run.labels = engine->placed.labels;
        run.sum = engine->placed.loss;
    }
    place->loss(place, &run);
    if (!place->is_host) {
        place->read(place, &sum, engine->placed.loss, sizeof sum);
        (void)place->settle(place); /* CLIP returns a failure */
    }
    return sum / (double)per_sample;
}

/* Casts the parameters of all buckets of a range for its nodes. */
static void load_params(const train_engine *engine, int range)
{
    for (int b = range; b >= 0; b = partition_beside(&engine->partition, b))
        casts_load_params(&engine->memory, b);
}

static ring_status forward(update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    update_batch *batch = machine->batch;
    const size_t rows = rows_of(batch, at->micro);
    if (rows == 0)
        return RING_OK; /* this rank has no samples left and only takes part in the calls */
    if (at->opens)
        load_params(engine, at->bucket);
    model_forward(&engine->model, at->slot, at->first, at->end);
    /* The last node runs only once, since the last segment is never recomputed. */
    if (batch->training && !batch->loss_apart && at->end == engine->model.node_count &&
        pipeline_is_last(&engine->pipeline))
        batch->local_loss += update_fill_loss(engine, batch, at->slot, engine->labels, rows, 1.0);
    return RING_OK;
}

/* Computes the gradients of a micro-batch. If this rank has no samples in it, they are 0.
 * @param add  adds them to the gradients of earlier micro-batches */
static void compute_grads(update_machine *machine, const update_instruction *at, bool add)
{
    const zero_memory *memory = &machine->engine->memory;
    const train_partition *partition = &machine->engine->partition;
    if (rows_of(machine->batch, at->micro) > 0) {
        if (at->opens)
            load_params(machine->engine, at->bucket);
        model_backward(&machine->engine->model, at->slot, at->first, at->end, add);
        return;
    }
    for (int b = at->bucket; b >= 0 && !add; b = partition_beside(partition, b))
        memory->place->clear(memory->place,
                             zero_bucket(memory, zero_array_of(memory, ZERO_NODE_GRADS), b),
                             partition->buckets[b].count * sizeof(float));
}

static ring_status backward(update_machine *machine, const update_instruction *at)
{
    const zero_memory *memory = &machine->engine->memory;
    const train_partition *partition = &machine->engine->partition;
    const bool in_place = zero_is_same(memory, ZERO_NODE_GRADS, ZERO_GRADS);
    compute_grads(machine, at, in_place && at->accumulate);
    if (at->first != partition->buckets[at->bucket].first)
        return RING_OK;
    for (int b = at->bucket; b >= 0; b = partition_beside(partition, b))
        casts_keep_grads(memory, b, at->accumulate);
    return RING_OK;
}

/* Runs the optimiser block by block, so that offloaded states are in memory one block at a time. If
 * a disk fails, the rank only takes part in the rest of the update, after which offload_leave()
 * returns the error on all ranks. */
static void optimize_range(update_machine *machine, int bucket, const optimizer_range *range)
{
    train_engine *engine = machine->engine;
    const size_t group = (size_t)engine->config->sub_group_size;
    size_t block = offload_block(&engine->offload);
    if (engine->zero_stage == 3 && group < block)
        block = group;
    for (size_t done = 0; done < range->count;) {
        const size_t left = range->count - done, count = left < block ? left : block;
        const optimizer_range part = {.offset = range->offset + done,
                                      .at = range->at + done,
                                      .count = count,
                                      .params = range->params + done,
                                      .grads = range->grads + done};
        if (!offload_enter(&engine->offload, part.at, count))
            return;
        optimizer_step(&engine->optimizer, &part, &engine->scalars->lr, &engine->scalars->clip);
        casts_end_step(&engine->memory, bucket, done, count);
        done += count;
    }
}

static ring_status optimize(update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    const zero_memory *memory = &engine->memory;
    const partition_bucket *bucket = &engine->partition.buckets[at->bucket];
    const bool splits = engine->zero_stage > 0;
    const array_layout layout = splits ? LAYOUT_OWN : LAYOUT_FULL;
    const size_t before = splits ? (size_t)engine->rank * bucket->part : 0;
    const size_t count = zero_owned_count(memory, at->bucket);
    const void *grads = zero_owned(memory, &memory->arrays[ZERO_GRADS], at->bucket);
    if (machine->skip || engine->offload.failure.status != RING_OK)
        return RING_OK;
    const optimizer_range range = {.offset = bucket->at[LAYOUT_FULL] + before,
                                   .at = bucket->at[layout],
                                   .count = count,
                                   .params = casts_begin_step(memory, at->bucket),
                                   .grads = casts_float_grads(memory, at->bucket, grads, count)};
    optimize_range(machine, at->bucket, &range);
    return RING_OK;
}

/* ---- Clipping ------------------------------------------------------------------------------ */

ring_status update_fail_not_finite(double loss, long number)
{
    if (isfinite(loss))
        return train_fail(RING_ERR_USAGE, "the gradient is not finite in update %ld; " ADVICE,
                          number);
    return train_fail(RING_ERR_USAGE, "the loss is %s in update %ld; " ADVICE,
                      isnan(loss) ? "nan" : "infinite", number);
}

/* Fails on all ranks if the loss or the gradient is not finite. The loss is a sum over all ranks
 * and the norm is the same on all ranks, so all ranks take the same branch. If some rank's own loss
 * is not finite, the error names that rank. */
static ring_status check_finite(const update_machine *machine, bool gradient_is)
{
    train_engine *engine = machine->engine;
    const double local_loss = machine->batch->local_loss;
    if (isfinite(engine->scalars->loss) && gradient_is)
        return RING_OK;
    const long update = engine->optimizer.step + 1;
    RING_TRY(agree(engine->world,
                   isfinite(local_loss) ? RING_OK : update_fail_not_finite(local_loss, update)));
    return agree(engine->world, update_fail_not_finite(0.0, update));
}

static ring_status skip_update(update_machine *machine)
{
    train_engine *engine = machine->engine;
    const long update = engine->optimizer.step + engine->overflow.skipped + 1;
    const overflow_tensors tensors = {.here = &engine->model.tensors,
                                      .whole = &engine_network(engine)->tensors,
                                      .locals = engine->pipeline.locals};
    machine->skip = machine->batch->result.skipped = true;
    return overflow_skip(&engine->overflow, &engine->memory, &tensors, engine->world, update);
}

/* Skips the update, or fails, if a gradient is not finite. */
static ring_status check_norm(update_machine *machine, bool without_norm)
{
    train_engine *engine = machine->engine;
    const double norm = engine->scalars->grad_norm;
    if (engine->overflow.skips && !isfinite(norm))
        return skip_update(machine);
    RING_TRY(check_finite(machine, without_norm || isfinite(norm)));
    overflow_none(&engine->overflow);
    return RING_OK;
}

static ring_status clip(update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    engine_result *result = &machine->batch->result;
    const double scale = engine->overflow.scaler.scale;
    const bool without_norm = engine->skips_norm && !config_clips(engine->config) &&
                              !engine->overflow.skips;
    update_scalars *scalars = engine->scalars;
    (void)at;
    if (!engine->model.place->is_host) /* a single rank, so that no other one waits */
        RING_TRY(engine->model.place->settle(engine->model.place));
    if (scalars->unloaded > 0.0) {
        result->unloaded = true;
        overflow_forget(&engine->overflow);
        return agree(engine->world, train_failure_tell(&machine->batch->failure));
    }
    result->loss = scalars->loss / (double)result->samples;
    result->stop_asked = scalars->stop_asked;
    scalars->grad_norm = (double)NAN;
    if (!without_norm)
        RING_TRY(grad_norm(engine));
    if (!engine->model.place->is_host)
        RING_TRY(engine->model.place->settle(engine->model.place));
    result->grad_norm = scalars->grad_norm / scale;
    const double start = train_now();
    RING_TRY(check_norm(machine, without_norm));
    engine->times.checking += train_now() - start;
    if (machine->skip)
        return RING_OK;
    scalars->clip = optimizer_clip(result->grad_norm, engine->config->gradient_clipping) / scale;
    optimizer_begin(&engine->optimizer);
    return RING_OK;
}

/* ---- The wire ------------------------------------------------------------------------------ */

/* @return options that make the call of @p at nonblocking, with its work stored by its number. */
static ring_call call_of(update_machine *machine, const update_instruction *at)
{
    ring_call call = RING_CALL_INIT;
    const ptrdiff_t number = at - machine->schedule->list;
    machine->runs[number] = true;
    call.work = &machine->works[number];
    return call;
}

static ring_status reduce_loss(update_machine *machine, const update_instruction *at)
{
    const train_engine *engine = machine->engine;
    const ring_call call = call_of(machine, at);
    void *sums = engine->scalars; /* [LOSS_SUMS], its first members */
    _Static_assert(offsetof(update_scalars, lr) == LOSS_SUMS * sizeof(double), "sums come first");
    engine->scalars->loss = engine->tensor.rank == 0 ? machine->batch->local_loss : 0.0;
    engine->scalars->stop_asked = engine->stop_asked;
    engine->scalars->unloaded = machine->batch->failure.status != RING_OK;
    return ring_all_reduce(sums, sums, LOSS_SUMS, RING_FLOAT64, RING_SUM, engine->world, &call);
}

/* @return whether every rank receives the sum of the whole bucket, not only of its own part. */
static bool reduces_to_all(const train_engine *engine, int bucket)
{
    return engine->zero_stage == 0 || engine->partition.buckets[bucket].is_shared ||
           (engine->zero_stage < 3 && !engine->config->reduce_scatter);
}

/* @return the destination of the reduced gradients that this rank owns: the array that stores them
 * if they can be received there directly, else the array that is sent. */
static void *reduced_at(const train_engine *engine, const update_instruction *at)
{
    const zero_memory *memory = &engine->memory;
    const zero_array *grads = &memory->arrays[ZERO_GRADS], *wire = zero_array_of(memory, ZERO_WIRE);
    if (memory->partition->buckets[at->bucket].is_shared)
        return zero_bucket(memory, wire, at->bucket);
    const bool keeps = memory->zero_stage >= 2 && !at->accumulate;
    if (keeps && !reduces_to_all(engine, at->bucket) && grads->type == wire->type)
        return zero_part(memory, grads, at->bucket);
    return zero_owned(memory, wire, at->bucket);
}

static ring_status reduce(update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    const zero_memory *memory = &engine->memory;
    const zero_array *kept = &memory->arrays[ZERO_GRADS], *wire = zero_array_of(memory, ZERO_WIRE);
    if (at->bucket == BUCKET_TIES)
        return pipe_ties_reduce(&engine->pipeline.ties, kept->data, kept->type);
    if (at->bucket == BUCKET_LOSS)
        return reduce_loss(machine, at);
    const partition_bucket *bucket = &engine->partition.buckets[at->bucket];
    void *grads = zero_bucket(memory, wire, at->bucket);
    const ring_call call = call_of(machine, at);
    if (!memory->place->is_host) /* a single rank has the sums already */
        return ring_all_reduce(grads, grads, 0, wire->type, RING_SUM, engine->comm, &call);
    casts_send_grads(memory, at->bucket);
    overflow_look(&engine->overflow, memory, at->bucket);
    if (reduces_to_all(engine, at->bucket))
        return ring_all_reduce(grads, grads, bucket->count, wire->type, RING_SUM, engine->comm,
                               &call);
    return ring_reduce_scatter(grads, reduced_at(engine, at), bucket->part, wire->type, RING_SUM,
                               engine->comm, &call);
}

/* @return this rank's part of the bucket's parameters, for sending. A part in a file is first
 * copied to memory, because a failed disk would kill the process when a transport reads the
 * mapping. */
static const void *part_to_send(train_engine *engine, int bucket)
{
    const zero_memory *memory = &engine->memory;
    const partition_bucket *at = &engine->partition.buckets[bucket];
    const zero_array *kept = &memory->arrays[ZERO_PARAMS];
    const size_t bytes = at->part * precision_size(kept->type);
    if (!kept->outside)
        return zero_part(memory, kept, bucket);
    void *part = zero_part(memory, zero_gathered(memory, bucket), bucket);
    offload_read_params(&engine->offload, part, zero_part(memory, kept, bucket), bytes);
    return part;
}

static ring_status gather(update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    const zero_memory *memory = &engine->memory;
    const size_t count = engine->partition.buckets[at->bucket].part;
    const zero_array *gathered = zero_gathered(memory, at->bucket);
    unsigned char *whole = zero_bucket(memory, gathered, at->bucket);
    const void *part = part_to_send(engine, at->bucket);
    const ring_call call = call_of(machine, at);
    if (at->owner < 0)
        return ring_all_gather(part, whole, count, gathered->type, engine->comm, &call);
    void *of_owner = whole + (size_t)at->owner * count * precision_size(gathered->type);
    return ring_broadcast(of_owner, of_owner, count, gathered->type, at->owner, engine->comm,
                          &call);
}

/* Stages send the activations of their last node to the next stage, which receives them as its
 * first node. The gradients of these activations are sent in the other direction. */
static ring_status transfer(update_machine *machine, const update_instruction *at)
{
    const train_engine *engine = machine->engine;
    const train_model *model = &engine->model;
    const int node = at->towards > 0 ? model->node_count - 1 : 0,
              peer = engine->pipeline.place.stage + at->towards;
    const size_t count = rows_of(machine->batch, at->micro) *
                         shape_count(&model->nodes[node].use.out);
    const ring_call call = call_of(machine, at);
    const bool activations = (at->kind == UPDATE_SEND) == (at->towards > 0);
    float *numbers = activations ? model_value(model, at->slot, node)
                                 : model_value_grad(model, at->slot, node);
    if (at->kind == UPDATE_SEND)
        return ring_send(numbers, count, RING_FLOAT32, peer, engine->comms.pipe, &call);
    return ring_recv(numbers, count, RING_FLOAT32, peer, engine->comms.pipe, &call);
}

/* Sums activations (forward) or their gradients (backward) over the tensor ranks. */
static ring_status sum(update_machine *machine, const update_instruction *at)
{
    const train_engine *engine = machine->engine;
    const train_model *model = &engine->model;
    const model_node *node = &model->nodes[at->first];
    const size_t count = rows_of(machine->batch, at->micro) * shape_count(&node->use.out);
    const ring_call call = call_of(machine, at);
    float *numbers = at->towards > 0 ? model_value(model, at->slot, node->inputs[0])
                                     : model_value_grad(model, at->slot, at->first);
    return ring_all_reduce(numbers, numbers, count, RING_FLOAT32, RING_SUM, engine->comms.tensor,
                           &call);
}

/* Completes an instruction whose call has ended. */
static void end_work(update_machine *machine, int number)
{
    const update_instruction *at = &machine->schedule->list[number];
    machine->runs[number] = false;
    update_times_ended(&machine->engine->times, at, number, train_now());
    const train_engine *engine = machine->engine;
    if (at->kind == UPDATE_REDUCE && at->bucket != BUCKET_LOSS)
        casts_take_grads(&engine->memory, at->bucket, reduced_at(engine, at), at->accumulate);
}

static ring_status wait_for(update_machine *machine, int number)
{
    if (!machine->runs[number])
        return RING_OK;
    const double start = train_now();
    const ring_status status = check_ring(machine, number, ring_wait(&machine->works[number]));
    update_times_waited(&machine->engine->times, &machine->schedule->list[number], start,
                        train_now());
    if (status == RING_OK)
        end_work(machine, number);
    machine->runs[number] = false;
    return status;
}

/* Progresses the calls in flight between computations. Testing one work progresses all of them, so
 * it tests the oldest work of the instructions before @p end. @param now  train_now(). */
static ring_status advance(update_machine *machine, int end, double now)
{
    while (machine->oldest < end && !machine->runs[machine->oldest])
        machine->oldest++;
    if (machine->oldest >= end)
        return RING_OK;
    int done = 0;
    const int number = machine->oldest;
    RING_TRY(check_ring(machine, number, ring_test(&machine->works[number], &done)));
    update_times_moved(&machine->engine->times, &machine->schedule->list[number], now, train_now());
    if (done)
        end_work(machine, number);
    return RING_OK;
}

/* ---- The walk ------------------------------------------------------------------------------ */

typedef ring_status run_function(update_machine *machine, const update_instruction *at);

/* Runs a computation with subnormal numbers flushed to zero. Calls do not use this mode: other
 * threads, which are not in it, may compute parts of their sums. After a failure to load samples,
 * passes are left out. */
static ring_status compute(run_function *function, update_machine *machine,
                           const update_instruction *at)
{
    const update_kind kind = at->kind;
    if (machine->batch->failure.status != RING_OK &&
        (kind == UPDATE_LOAD || kind == UPDATE_FORWARD || kind == UPDATE_BACKWARD))
        return RING_OK;
    const uint64_t mode = subnormals_flush();
    const ring_status status = function(machine, at);
    subnormals_restore(mode);
    return status;
}

static ring_status run_instruction(update_machine *machine, int number)
{
    static run_function *const functions[UPDATE_KINDS] = {
        [UPDATE_LOAD] = load,         [UPDATE_GATHER] = gather, [UPDATE_FORWARD] = forward,
        [UPDATE_REDUCE] = reduce,     [UPDATE_CLIP] = clip,     [UPDATE_BACKWARD] = backward,
        [UPDATE_OPTIMIZE] = optimize, [UPDATE_SEND] = transfer, [UPDATE_RECV] = transfer,
        [UPDATE_SUM] = sum,
    };
    const update_instruction *at = &machine->schedule->list[number];
    for (int i = 0; i < at->after_count; i++)
        RING_TRY(wait_for(machine, at->after[i]));
    for (int i = 0; i < number && at->after_all; i++)
        RING_TRY(wait_for(machine, i));
    const double start = train_now();
    ring_status status = at->queue == QUEUE_COMPUTE ? compute(functions[at->kind], machine, at)
                                                    : functions[at->kind](machine, at);
    if (at->queue == QUEUE_WIRE) {
        machine->runs[number] = status == RING_OK;
        status = check_ring(machine, number, status);
        if (status == RING_OK)
            update_times_started(&machine->engine->times, at, number, start);
    }
    const double end = train_now();
    update_times_ran(&machine->engine->times, at, start, end);
    if (status == RING_OK && at->kind == UPDATE_REDUCE && !machine->engine->config->overlap_comm)
        status = wait_for(machine, number);
    return status == RING_OK ? advance(machine, number + 1, end) : status;
}

void update_machine_abandon(update_machine *machine)
{
    for (int i = 0; i < machine->schedule->count; i++) {
        if (machine->runs[i])
            ring_wait(&machine->works[i]);
        machine->runs[i] = false;
    }
}

update_machine update_machine_start(train_engine *engine, const update_schedule *schedule,
                                    update_batch *batch)
{
    return (update_machine){.engine = engine,
                            .schedule = schedule,
                            .batch = batch,
                            .works = engine->works,
                            .runs = engine->runs};
}

ring_status update_machine_run(update_machine *machine, int end)
{
    ring_status status = RING_OK;
    const int count = machine->schedule->count;
    for (; machine->next < end && status == RING_OK; machine->next++)
        status = run_instruction(machine, machine->next);
    for (int i = 0; i < count && end == count && status == RING_OK; i++)
        status = wait_for(machine, i);
    if (status != RING_OK || end == count)
        update_machine_abandon(machine);
    return status;
}

ring_status update_run(train_engine *engine, const update_schedule *schedule, update_batch *batch)
{
    update_machine machine = update_machine_start(engine, schedule, batch);
    return update_machine_run(&machine, schedule->count);
}

update_batch update_batch_of(const train_engine *engine, const train_dataset *dataset,
                             const engine_share *share)
{
    return (update_batch){.dataset = dataset,
                          .order = share->order,
                          .samples = share->samples,
                          .micro = share->micro,
                          .next = share->next,
                          .next_samples = share->next_samples,
                          .training = true,
                          .scale = engine->overflow.scaler.scale / (double)share->total,
                          .result.samples = share->total};
}
