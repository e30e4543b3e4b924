/* SPDX-License-Identifier: Apache-2.0
 * Allocates a rank's memory, builds its schedules, and uses both for updates, evaluation and
 * checks. */
#include "train_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "bucket_casts.h"
#include "clock.h"
#include "deferred_update.h"
#include "errors.h"
#include "update_run.h"

/* Images, or tokens of a text, in one forward pass of an evaluation. */
enum { EVALUATION_BATCH = 256 };

static ring_status check_ring(const train_engine *engine, ring_status status)
{
    return train_ring(engine->comm, status);
}

/* ---- Setting up ---------------------------------------------------------------------------- */

static bool has_pipeline(const train_engine *engine)
{
    return engine->pipeline.place.stages > 1;
}

static bool has_tensor_ranks(const train_engine *engine)
{
    return engine->tensor.ranks > 1;
}

/* A loss reads the output of each label's class, so the last layer must have an output for every
 * class, or for every word of a text's vocabulary.
 * @param words  size of the vocabulary; 0 for images */
static ring_status check_output(const train_model *model, size_t words)
{
    const op_shape *out = &model->output;
    char text[SHAPE_TEXT_MAX];
    if (words > 0 && (out->dims != 2 || out->dim[0] != model->input.dim[0] || out->dim[1] < words))
        return train_fail(
            RING_ERR_CONFIG,
            "the model %s outputs %s for a sample, but a text needs [%zu, %zu]: its last "
            "layer must be linear with %zu features",
            model->name, shape_text(out, text), model->input.dim[0], words, words);
    if (words > 0 || (out->dims == 1 && out->dim[0] == DATASET_CLASSES))
        return RING_OK;
    return train_fail(
        RING_ERR_CONFIG,
        "the model %s outputs %s for a sample, but there are %d classes: its last layer "
        "must be linear with %d features",
        model->name, shape_text(out, text), DATASET_CLASSES, DATASET_CLASSES);
}

/* For a text, a pass has as many samples as have EVALUATION_BATCH tokens together. */
static size_t evaluation_rows(const model_spec *spec)
{
    if (model_spec_words(spec) == 0)
        return EVALUATION_BATCH;
    return spec->input.dim[0] < EVALUATION_BATCH ? EVALUATION_BATCH / spec->input.dim[0] : 1;
}

/* Offloaded parameters are all read when they are needed, so none of them is persistent. */
static size_t persistent_most(const train_config *config)
{
    const bool in_file = config->offload.params.device == OFFLOAD_NVME;
    return in_file ? 0 : (size_t)config->stage3_param_persistence_threshold;
}

/* DeepSpeed's default size would put all parameters of a small network into one bucket, whose
 * reduction could not overlap with any computation. So the size is limited here. */
static size_t bucket_bytes(const train_config *config)
{
    const long wanted = config->reduce_bucket_size;
    const long most = wanted > 0 && wanted < ZERO_BUCKET_ELEMENTS ? wanted : ZERO_BUCKET_ELEMENTS;
    return (size_t)most * sizeof(float);
}

/* Plans the model and its partition.
 * @param spec  all stages of the network
 * @param part  this rank's stage; without a pipeline the same as @p spec */
static ring_status plan_stage(train_engine *engine, const model_spec *spec, const model_spec *part,
                              size_t samples_max)
{
    const train_config *config = engine->config;
    const size_t micro = (size_t)config->micro_batch;
    const size_t most = micro < samples_max ? micro : samples_max;
    engine->words = model_spec_words(spec);
    engine->evaluation_rows = evaluation_rows(spec);
    const size_t batch = most > engine->evaluation_rows ? most : engine->evaluation_rows;
    const int slots = pipe_slots(&engine->pipeline.place, (int)config->accumulation);
    model_spec kept = *part;
    kept.interval = (int)config->pipeline.interval;
    RING_TRY(model_measure(&engine->model, &kept, batch, slots));
    if (pipeline_is_last(&engine->pipeline) && !spec->any_output)
        RING_TRY(check_output(&engine->model, engine->words));
    const partition_rules rules = {.alignment = engine->model.place->alignment,
                                   .bucket_bytes = bucket_bytes(config),
                                   .persistent_most = persistent_most(config),
                                   .persistent_all = (size_t)
                                                         config->stage3_model_persistence_threshold,
                                   .broadcasts = !config->allgather_partitions,
                                   .ahead_most = (size_t)config->stage3_prefetch_bucket_size,
                                   .live_most = (size_t)config->stage3_max_live_parameters};
    return partition_create(&engine->partition, &engine->model, &rules, engine->ranks);
}

