/* SPDX-License-Identifier: Apache-2.0
 * Walks over the list of instructions. Calls in flight are stored by the number of their
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

static const ring_comm *comm_of(const train_engine *engine, const update_instruction *at)
{
    if (at->kind == UPDATE_SEND || at->kind == UPDATE_RECV)
        return engine->comms.pipe;
    if (at->kind == UPDATE_SUM)
        return engine->comms.tensor;
    return at->kind == UPDATE_REDUCE && at->bucket == BUCKET_LOSS ? engine->world : engine->comm;
}

static ring_status check_ring(const update_machine *machine, int number, ring_status status)
{
    return train_ring(comm_of(machine->engine, &machine->schedule->list[number]), status);
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
    const data_batch behind = update_micro_batch(batch, micro + 1);
    const size_t next = batch->next_samples < batch->micro ? batch->next_samples : batch->micro;
    if (behind.rows > 0)
        return behind;
    return (data_batch){batch->dataset, batch->next, batch->next != NULL ? next : 0};
}

/* Labels alone where activations come from another stage. */
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

static ring_status load_rows(const update_machine *machine, const update_instruction *at)
{
    train_engine *engine = machine->engine;
    const update_batch *batch = machine->batch;
    const data_batch own = update_micro_batch(batch, at->micro);
    if (own.rows == 0)
        return RING_OK;
    RING_TRY(take(engine, batch, at));
    const op_random random = {.seed = engine->seed,
                              .step = (uint32_t)engine->optimizer.step,
                              .samples = own.order};
    return model_load(&engine->model, at->slot,
                      &(model_batch){.input = engine->images != NULL ? engine->images[at->slot]
                                                                     : NULL,
                                     .rows = own.rows,
                                     .training = batch->training,
                                     .random = random});
}

/* Other ranks learn of a failure when the loss is summed; with loss_apart it is returned now. */
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
    const size_t per_sample = shape_rows(&model->output);
    return loss_sum(engine->loss, model_output(model, slot), labels, rows * per_sample,
                    shape_width(&model->output), weight * batch->scale / (double)per_sample,
                    model_value_grad(model, slot, model->node_count - 1)) /
           (double)per_sample;
}

/* Of the whole network, in a pass that is to learn from it; whose last segment runs once. */
static bool wants_loss(const update_machine *machine, int end)
{
    const train_engine *engine = machine->engine;
    return machine->batch->training && !machine->batch->loss_apart &&
           end == engine->model.node_count && pipeline_is_last(&engine->pipeline);
}

/* Of all nodes of a range. */
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
        return RING_OK; /* this rank has no samples left to evaluate, but parts to send */
    if (at->opens)
        load_params(engine, at->bucket);
    model_forward(&engine->model, at->slot, at->first, at->end);
    if (wants_loss(machine, at->end))
        batch->local_loss += update_fill_loss(engine, batch, at->slot, engine->labels, rows, 1.0);
    return RING_OK;
}

