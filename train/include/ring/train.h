/* SPDX-License-Identifier: Apache-2.0
 *
 * libringtrain: trains a network as a DeepSpeed configuration describes, on the ranks of a
 * communicator. The calls mirror DeepSpeed's engine, so that a PyTorch training loop can be
 * translated line by line:
 *
 *     ring_train *engine;
 *     ring_train_options options = RING_TRAIN_OPTIONS_INIT;
 *     options.config = "deeps.json";
 *     options.data = "mnist";
 *     if (ring_train_create(&engine, comm, &options) != RING_OK)
 *         return puts(ring_train_error());
 *     while (ring_train_next(engine, &batch, &more) == RING_OK && more) {
 *         ring_train_forward(engine, &batch, &outputs);
 *         ring_train_loss(engine, batch.labels, &loss);
 *         ring_train_backward(engine);
 *         ring_train_step(engine);
 *     }
 *     ring_train_destroy(engine);
 *
 * Rules that hold everywhere:
 *  - Calls marked collective are made by all ranks of the communicator, in the same order. None
 *    blocks for ever: they end as libring's calls do.
 *  - A failure is a status and a line of text, ring_train_error(). RING_ERR_USAGE and
 *    RING_ERR_ARGUMENT come before anything has changed: the engine is as it was. A failure that
 *    other ranks cannot know of ends the communicator, so that nobody waits.
 *  - What an update computes is bit for bit what the program ringtrain computes with the same
 *    configuration, data and seed.
 *  - An engine is used by one thread at a time. Numbers are float32, arrays are row-major.
 */
#ifndef RING_TRAIN_H
#define RING_TRAIN_H

#include <ring/ring.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** An engine: a network, its optimiser, and this rank's part of both. */
typedef struct ring_train ring_train;

/** @return what went wrong in the calling thread's latest failure of this library; "" if nothing
 *  did. Valid until the next one. */
const char *ring_train_error(void);

/* ---- Data ---------------------------------------------------------------------- */

/** Fills samples. Called by the thread that trains; with options.workers by several at once.
 *  @param samples  [rows] their numbers, from 0
 *  @param[out] inputs  [rows, input of the model]; NULL: labels alone are wanted
 *  @param[out] labels  [rows, labels of a sample], each below the outputs of a label
 *  @return 0; anything else fails the call that needs the samples: ring_train_train_batch(),
 *  ring_train_evaluate() on all ranks, and the same samples come with the next call;
 *  ring_train_next() by ending the communicator. */