/* Cuts the network into pipeline stages and plans this rank's stage. */
static ring_status cut_and_plan(train_engine *engine, const model_spec *spec, size_t samples_max)
{
    model_spec part = {0};
    ring_status status = pipeline_create(&engine->pipeline, &engine->config->pipeline,
                                         engine->pipeline.place, engine->comms.pipe, spec, &part);
    if (status == RING_OK)
        status = plan_stage(engine, spec, &part, samples_max);
    model_spec_free(&part);
    return status;
}

ring_status engine_plan(train_engine *engine, const model_spec *spec, size_t samples_max)
{
    if (has_tensor_ranks(engine)) {
        RING_TRY(tensor_parallel_create(&engine->tensor, spec));
        spec = &engine->tensor.own;
    }
    return has_pipeline(engine) ? cut_and_plan(engine, spec, samples_max)
                                : plan_stage(engine, spec, spec, samples_max);
}

/* @return labels of @p rows samples. They follow from the output of the whole network, since a
 * stage's output may have another shape. */
static size_t labels_of(const train_engine *engine, size_t rows)
{
    return rows * shape_rows(&engine_network(engine)->output);
}

/* Allocates a buffer of images for each slot. They are separate allocations, because the reader
 * swaps them with its own. */
static ring_status create_images(train_engine *engine)
{
    const train_model *model = &engine->model;
    const size_t bytes = model->max_batch * shape_count(&model->input) * sizeof(float);
    const size_t slots = (size_t)model->slot_count;
    RING_TRY(train_alloc((void **)&engine->images, slots * sizeof *engine->images, "a batch"));
    for (size_t s = 0; s < slots; s++)
        RING_TRY(train_alloc((void **)&engine->images[s], bytes, "a batch"));
    return RING_OK;
}

/* Allocates copies of the batch at another place than the host, and room for outputs on the host.
 */
static ring_status create_placed(train_engine *engine, size_t labels)
{
    const train_model *model = &engine->model;
    const nn_place *place = model->place;
    placed_batch *batch = &engine->placed;
    const size_t rows = model->max_batch;
    RING_TRY(place->alloc(place, (void **)&batch->images,
                          rows * shape_count(&model->input) * sizeof(float), "a batch"));
    RING_TRY(place->alloc(place, (void **)&batch->labels, labels, "a batch"));
    RING_TRY(place->alloc(place, (void **)&batch->samples, rows * sizeof(uint32_t), "a batch"));
    RING_TRY(place->alloc(place, (void **)&batch->loss, sizeof(double), "the loss"));
    return train_alloc((void **)&batch->outputs,
                       2 * rows * shape_count(&model->output) * sizeof(float), "outputs");
}

static ring_status create_batch(train_engine *engine)
{
    const train_model *model = &engine->model;
    const size_t labels = labels_of(engine, model->max_batch) * sizeof(uint32_t);
    const int stages = engine->pipeline.place.stages, tensors = engine->tensor.ranks;
    const size_t sums = (size_t)(stages > tensors ? stages : tensors) * (size_t)engine->ranks;
    if (pipeline_is_first(&engine->pipeline))
        RING_TRY(create_images(engine));
    RING_TRY(train_alloc((void **)&engine->labels, labels, "a batch"));
    if (!model->place->is_host)
        RING_TRY(create_placed(engine, labels));
    RING_TRY(train_alloc((void **)&engine->norm_sums, sums * sizeof(double), "the norm"));
    return check_ring(engine, ring_mem_alloc((void **)&engine->scalars, sizeof *engine->scalars));
}