/* Of this rank's samples in the micro-batch; zeros if it has none left and others have.
 * @param add  to what earlier micro-batches left */
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
        memset(zero_bucket(memory, zero_array_of(memory, ZERO_NODE_GRADS), b), 0,
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

/* @return the most elements that are updated at a time. */
static size_t update_block(const train_engine *engine)
{
    const size_t block = offload_block(&engine->offload);
    const size_t group = (size_t)engine->config->sub_group_size;
    return engine->zero_stage == 3 && group < block ? group : block;
}

/* Block by block where states lie in files. After a disk has failed ranks only go on to the end of
 * the update, where all of them learn of it. */
static void optimize_range(update_machine *machine, int bucket, const optimizer_range *range)
{
    train_engine *engine = machine->engine;
    const size_t block = update_block(engine);
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

/* The sum over ranks is finite only if every rank's is; then nobody needs to ask. */
static ring_status check_finite(const update_machine *machine, bool gradient_is)
{
    train_engine *engine = machine->engine;
    const double local_loss = machine->batch->local_loss;
    if (isfinite(engine->scalars->loss) && gradient_is)
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

static bool goes_without_norm(const train_engine *engine)
{
    return engine->skips_norm && !config_clips(engine->config) && !engine->overflow.skips;
}

/* Marks a run whose samples could not be read: its results are void. */
static ring_status tell_unloaded(update_machine *machine)
{
    machine->batch->result.unloaded = true;
    overflow_forget(&machine->engine->overflow);
    return agree(machine->engine->world, train_failure_tell(&machine->batch->failure));
}

/* Leaves the update out, or ends the training, if a gradient is not finite. */
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
    const bool without_norm = goes_without_norm(engine);
    update_scalars *scalars = engine->scalars;
    (void)at;
    if (scalars->unloaded > 0.0)
        return tell_unloaded(machine);
    result->loss = scalars->loss / (double)result->samples;
    result->stop_asked = scalars->stop_asked;
    scalars->grad_norm = (double)NAN;
    if (!without_norm)
        RING_TRY(grad_norm(engine));
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

/* Every rank gets all of the sum. */
static bool reduces_to_all(const train_engine *engine, int bucket)
{
    return engine->zero_stage == 0 || engine->partition.buckets[bucket].is_shared ||
           (engine->zero_stage < 3 && !engine->config->reduce_scatter);
}

/* Where the reduced gradients that this rank keeps are to lie: where they travel, or are kept. */
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
    casts_send_grads(memory, at->bucket);
    overflow_look(&engine->overflow, memory, at->bucket);
    if (reduces_to_all(engine, at->bucket))
        return ring_all_reduce(grads, grads, bucket->count, wire->type, RING_SUM, engine->comm,
                               &call);
    return ring_reduce_scatter(grads, reduced_at(engine, at), bucket->part, wire->type, RING_SUM,
                               engine->comm, &call);
}

/* @return this rank's part of the bucket's parameters, which the wire may read: not in a file. */
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

/* Activations go to the next stage and come from the previous one, their gradients the other way.
 */
static float *travelling(const train_model *model, const update_instruction *at)
{
    const int node = at->towards > 0 ? model->node_count - 1 : 0;
    if ((at->kind == UPDATE_SEND) == (at->towards > 0))
        return model_value(model, at->slot, node);
    return model_value_grad(model, at->slot, node);
}

static ring_status transfer(update_machine *machine, const update_instruction *at)
{
    const train_engine *engine = machine->engine;
    const train_model *model = &engine->model;
    const int node = at->towards > 0 ? model->node_count - 1 : 0,
              peer = engine->pipeline.place.stage + at->towards;
    const size_t count = rows_of(machine->batch, at->micro) *
                         shape_count(&model->nodes[node].use.out);
    const ring_call call = call_of(machine, at);
    float *numbers = travelling(model, at);
    if (at->kind == UPDATE_SEND)
        return ring_send(numbers, count, RING_FLOAT32, peer, engine->comms.pipe, &call);
    return ring_recv(numbers, count, RING_FLOAT32, peer, engine->comms.pipe, &call);
}

/* Activations, or their gradients, of which each tensor rank has made a summand. */
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

/* Finishes an instruction whose call on the wire has ended. */
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

/* Moves what runs, between computations. One test advances all works. @param now  train_now(). */
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

static ring_status await_earlier(update_machine *machine, int number)
{
    const update_instruction *at = &machine->schedule->list[number];
    for (int i = 0; i < at->after_count; i++)
        RING_TRY(wait_for(machine, at->after[i]));
    for (int i = 0; i < number && at->after_all; i++)
        RING_TRY(wait_for(machine, i));
    return RING_OK;
}

typedef ring_status run_function(update_machine *machine, const update_instruction *at);

/* Whether the instruction is without use, as the samples are not there. */
static bool is_in_vain(const update_machine *machine, update_kind kind)
{
    return machine->batch->failure.status != RING_OK &&
           (kind == UPDATE_LOAD || kind == UPDATE_FORWARD || kind == UPDATE_BACKWARD);
}

/* Sums over ranks are made in the usual mode: other threads may have a hand in them. */
static ring_status compute(run_function *function, update_machine *machine,
                           const update_instruction *at)
{
    if (is_in_vain(machine, at->kind))
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
    RING_TRY(await_earlier(machine, number));
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