typedef int (*ring_train_take)(void *context, const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/** Samples that the caller has. The same on all ranks, each of which takes its part. */
typedef struct ring_train_data {
    size_t count; /**< samples; 0: there are none */
    ring_train_take take;
    void *context; /**< of take */
} ring_train_data;

/* ---- Layers of the caller's ---------------------------------------------------- */

#define RING_TRAIN_INPUT_DIMS 3
#define RING_TRAIN_PARAM_DIMS 4
#define RING_TRAIN_OP_PARAMS 2

/** One sample: [features], [tokens, features] or [channels, rows, columns]. */
typedef struct ring_train_shape {
    size_t dim[RING_TRAIN_INPUT_DIMS];
    int dims;
} ring_train_shape;

typedef enum ring_train_start {
    RING_TRAIN_ZEROS = 0,
    RING_TRAIN_ONES = 1,
    RING_TRAIN_UNIFORM = 2, /**< within 1 / sqrt(fan_in), as PyTorch's layers */
    RING_TRAIN_NORMAL = 3   /**< of mean 0 and its deviation */
} ring_train_start;

/** A parameter of a layer. */
typedef struct ring_train_param {
    const char *name; /**< "weight": behind the layer's own, "3.weight"; outlives the engine */
    size_t dim[RING_TRAIN_PARAM_DIMS];
    int dims;
    ring_train_start start;
    size_t fan_in;    /**< of RING_TRAIN_UNIFORM */
    double deviation; /**< of RING_TRAIN_NORMAL */
    int no_decay;     /**< 1: of the group without weight decay ("param_groups") */
} ring_train_param;

/** One batch through one use of a layer. */
typedef struct ring_train_pass {
    void *context; /**< ring_train_op.context */
    size_t rows;
    const ring_train_shape *in_shape, *out_shape;
    const float *in;                           /**< [rows, in_shape] */
    float *out;                                /**< [rows, out_shape]; written by forward, and
                                                    read by the others */
    const float *params[RING_TRAIN_OP_PARAMS]; /**< as shape() says */
    const float *out_grad;                     /**< [rows, out_shape] */
    float *in_grad;                            /**< [rows, in_shape]; replaced by inputs() */
    float *grads[RING_TRAIN_OP_PARAMS];        /**< params() adds to them */
} ring_train_pass;

/** A layer of the caller's, a "type" in lists of layers. Its functions compute from their arguments
 *  alone, so that all ranks do alike. Start from RING_TRAIN_OP_INIT. */
typedef struct ring_train_op {
    size_t size;      /**< sizeof(ring_train_op) */
    const char *name; /**< the type: 1 to 31 letters, no built-in layer's */
    /** Says what follows from the input's shape: *out, and @p params [*count]. Both are zeroes
     *  before. @return 0, or anything else if the layer does not take such an input. */
    int (*shape)(void *context, const ring_train_shape *in, ring_train_shape *out,
                 ring_train_param params[RING_TRAIN_OP_PARAMS], int *count);
    void (*forward)(const ring_train_pass *pass);
    /** Backward: gradients of the parameters. NULL for a layer without. */
    void (*params)(const ring_train_pass *pass);
    /** Backward: gradients of the inputs. */
    void (*inputs)(const ring_train_pass *pass);
    void *context; /**< of all four; outlives the engine */
} ring_train_op;

#define RING_TRAIN_OP_INIT \
    { \
        sizeof(ring_train_op), NULL, NULL, NULL, NULL, NULL, NULL \
    }

/* ---- Engines ------------------------------------------------------------------- */

/** @return the learning rate of update @p update, from 1; updates that are skipped in 16 bits do
 *  not count. The same on all ranks. */
typedef double (*ring_train_schedule)(void *context, long update);

/** Told one line about a key of the configuration that has no effect here, or about a checkpoint
 *  that is not used. */
typedef void (*ring_train_note)(void *context, const char *text);

/** The definition of an engine. Start from RING_TRAIN_OPTIONS_INIT; members beyond `size` are taken
 *  as zero. All is borrowed for the call alone, except contexts and functions, which outlive the
 *  engine. */
typedef struct ring_train_options {
    size_t size;             /**< sizeof(ring_train_options) */
    const char *config;      /**< path of a DeepSpeed configuration, */
    const char *config_text; /**< or its text */
    const char *model;  /**< a name ("mlp") or FILE.json, as ringtrain --model takes; NULL: mlp */
    const char *layers; /**< or the text of such a file */
    const ring_train_op *ops; /**< [op_count] layers of the caller's, for both */
    size_t op_count;
    const char *loss;      /**< "mse" or "cross_entropy"; NULL: what suits the data, as ringtrain */
    const char *data;      /**< a folder with training and test samples, as ringtrain --data takes:
                                MNIST's four files, CIFAR-10's, or a text. Ranks of a host
                                read it once and share the memory; */
    ring_train_data train; /**< or the caller's samples; */
    ring_train_data test;  /**< neither: only ring_train_forward() with batches of the caller's */
    uint64_t seed;         /**< of parameters, order and dropout */
    ring_train_schedule schedule; /**< in place of the configuration's scheduler, and of all
                                       parameter groups; or NULL */
    void *schedule_context;
    ring_train_note note; /**< or NULL */
    void *note_context;
    const char *normalize; /**< of images in data: (byte / 255 - mean) / std, as torchvision's
                                Normalize. "0.1307/0.3081": all channels alike;
                                "0.5,0.4,0.3/0.25,0.25,0.25": each its own; NULL: byte / 255 */
    int workers;           /**< threads that take the next micro-batch of data or train while this
                                one is computed with, 0 to 256, as ringtrain --workers. The same
                                bits. They call take, several at once, each for other samples */
    int compat_ds_0_13;    /**< 1: as ringtrain --compat ds-0.13: no clipping by default, first
                                update at the optimiser's own rate, one order for all epochs */
    int warn_unknown;      /**< 1: unknown keys of the configuration are notes, not errors */
    int keep;              /**< checkpoints that ring_train_save() leaves in a folder, the newest
                                ones; 0: all */
    int loss_is_scaled;    /**< 1: what ring_train_own_loss() is given was divided by the
                                accumulation steps already, as a loop with `loss /= accum_iter`
                                has it */
} ring_train_options;

#define RING_TRAIN_OPTIONS_INIT \
    { \
        sizeof(ring_train_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, {0, NULL, NULL}, \
            {0, NULL, NULL}, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0 \
    }

/** Makes an engine. Collective. As deepspeed.initialize().
 *  @param comm  borrowed until ring_train_destroy(); the engine's alone meanwhile.
 *  @param[out] engine  to be given to ring_train_destroy(); NULL on failure, which all ranks have.
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_CONFIG (configuration, model, data, or ranks that
 *          were given different ones), RING_ERR_UNSUPPORTED, RING_ERR_MEMORY, RING_ERR_SYSTEM; or
 *          what ends a communicator. */
ring_status ring_train_create(ring_train **engine, ring_comm *comm,
                              const ring_train_options *options);

/** Frees it, whatever it was doing; before its communicator. NULL is allowed. */
void ring_train_destroy(ring_train *engine);

/** Properties of an engine, and its progress. */
typedef struct ring_train_info {
    size_t size;             /**< sizeof(ring_train_info), set by the caller */
    ring_train_shape input;  /**< of one sample */
    ring_train_shape output; /**< of one sample */
    size_t parameters;       /**< elements of all of them */
    int tensors;             /**< of which there are so many */
    long train_batch;        /**< samples of an update, on all ranks */
    size_t micro_batch;      /**< samples of a micro-batch, on this rank */
    int accumulation;        /**< micro-batches of an update */
    int zero_stage;          /**< as configured */
    int stages;              /**< of the pipeline; 1: none */
    long updates_per_epoch;  /**< 0 without data */
    long step;               /**< updates done: DeepSpeed's global_steps */
    long micro_steps;        /**< micro-batches that step() has taken */
    long skipped;            /**< updates skipped in 16 bits */
    int epoch;               /**< from 1 */
    int at_boundary;         /**< 1: the next ring_train_step() ends an update. As
                                  is_gradient_accumulation_boundary() */
    double lr;               /**< that the next update uses */
    double loss_scale;       /**< in fp16; else 1 */
    double loss;             /**< of the latest update: mean over its samples on all ranks */
    double grad_norm;        /**< of it, before clipping */
    size_t state_bytes;      /**< of parameters, gradients and optimiser on this rank */
    int shares;              /**< of the data: ranks that take samples of their own */
    int share;               /**< this rank's, from 0. Ranks of a pipeline's stages and tensor
                                  ranks with the same share take the same samples */
    int stage;               /**< of the pipeline, from 0 */
    int tensor_ranks;        /**< that compute a share of the layers each; 1: none */
    int tensor_rank;         /**< from 0 */
    size_t train_samples;    /**< of the engine's data, on all ranks; 0: there are none */
    size_t test_samples;
    size_t labels;            /**< of a sample: 1, or one for each row of the output */
    int applied;              /**< 1: the latest update changed the parameters; 0: it was skipped or
                                   dropped, or there was none. As was_step_applied() */
    double gradient_clipping; /**< largest norm; 0: gradients are not clipped */
    ring_dtype precision;     /**< of parameters in forward and backward: RING_FLOAT32,
                                   RING_FLOAT16 or RING_BFLOAT16 */
} ring_train_info;

/** Fills @p info up to its own size field. @return RING_OK or RING_ERR_ARGUMENT. Cheap. */
ring_status ring_train_get_info(const ring_train *engine, ring_train_info *info);

/** Sets the learning rate of the next updates, in place of any schedule; the same on all ranks.
 *  @param lr  0 or more; below 0: back to the schedule.
 *  @return RING_OK, RING_ERR_ARGUMENT. */
ring_status ring_train_set_lr(ring_train *engine, double lr);

/* ---- Micro-batch by micro-batch ------------------------------------------------ */

/** A micro-batch. Start from RING_TRAIN_BATCH_INIT, or take it from ring_train_next(). */
typedef struct ring_train_batch {
    size_t size; /**< sizeof(ring_train_batch) */
    size_t rows; /**< samples; the last micro-batch of an epoch may be short, or 0 on a rank that
                      has run out before the others */
    const float *inputs;     /**< [rows, input of the model] */
    const uint32_t *labels;  /**< [rows, labels of a sample]; not read by ring_train_forward() */
    const uint32_t *samples; /**< [rows] numbers of the samples, by which dropout draws; NULL: as
                                  they come */
} ring_train_batch;

#define RING_TRAIN_BATCH_INIT \
    { \
        sizeof(ring_train_batch), 0, NULL, NULL, NULL \
    }

/** The next micro-batch of this rank, in DistributedSampler's order: each epoch has its own,
 *  unless the configuration has "sampler_shuffle": false.
 *  @param[out] batch  in the engine's memory, until the next call; its size is set by the caller
 *  @param[out] more   0: the epoch is over, and the next call begins another one
 *  @return RING_OK; RING_ERR_USAGE: without data, in a pipeline, or before the micro-batch before
 *          went through forward, backward and step; RING_ERR_ARGUMENT. */
ring_status ring_train_next(ring_train *engine, ring_train_batch *batch, int *more);

/** Forward, as `outputs = engine(inputs)`. Collective.
 *  @param batch  borrowed until backward. Of ring_train_next(): the last update of an epoch ends
 *                with it. Or of the caller's, 1 to info.micro_batch rows: each counts as much as
 *                any other, however short (as in DeepSpeed). An update has the one or the other.
 *                Tensor ranks of one data-parallel rank are to be given the same samples.
 *  @param[out] outputs  [rows, output of the model], in the engine's memory until the next
 *                forward; NULL: not wanted
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: in a pipeline, or before what belongs
 *          behind the forward or backward before; or what ends a communicator. */
ring_status ring_train_forward(ring_train *engine, const ring_train_batch *batch,
                               const float **outputs);

/** The configured loss on these outputs, as `loss = criterion(outputs, labels)`, and its gradient.
 *  @param labels  [rows, labels of a sample]
 *  @param[out] loss  mean over the rows; or NULL. Not to be divided by accumulation steps.
 *  @return RING_OK; RING_ERR_USAGE: no forward before; RING_ERR_ARGUMENT: a label too large. */
ring_status ring_train_loss(ring_train *engine, const uint32_t *labels, double *loss);

/** Or a loss that the caller computes.
 *  @param loss  mean over the rows, for reports
 *  @param gradient  [rows, output of the model] of that by the outputs. Neither is to be divided by
 *  accumulation steps, unless options.loss_is_scaled says that both are.
 *  @return RING_OK; RING_ERR_USAGE: no forward before; RING_ERR_ARGUMENT. */
ring_status ring_train_own_loss(ring_train *engine, double loss, const float *gradient);

/** Backward from the loss, as `engine.backward(loss)`: gradients add up over the micro-batches of
 *  an update, and are summed over the ranks meanwhile as the stage of ZeRO wants. Collective.
 *  @return RING_OK; RING_ERR_USAGE: no loss before; or what ends a communicator. */
ring_status ring_train_backward(ring_train *engine);

/** As `engine.step()`: behind the last micro-batch of an update it clips gradients and updates the
 *  parameters, behind any other it only counts. Collective.
 *  @return RING_OK, also for an update that was skipped in 16 bits; RING_ERR_USAGE: no backward
 *          before, or a loss or gradient that is not finite (the update is dropped, on all ranks);
 *          or what ends a communicator. */
ring_status ring_train_step(ring_train *engine);

/** As `lr_scheduler.step()` behind `engine.step()`, which a loop may have: it changes nothing, as
 *  ring_train_step() has moved the schedule. The first call tells options.note so, if there is a
 *  schedule; DeepSpeed's moves a second time. @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_scheduler_step(ring_train *engine);

/** As `engine.no_sync()`: until it is called with 0, gradients of micro-batches only add up on each
 *  rank. So they do in any case but behind an update's last micro-batch; where that one comes
 *  meanwhile, ring_train_backward() refuses it, since no exchange would have happened.
 *  @param on  1 or 0. @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: from stage 2 of ZeRO on
 *  gradients are sent behind each micro-batch, and in a pipeline. */
ring_status ring_train_no_sync(ring_train *engine, int on);

/** Forgets the micro-batches of the update under way, as `optimizer.zero_grad()` in the middle: the
 *  next forward begins an update, and ring_train_next() gives the same samples once more. Between
 *  updates nothing is done. Collective: by all ranks behind the same call; waits for what is on the
 *  way. @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_drop(ring_train *engine);

/* ---- Whole updates ------------------------------------------------------------- */

/** One update on the engine's data, with or without a pipeline, as `engine.train_batch()`. Begins
 *  the next epoch by itself. Collective.
 *  @param[out] loss  mean over the samples of all ranks; or NULL
 *  @return RING_OK; RING_ERR_USAGE: without data, within an update, or not finite as in
 *          ring_train_step(); RING_ERR_USAGE, RING_ERR_ARGUMENT on all ranks: a callback failed on
 *          one, and no parameter has changed; or what ends a communicator. */
ring_status ring_train_train_batch(ring_train *engine, double *loss);

/** The test set, of which each rank takes a part. Collective.
 *  @param[out] loss, accuracy  means over all labels; each may be NULL
 *  @return RING_OK; RING_ERR_USAGE: without test data or a loss, or within an update; on all ranks
 *          what a callback of one failed with. */
ring_status ring_train_evaluate(ring_train *engine, double *loss, double *accuracy);

/** Outputs without training, as `engine.eval(); outputs = engine(inputs)`: nothing is drawn and
 *  nothing kept. Collective; one short exchange, and forward passes of up to 256 samples.
 *  Ranks may have other samples, and other numbers of them; but stages of a pipeline and tensor
 *  ranks of one data-parallel rank have the same.
 *  @param inputs  [rows, input of the model]; in a pipeline those of the first stage are read
 *  @param rows  any number; 0: this rank has none, and both may be NULL
 *  @param[out] outputs  [rows, output of the model] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: within an update; or what ends a
 *          communicator. */
ring_status ring_train_predict(ring_train *engine, const float *inputs, size_t rows,
                               float *outputs);

/** Means over all ranks in which each counts by its weight, its number of samples say: exact where
 *  ranks have batches of different sizes, which a mean of means is not. Collective; gathers
 *  count + 1 numbers of each rank, and sums them in the order of the ranks.
 *  @param[in,out] values  [count] this rank's means; the same on all ranks then
 *  @param weight  0 or more, of this rank; with 0 its values are not looked at
 *  @return RING_OK; on all ranks RING_ERR_ARGUMENT: a weight or an array is wrong on one, or no
 * rank has a weight above 0; or what ends a communicator. */
ring_status ring_train_mean(ring_train *engine, double *values, size_t count, double weight);

typedef enum ring_train_set { RING_TRAIN_SET_TRAIN = 0, RING_TRAIN_SET_TEST = 1 } ring_train_set;

/** Samples of the engine's data, as training and evaluation see them. Not collective, at any time.
 *  @param samples  [rows] numbers, below info.train_samples or info.test_samples
 *  @param[out] inputs  [rows, input of the model]; NULL: not wanted
 *  @param[out] labels  [rows, info.labels]
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: there is no such data, or the callback that
 *          fills samples failed. */
ring_status ring_train_samples(const ring_train *engine, ring_train_set set,
                               const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/* ---- Parameters and checkpoints ------------------------------------------------ */

/** Describes a tensor of parameters. @param index  from 0 to below info.tensors; tensors that share
 *  their values with an earlier one are not counted.
 *  @param[out] name  the engine's; as in PyTorch's state_dict(): "0.weight"
 *  @param[out] dim   [RING_TRAIN_PARAM_DIMS]; @param[out] dims, count  elements. Each may be NULL.
 *  @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_tensor(const ring_train *engine, int index, const char **name, size_t *dim,
                              int *dims, size_t *count);

/** Gathers a tensor from the ranks that own it, as the optimiser has it. Collective; costs as much
 *  as gathering all of them.
 *  @param[out] values  [count] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT: no such name or another count; RING_ERR_USAGE: within an
 *          update. */
ring_status ring_train_get_tensor(ring_train *engine, const char *name, float *values,
                                  size_t count);

/** Sets a tensor. To be called by all ranks with the same values [count]; sends nothing.
 *  @return as ring_train_get_tensor(). */
ring_status ring_train_set_tensor(ring_train *engine, const char *name, const float *values,
                                  size_t count);

/** Writes a checkpoint DIR/step-NNNNNNNN, which `ringtrain --resume` and ring_train_load() take, on
 *  any number of ranks. Collective.
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: within
 *          an update. */
ring_status ring_train_save(ring_train *engine, const char *dir);

/** Goes on from a checkpoint, or from the newest whole one in a folder of them: parameters,
 *  optimiser, schedule and place in the data. Ranks, stages of a pipeline, tensor ranks and stage
 *  of ZeRO may be others than those that saved it. Collective.
 *  @return as ring_train_save(); RING_ERR_CONFIG: it is of another model, seed or data. The engine
 *          is as it was unless RING_OK, or RING_ERR_SYSTEM where a disk fails while values are read
 *          that were whole before: then it has a part of them, and is to load again. */
ring_status ring_train_load(ring_train *engine, const char *path);

/** As ring_train_load() of a folder that may have no checkpoint yet, or not be there: then the
 *  engine stays as it is. For programs that are started again and again. Collective.
 *  @param[out] found  1: gone on from one; 0: there is none
 *  @return as ring_train_load(). */
ring_status ring_train_resume(ring_train *engine, const char *dir, int *found);

/** Writes the parameters alone, as the optimiser has them, to one safetensors file of float32 with
 *  the names of ring_train_tensor(): what `ringtrain export` makes of a checkpoint. As
 *  save_16bit_model(). Rank 0 writes it, complete or not at all. Collective; costs as much as
 *  ring_train_get_tensor().
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: within
 *          an update, or a parameter is not finite. */
ring_status ring_train_save_params(ring_train *engine, const char *path);

/** Sets all parameters from such a file, as `ringtrain --init`: names and shapes must be the
 *  model's; types may be float32, float16 and bfloat16. Optimiser, schedule and place in the data
 *  stay as they are. Collective; all ranks read the file.
 *  @return RING_OK; RING_ERR_CONFIG: it is of another model; RING_ERR_SYSTEM;
 *          RING_ERR_USAGE: within an update. */
ring_status ring_train_load_params(ring_train *engine, const char *path);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