/* Places parameters, gradients and the optimiser's states in memory or in files. */
static ring_status allocate_states(train_engine *engine)
{
    const train_config *config = engine->config;
    const train_partition *partition = &engine->partition;
    const size_t updated = partition->elements[engine->zero_stage > 0 ? LAYOUT_OWN : LAYOUT_FULL];
    float *states[OPTIMIZER_STATES] = {NULL};
    zero_memory_plan(&engine->memory, partition, &config->precision, engine->zero_stage,
                     engine->rank);
    offload_plan(&config->offload, &engine->memory);
    RING_TRY(offload_open(&engine->offload, config, &engine->memory, updated, states));
    RING_TRY(zero_memory_allocate(&engine->memory, &engine->model));
    if (states[0] == NULL)
        return optimizer_create(&engine->optimizer, engine->model.place, &config->optimizer,
                                updated);
    optimizer_create_at(&engine->optimizer, &config->optimizer, updated, states);
    return RING_OK;
}

/* Draws the parameters of the whole network, and keeps the share of this tensor rank. */
static ring_status draw_parts(train_engine *engine, uint64_t seed)
{
    float *all;
    RING_TRY(train_alloc((void **)&all, engine->partition.elements[LAYOUT_FULL] * sizeof *all,
                         "initial parameters"));
    const ring_status status = tensor_parallel_init(&engine->tensor, &engine->model.tensors, seed,
                                                    all);
    if (status == RING_OK)
        zero_memory_fill(&engine->memory, all);
    free(all);
    pipeline_place(&engine->pipeline, &engine->model);
    return status;
}

/* Draws the parameters of all stages in order, and keeps those of this rank's stage, so that they
 * do not depend on the number of stages. */
static ring_status draw_params(train_engine *engine, uint64_t seed)
{
    train_pipeline *pipeline = &engine->pipeline;
    train_model *model = &engine->model;
    float *all;
    RING_TRY(zero_memory_open(&engine->memory, model, &all));
    pipeline_place(pipeline, model);
    model_init(has_pipeline(engine) ? &pipeline->whole : model, seed);
    zero_memory_keep(&engine->memory, model, all);
    pipeline_place(pipeline, model);
    return RING_OK;
}

static ring_status create_states(train_engine *engine, uint64_t seed)
{
    const train_partition *partition = &engine->partition;
    engine->overflow = overflow_start(&engine->config->precision);
    RING_TRY(allocate_states(engine));
    RING_TRY(optimizer_group(&engine->optimizer, &engine->model.tensors));
    if (has_pipeline(engine))
        pipeline_find(&engine->pipeline, &engine->model, partition);
    if (!has_tensor_ranks(engine))
        return draw_params(engine, seed);
    tensor_parallel_mark(&engine->tensor, &engine->model.tensors);
    return draw_parts(engine, seed);
}

/* Makes room for the works of a schedule with @p count instructions. */
static ring_status make_room(train_engine *engine, int count)
{
    if (count <= engine->work_room)
        return RING_OK;
    free(engine->works);
    free(engine->runs);
    engine->runs = NULL;
    engine->work_room = count;
    RING_TRY(train_alloc((void **)&engine->works, (size_t)count * sizeof *engine->works,
                         "an update's works"));
    return train_alloc((void **)&engine->runs, (size_t)count * sizeof *engine->runs,
                       "an update's works");
}

static ring_status create_schedules(train_engine *engine)
{
    const long most = engine->config->accumulation;
    RING_TRY(train_alloc((void **)&engine->updates, (size_t)most * sizeof *engine->updates,
                         "the schedules"));
    if (has_pipeline(engine))
        RING_TRY(schedule_pipe_forward(&engine->evaluation, &engine->partition, engine->zero_stage,
                                       &engine->pipeline.place));
    else
        RING_TRY(schedule_forward(&engine->evaluation, &engine->partition, engine->zero_stage));
    return make_room(engine, engine->evaluation.count);
}

ring_status engine_check_place(const nn_place *place, const train_config *config, int ranks)
{
    const precision_config *precision = &config->precision;
    if (place == NULL || place->is_host)
        return RING_OK;
    if (ranks > 1)
        return train_fail(RING_ERR_UNSUPPORTED,
                          "%s: training on a GPU needs a single rank, but there are %d",
                          place->name, ranks);
    if (precision->params != RING_FLOAT32 || precision->grads != RING_FLOAT32 ||
        precision->wire != RING_FLOAT32)
        return train_fail(RING_ERR_UNSUPPORTED,
                          "%s: training on a GPU needs float32; remove fp16, bf16 and "
                          "communication_data_type from the configuration",
                          place->name);
    if (config->offload.params.device == OFFLOAD_NVME ||
        config->offload.states.device == OFFLOAD_NVME)
        return train_fail(RING_ERR_UNSUPPORTED, "%s: offload to NVMe is not supported on a GPU",
                          place->name);
    return RING_OK;
}

static ring_status create_local(train_engine *engine, const model_spec *spec, size_t samples_max,
                                uint64_t seed)
{
    RING_TRY(engine_check_place(spec->place, engine->config, ring_comm_size(engine->world)));
    RING_TRY(engine_plan(engine, spec, samples_max));
    RING_TRY(model_allocate(&engine->model));
    RING_TRY(create_batch(engine));
    RING_TRY(create_states(engine, seed));
    return create_schedules(engine);
}

ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max, uint64_t seed)
{
    const train_grid grid = grid_place(ring_comm_size(comm), ring_comm_rank(comm),
                                       (int)config->pipeline.stages, (int)config->tensor_ranks);
    *engine = (train_engine){.world = comm,
                             .config = config,
                             .loss = loss,
                             .seed = seed,
                             .ranks = grid.shares,
                             .rank = grid.share,
                             .zero_stage = grid.shares > 1 ? (int)config->zero_stage : 0,
                             .tensor = {.ranks = grid.tensors, .rank = grid.tensor},
                             .pipeline.place = {grid.stages, grid.stage}};
    RING_TRY(grid_join(&grid, comm, &engine->comms));
    engine->comm = engine->comms.data;
    engine->tensor.comm = engine->comms.tensor;
    RING_TRY(agree(comm, create_local(engine, spec, samples_max, seed)));
    return pipeline_join(&engine->pipeline);
}

ring_status engine_read_ahead(train_engine *engine, int threads)
{
    const train_model *model = &engine->model;
    const size_t rows = model->max_batch;
    if (threads == 0)
        return RING_OK;
    return reader_start(&engine->reader, threads,
                        engine->images != NULL ? rows * shape_count(&model->input) : 0,
                        labels_of(engine, rows));
}

void engine_destroy(train_engine *engine)
{
    const long most = engine->config != NULL ? engine->config->accumulation : 0;
    const nn_place *place = engine->model.place != NULL ? engine->model.place : &place_host;
    (void)place->settle(place); /* copies from the buffers that are freed here */
    if (engine->deferred.opened)
        place->updates->close(place);
    for (long m = 0; m < most && engine->updates != NULL; m++)
        schedule_free(&engine->updates[m]);
    free(engine->updates);
    schedule_free(&engine->evaluation);
    free(engine->works);
    free(engine->runs);
    free(engine->norm_sums);
    free(engine->gathered);
    free(engine->whole);
    free(engine->united);
    reader_stop(engine->reader);
    for (int s = 0; s < engine->model.slot_count && engine->images != NULL; s++)
        free(engine->images[s]);
    free(engine->images);
    free(engine->labels);
    place->release(place, engine->placed.images);
    place->release(place, engine->placed.labels);
    place->release(place, engine->placed.samples);
    place->release(place, engine->placed.loss);
    free(engine->placed.outputs);
    ring_mem_free(engine->scalars);
    optimizer_destroy(&engine->optimizer);
    zero_memory_free(&engine->memory);
    offload_close(&engine->offload);
    partition_free(&engine->partition);
    model_destroy(&engine->model);
    pipeline_destroy(&engine->pipeline);
    tensor_parallel_destroy(&engine->tensor);
    grid_leave(&engine->comms);
    *engine = (train_engine){0};
}

/* ---- Updates ------------------------------------------------------------------------------- */

/* The last update of an epoch may have fewer micro-batches than the others. */
ring_status engine_schedule(train_engine *engine, int micro_batches,
                            const update_schedule **schedule)
{
    update_schedule *found = &engine->updates[micro_batches - 1];
    *schedule = found;
    if (found->count > 0)
        return RING_OK;
    if (has_pipeline(engine))
        RING_TRY(schedule_1f1b(found, &engine->partition, engine->zero_stage,
                               &engine->pipeline.place, micro_batches));
    else
        RING_TRY(schedule_update(found, &engine->partition, engine->zero_stage, micro_batches));
    return make_room(engine, found->count);
}

static double spent(const train_engine *engine, update_kind kind)
{
    return engine->times.busy[kind] + engine->times.waited[kind];
}

static double seconds_of_passes(const train_engine *engine)
{
    return spent(engine, UPDATE_LOAD) + spent(engine, UPDATE_FORWARD) +
           spent(engine, UPDATE_BACKWARD);
}

static double seconds_after_passes(const train_engine *engine)
{
    return spent(engine, UPDATE_CLIP) + spent(engine, UPDATE_OPTIMIZE) +
           spent(engine, UPDATE_GATHER);
}

/* Runs the update, and adds its times to engine->busy and engine->span. */
static ring_status run_timed(train_engine *engine, const update_schedule *schedule,
                             update_batch *batch)
{
    const double busy = seconds_of_passes(engine), after = seconds_after_passes(engine),
                 start = train_now();
    RING_TRY(update_run(engine, schedule, batch));
    RING_TRY(offload_leave(&engine->offload, &engine->config->offload, engine->world));
    if (engine->optimizer.step == 1)
        return RING_OK;
    engine->busy += seconds_of_passes(engine) - busy;
    engine->span += train_now() - start - (seconds_after_passes(engine) - after);
    return RING_OK;
}

engine_share engine_share_of(const data_shares *shares, const train_sampler *sampler, int share,
                             size_t update)
{
    const size_t samples = shares_taken(shares, share, update);
    const size_t begin = samples > 0 ? shares_begin(shares, share, update) : 0;
    engine_share found = {.order = sampler->order + begin,
                          .samples = samples,
                          .micro = shares->micro[share],
                          .total = shares_total(shares, update),
                          .micro_batches = shares_micro_batches(shares, update)};
    if (update + 1 < shares_left(shares))
        found.next_samples = shares_taken(shares, share, update + 1);
    if (found.next_samples > 0)
        found.next = sampler->order + shares_begin(shares, share, update + 1);
    return found;
}

/* Runs an update to its end. */
static ring_status update_now(train_engine *engine, const update_schedule *schedule,
                              const train_dataset *dataset, const engine_share *share, double lr,
                              engine_result *result)
{
    update_batch batch = update_batch_of(engine, dataset, share);
    engine->scalars->lr = lr;
    const ring_status status = run_timed(engine, schedule, &batch);
    *result = batch.result;
    return status;
}

ring_status engine_keep_samples(train_engine *engine, const train_dataset *dataset)
{
    bool defers;
    if (dataset->images.data == NULL || dataset->source != NULL || dataset->token_bytes > 0)
        return RING_OK;
    engine->deferred.kept = dataset;
    return deferred_prepare(engine, dataset, &defers);
}

ring_status engine_submit(train_engine *engine, const train_dataset *dataset,
                          const engine_share *share, double lr)
{
    const update_schedule *schedule;
    bool defers;
    RING_TRY(engine_schedule(engine, share->micro_batches, &schedule));
    RING_TRY(deferred_prepare(engine, dataset, &defers));
    if (defers)
        return deferred_submit(engine, schedule, dataset, share, lr);
    RING_TRY(update_now(engine, schedule, dataset, share, lr, &engine->computed));
    engine->has_computed = true;
    return RING_OK;
}

ring_status engine_collect(train_engine *engine, bool wait, engine_result *result, bool *found)
{
    if (!engine->has_computed)
        return deferred_collect(engine, wait, result, found);
    *result = engine->computed;
    *found = true;
    engine->has_computed = false;
    return RING_OK;
}

ring_status engine_update_share(train_engine *engine, const train_dataset *dataset,
                                const engine_share *share, double lr, engine_result *result)
{
    const update_schedule *schedule;
    bool defers, found;
    RING_TRY(engine_schedule(engine, share->micro_batches, &schedule));
    RING_TRY(deferred_prepare(engine, dataset, &defers));
    if (!defers)
        return update_now(engine, schedule, dataset, share, lr, result);
    *result = (engine_result){.samples = share->total};
    const ring_status status = deferred_submit(engine, schedule, dataset, share, lr);
    result->unloaded = engine->deferred.unloaded;
    RING_TRY(status);
    return deferred_collect(engine, true, result, &found);
}

ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result)
{
    const size_t micro = (size_t)engine->config->micro_batch;
    const engine_share share = {.order = order,
                                .samples = samples,
                                .micro = micro,
                                .total = samples * (size_t)engine->ranks,
                                .micro_batches = (int)((samples + micro - 1) / micro)};
    return engine_update_share(engine, dataset, &share, lr, result);
}

/* ---- Parameters ---------------------------------------------------------------------------- */

/* Brings this rank's part of a bucket's parameters and masters into memory if they are in a file.
 * @return false if the disk has failed. */
static bool fetch_params(train_engine *engine, int bucket)
{
    const zero_memory *memory = &engine->memory;
    const zero_array *arrays[] = {zero_array_of(memory, ZERO_MASTERS),
                                  zero_array_of(memory, ZERO_PARAMS)};
    bool fetched = true;
    for (int a = 0; a < 2 && fetched; a++)
        fetched = offload_fetch(&engine->offload, zero_owned(memory, arrays[a], bucket),
                                zero_owned_count(memory, bucket) * precision_size(arrays[a]->type),
                                false);
    return fetched;
}

/* Gathers a bucket's parameters in float32 into engine->gathered. */
static ring_status gather_params(train_engine *engine, int bucket)
{
    const zero_memory *memory = &engine->memory;
    const partition_bucket *at = &engine->partition.buckets[bucket];
    const size_t before = engine->zero_stage > 0 ? (size_t)engine->rank * at->part : 0;
    float *whole = engine->gathered + at->at[LAYOUT_FULL];
    if (!engine->model.place->is_host) {
        engine->model.place->read(engine->model.place, whole, casts_begin_step(memory, bucket),
                                  zero_owned_count(memory, bucket) * sizeof(float));
        return engine->model.place->settle(engine->model.place);
    }
    if (fetch_params(engine, bucket))
        memcpy(whole + before, casts_begin_step(memory, bucket),
               zero_owned_count(memory, bucket) * sizeof(float));
    if (engine->zero_stage == 0)
        return RING_OK;
    return check_ring(engine, ring_all_gather(whole + before, whole, at->part, RING_FLOAT32,
                                              engine->comm, NULL));
}

/* Allocates an array of @p elements parameters the first time. It is kept for the next call. */
static ring_status make_params(const train_engine *engine, float **params, size_t elements)
{
    if (*params != NULL)
        return RING_OK;
    return agree(engine->world,
                 train_alloc((void **)params, elements * sizeof(float), "all parameters"));
}

/* Gathers the parameters of this rank's stage from its data-parallel ranks, or returns the engine's
 * own array if that has all of them.
 * @param[out] params  by the offsets of engine->model.tensors. */
static ring_status gather_split(train_engine *engine, const float **params)
{
    const train_partition *partition = &engine->partition;
    const zero_array *masters = zero_array_of(&engine->memory, ZERO_MASTERS);
    *params = (const float *)(const void *)masters->data;
    if (masters->layout == LAYOUT_FULL && !masters->outside && engine->model.place->is_host)
        return RING_OK;
    RING_TRY(make_params(engine, &engine->gathered, partition->elements[LAYOUT_FULL]));
    for (int b = 0; b < partition->count; b++)
        RING_TRY(gather_params(engine, b));
    *params = engine->gathered;
    return offload_leave(&engine->offload, &engine->config->offload, engine->world);
}

/* Gathers the parameters of all stages of the pipeline.
 * @param[out] params  by the offsets of engine_staged_network(). */
static ring_status gather_stages(train_engine *engine, const float **params)
{
    if (!has_pipeline(engine))
        return gather_split(engine, params);
    const float *own;
    RING_TRY(gather_split(engine, &own));
    RING_TRY(make_params(engine, &engine->whole, engine_staged_network(engine)->tensors.elements));
    *params = engine->whole;
    return pipeline_gather(&engine->pipeline, &engine->model.tensors, own, engine->whole);
}

ring_status engine_params(train_engine *engine, const float **params)
{
    RING_TRY(gather_stages(engine, params));
    if (!has_tensor_ranks(engine))
        return RING_OK;
    const float *own = *params;
    RING_TRY(make_params(engine, &engine->united, engine_network(engine)->tensors.elements));
    *params = engine->united;
    return tensor_parallel_gather(&engine->tensor, &engine_staged_network(engine)->tensors, own,
                                  engine->united);
}

/* A tensor has a number that is not finite if its sum of squares is not finite: a sum of squares of
 * finite float32 does not overflow float64. */
static ring_status find_not_finite(const train_engine *engine, const float *params)
{
    const tensor_table *tensors = &engine->model.tensors;
    for (int i = 0; i < tensors->count; i++) {
        const train_tensor *tensor = &tensors->list[i];
        if (!isfinite(place_host.sum_squares(&place_host, params + tensor->offset, tensor->count)))
            return train_fail(RING_ERR_USAGE,
                              "parameter %s is not finite after update %ld; " ADVICE, tensor->name,
                              engine->optimizer.step);
    }
    return RING_OK;
}

ring_status engine_check_params(train_engine *engine)
{
    const float *params;
    RING_TRY(gather_split(engine, &params));
    return agree(engine->world, find_not_finite(engine, params));
}

size_t engine_state_bytes(const train_engine *engine)
{
    return zero_kept_bytes(&engine->memory) + optimizer_bytes(&engine->optimizer);
}

size_t engine_batch_bytes(const train_engine *engine)
{
    const train_model *model = &engine->model;
    const size_t ahead = engine->reader != NULL;
    const bool takes_images = pipeline_is_first(&engine->pipeline);
    const size_t slots = takes_images ? (size_t)model->slot_count + ahead : 0;
    return model->max_batch * (slots * shape_count(&model->input) * sizeof(float) +
                               (1 + ahead) * labels_of(engine, 1) * sizeof(*engine->labels));
}

/* ---- Evaluation ---------------------------------------------------------------------------- */

ring_status engine_read_outputs(const train_engine *engine, size_t rows, const float **outputs)
{
    const train_model *model = &engine->model;
    *outputs = model_output(model, 0);
    if (model->place->is_host)
        return RING_OK;
    model->place->read(model->place, engine->placed.outputs, *outputs,
                       rows * shape_count(&model->output) * sizeof(float));
    *outputs = engine->placed.outputs;
    return model->place->settle(model->place);
}

/* Runs the forward pass of samples @p begin to @p begin + @p rows - 1, at most evaluation_rows.
 * @param[in,out] failure  this rank's failure to load samples; it does not end the collective pass
 */
static ring_status forward_rows(train_engine *engine, const train_dataset *dataset, size_t begin,
                                size_t rows, train_failure *failure)
{
    uint32_t order[EVALUATION_BATCH];
    for (size_t i = 0; i < rows; i++)
        order[i] = (uint32_t)(begin + i);
    update_batch batch = {.dataset = dataset,
                          .order = order,
                          .samples = rows,
                          .micro = engine->evaluation_rows,
                          .failure = *failure};
    const ring_status status = update_run(engine, &engine->evaluation, &batch);
    *failure = batch.failure;
    return status;
}

/* Adds up the scores of samples @p begin to @p end - 1. All ranks must run the same number of
 * @p batches, since stage 3 of ZeRO gathers parameters in each of them. */
static ring_status add_scores(train_engine *engine, const train_dataset *dataset, size_t begin,
                              size_t end, size_t batches, engine_score *sum, train_failure *failure)
{
    train_model *model = &engine->model;
    const size_t most = engine->evaluation_rows, classes = shape_width(&model->output);
    for (size_t b = 0; b < batches; b++) {
        const size_t left = end - begin, rows = left < most ? left : most;
        const size_t labels = rows * shape_rows(&model->output);
        RING_TRY(forward_rows(engine, dataset, begin, rows, failure));
        begin += rows;
        if (failure->status != RING_OK || !pipeline_is_last(&engine->pipeline) ||
            engine->tensor.rank > 0)
            continue;
        const float *outputs;
        float *grads = model_value_grad(model, 0, model->node_count - 1);
        RING_TRY(engine_read_outputs(engine, rows, &outputs));
        if (!model->place->is_host)
            grads = engine->placed.outputs + rows * shape_count(&model->output);
        sum->accuracy += (double)loss_correct(outputs, engine->labels, labels, classes);
        sum->loss += loss_sum(engine->loss, outputs, engine->labels, labels, classes, 1.0, grads);
    }
    return RING_OK;
}

ring_status engine_evaluate(train_engine *engine, const train_dataset *dataset, engine_score *score)
{
    const size_t ranks = (size_t)engine->ranks, rank = (size_t)engine->rank;
    const size_t begin = dataset->count * rank / ranks;
    const size_t end = dataset->count * (rank + 1) / ranks;
    const size_t most = (dataset->count + ranks - 1) / ranks;
    const size_t rows = engine->evaluation_rows;
    engine_score sum = {0};
    train_failure failure = {RING_OK};
    RING_TRY(add_scores(engine, dataset, begin, end, (most + rows - 1) / rows, &sum, &failure));
    RING_TRY(agree(engine->world, train_failure_tell(&failure)));
    RING_TRY(offload_leave(&engine->offload, &engine->config->offload, engine->world));
    RING_TRY(train_ring(engine->world, ring_all_reduce(&sum, &sum, 2, RING_FLOAT64, RING_SUM,
                                                       engine->world, NULL)));
    const size_t labels = dataset->count * shape_rows(&engine_network(engine)->output);
    *score = (engine_score){sum.accuracy / (double)labels, sum.loss / (double)labels};
    return RING_OK;
}

ring_status engine_outputs(train_engine *engine, const train_dataset *dataset, size_t begin,
                           size_t rows, float *outputs)
{
    const size_t count = rows * shape_count(&engine_network(engine)->output);
    train_failure failure = {RING_OK};
    RING_TRY(forward_rows(engine, dataset, begin, rows, &failure));
    RING_TRY(train_failure_tell(&failure));
    const float *computed;
    if (pipeline_is_last(&engine->pipeline)) {
        RING_TRY(engine_read_outputs(engine, rows, &computed));
        memcpy(outputs, computed, count * sizeof *outputs);
    }
    if (!has_pipeline(engine))
        return RING_OK;
    return train_ring(engine->comms.pipe,
                      ring_broadcast(outputs, outputs, count, RING_FLOAT32,
                                     engine->pipeline.place.stages - 1, engine->comms.pipe, NULL));
}
