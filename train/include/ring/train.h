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
 * Rules that hold everywhere: - Calls marked collective must be made by all ranks of the
 * communicator, in the same order. They have the same deadlines as libring's calls, so none of them
 * blocks for ever. - A failure is a status and a line of text, ring_train_error(). RING_ERR_USAGE
 * and RING_ERR_ARGUMENT are returned before anything changes, so the engine is as it was. A failure
 * that other ranks cannot detect ends the communicator, so that they do not wait. - An update
 * computes the same bits as the program ringtrain with the same configuration, data and seed. -
 * Only one thread at a time may use an engine. Numbers are float32, arrays are row-major.
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

/** An engine holds a network, its optimiser, and this rank's part of both. */
typedef struct ring_train ring_train;

/** @return the text of the calling thread's latest failure in this library; "" if there was none.
 *  Valid until the next failure. */
const char *ring_train_error(void);

/* ---- Data ---------------------------------------------------------------------- */

/** Fills in samples. Called by the thread that trains, or with options.workers by several threads
 *  at once.
 *  @param samples  [rows] their numbers, from 0
 *  @param[out] inputs  [rows, input of the model]; NULL: labels alone are wanted
 *  @param[out] labels  [rows, labels of a sample], each below the outputs of a label
 *  @return 0; any other value fails the call that needs the samples. ring_train_train_batch() and
 *  ring_train_evaluate() fail on all ranks, and the next call requests the same samples;
 *  ring_train_next() ends the communicator. */
typedef int (*ring_train_take)(void *context, const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/** Samples that the caller provides. All ranks describe the same samples, and each takes its part
 *  of them. */
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
    const char *name; /**< "weight", which becomes "3.weight" in layer 3; must outlive the engine */
    size_t dim[RING_TRAIN_PARAM_DIMS];
    int dims;
    ring_train_start start;
    size_t fan_in;    /**< of RING_TRAIN_UNIFORM */
    double deviation; /**< of RING_TRAIN_NORMAL */
    int no_decay;     /**< 1: belongs to the group without weight decay ("param_groups") */
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

/** A layer that the caller implements, used as a "type" in lists of layers. Its functions must
 *  depend on their arguments only, so that all ranks compute the same. Start from
 *  RING_TRAIN_OP_INIT. */
typedef struct ring_train_op {
    size_t size;      /**< sizeof(ring_train_op) */
    const char *name; /**< the type: 1 to 31 letters, no built-in layer's */
    /** Derives *out and @p params [*count] from the input's shape. Both are zero on entry. @return
     *  0, or any other value if the layer does not accept the input. */
    int (*shape)(void *context, const ring_train_shape *in, ring_train_shape *out,
                 ring_train_param params[RING_TRAIN_OP_PARAMS], int *count);
    void (*forward)(const ring_train_pass *pass);
    /** Backward: gradients of the parameters. NULL for a layer without. */
    void (*params)(const ring_train_pass *pass);
    /** Backward: gradients of the inputs. */
    void (*inputs)(const ring_train_pass *pass);
    void *context; /**< passed to all four; must outlive the engine */
} ring_train_op;

#define RING_TRAIN_OP_INIT \
    { \
        sizeof(ring_train_op), NULL, NULL, NULL, NULL, NULL, NULL \
    }

/* ---- Engines ------------------------------------------------------------------- */

/** @return the learning rate of update @p update, counted from 1 without updates that are skipped
 *  in 16 bits. The same on all ranks. */
typedef double (*ring_train_schedule)(void *context, long update);

/** Called with a line of text about a key of the configuration that has no effect here, or about a
 *  checkpoint that is not used. */
typedef void (*ring_train_note)(void *context, const char *text);

/** The definition of an engine. Start from RING_TRAIN_OPTIONS_INIT; members beyond `size` are taken
 *  as zero. Everything is borrowed for the duration of the call, except contexts and functions,
 *  which must outlive the engine. */
typedef struct ring_train_options {
    size_t size;             /**< sizeof(ring_train_options) */
    const char *config;      /**< path of a DeepSpeed configuration, */
    const char *config_text; /**< or its text */
    const char *model;  /**< a name ("mlp") or FILE.json, as ringtrain --model takes; NULL: mlp */
    const char *layers; /**< or the text of such a file */
    const ring_train_op *ops; /**< [op_count] the caller's layers, for both */
    size_t op_count;
    const char
        *loss; /**< "mse" or "cross_entropy"; NULL: the loss that suits the data, as ringtrain */
    const char *data;      /**< a folder with training and test samples, as ringtrain --data takes:
                                MNIST's four files, CIFAR-10's, or a text. Ranks of a host
                                read it once and share the memory; */
    ring_train_data train; /**< or the caller's samples; */
    ring_train_data test;  /**< neither: only ring_train_forward() with the caller's batches */
    uint64_t seed;         /**< of parameters, order and dropout */
    ring_train_schedule
        schedule; /**< replaces the configuration's scheduler, for all parameter groups; or NULL */
    void *schedule_context;
    ring_train_note note; /**< or NULL */
    void *note_context;
    const char *normalize; /**< of images in data: (byte / 255 - mean) / std, as torchvision's
                                Normalize. "0.1307/0.3081": all channels alike;
                                "0.5,0.4,0.3/0.25,0.25,0.25": each its own; NULL: byte / 255 */
    int workers; /**< threads that read the next micro-batch of data or train while the current one
                    is being computed, 0 to 256, as ringtrain --workers; results have the same bits.
                    Several of them may call take at once, for different samples */
    int compat_ds_0_13; /**< 1: as ringtrain --compat ds-0.13: no clipping by default, first
                             update at the optimiser's own rate, one order for all epochs */
    int warn_unknown;   /**< 1: unknown keys of the configuration are notes, not errors */
    int keep; /**< number of newest checkpoints that ring_train_save() keeps in a folder; 0: all */
    int loss_is_scaled; /**< 1: the caller has already divided the arguments of
                           ring_train_own_loss() by the accumulation steps, as a loop with `loss /=
                           accum_iter` does */
} ring_train_options;

#define RING_TRAIN_OPTIONS_INIT \
    { \
        sizeof(ring_train_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, {0, NULL, NULL}, \
            {0, NULL, NULL}, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0 \
    }

/** Creates an engine, as deepspeed.initialize() does. Collective.
 *  @param comm borrowed until ring_train_destroy(); only the engine may use it meanwhile.
 *  @param[out] engine free with ring_train_destroy(); NULL on failure, which is reported on all
 *  ranks.
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_CONFIG (an error in configuration, model or data,
 *  or ranks whose options differ), RING_ERR_UNSUPPORTED, RING_ERR_MEMORY, RING_ERR_SYSTEM; or the
 *  error that ended the communicator. */
ring_status ring_train_create(ring_train **engine, ring_comm *comm,
                              const ring_train_options *options);

/** Frees an engine, even in the middle of an update. Call it before destroying the communicator.
 *  NULL is allowed. */
void ring_train_destroy(ring_train *engine);

/** Properties of an engine, and its progress. */
typedef struct ring_train_info {
    size_t size;             /**< sizeof(ring_train_info), set by the caller */
    ring_train_shape input;  /**< of one sample */
    ring_train_shape output; /**< of one sample */
    size_t parameters;       /**< elements of all of them */
    int tensors;             /**< number of tensors of parameters */
    long train_batch;        /**< samples of an update, on all ranks */
    size_t micro_batch;      /**< samples of a micro-batch, on this rank */
    int accumulation;        /**< micro-batches of an update */
    int zero_stage;          /**< as configured */
    int stages;              /**< of the pipeline; 1: none */
    long updates_per_epoch;  /**< 0 if there are no data */
    long step;               /**< updates done: DeepSpeed's global_steps */
    long micro_steps;        /**< micro-batches for which ring_train_step() was called */
    long skipped;            /**< updates skipped in 16 bits */
    int epoch;               /**< from 1 */
    int at_boundary;         /**< 1: the next ring_train_step() ends an update. As
                                  is_gradient_accumulation_boundary() */
    double lr;               /**< of the next update */
    double loss_scale;       /**< in fp16; else 1 */
    double loss;             /**< of the latest update: the mean over its samples on all ranks */
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
    size_t labels; /**< of a sample: 1, or one for each row of the output */
    int applied; /**< 1: the latest update changed the parameters; 0: it was skipped or dropped, or
                    there has been no update. As was_step_applied() */
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
    const uint32_t *samples; /**< [rows] numbers of the samples, which seed dropout; NULL: counted
                                in the order of arrival */
} ring_train_batch;

#define RING_TRAIN_BATCH_INIT \
    { \
        sizeof(ring_train_batch), 0, NULL, NULL, NULL \
    }

/** Returns this rank's next micro-batch, in DistributedSampler's order: each epoch is shuffled
 *  differently, unless the configuration has "sampler_shuffle": false.
 *  @param[out] batch  in the engine's memory, until the next call; its size is set by the caller
 *  @param[out] more 0: the epoch has ended, and the next call begins another one
 *  @return RING_OK; RING_ERR_USAGE: there are no data, the engine is a pipeline, or the previous
 *  micro-batch has not been through forward, backward and step; RING_ERR_ARGUMENT. */
ring_status ring_train_next(ring_train *engine, ring_train_batch *batch, int *more);

/** Forward, as `outputs = engine(inputs)`. Collective.
 *  @param batch borrowed until backward. It is either from ring_train_next(), whose last batch also
 *  ends the last update of an epoch, or the caller's own with 1 to info.micro_batch rows; the
 *  caller's batches all have the same weight, even short ones, as in DeepSpeed. One update cannot
 *  mix both. Tensor ranks of one data-parallel rank must pass the same samples.
 *  @param[out] outputs [rows, output of the model], in the engine's memory, valid until the next
 *  forward; NULL: not wanted
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: in a pipeline, or before the previous
 *  forward or backward has been followed by the calls that belong to it; or the error that ended
 *  the communicator. */
ring_status ring_train_forward(ring_train *engine, const ring_train_batch *batch,
                               const float **outputs);

/** Computes the configured loss on the outputs, as `loss = criterion(outputs, labels)`, and its
 *  gradient.
 *  @param labels  [rows, labels of a sample]
 *  @param[out] loss mean over the rows; or NULL. Do not divide it by the accumulation steps.
 *  @return RING_OK; RING_ERR_USAGE: there was no forward; RING_ERR_ARGUMENT: a label is too large.
 */
ring_status ring_train_loss(ring_train *engine, const uint32_t *labels, double *loss);

/** Takes a loss that the caller computed, in place of ring_train_loss().
 *  @param loss  mean over the rows, for reports
 *  @param gradient [rows, output of the model] its gradient with respect to the outputs. Do not
 *  divide either by the accumulation steps, unless options.loss_is_scaled is 1.
 *  @return RING_OK; RING_ERR_USAGE: there was no forward; RING_ERR_ARGUMENT. */
ring_status ring_train_own_loss(ring_train *engine, double loss, const float *gradient);

/** Backward from the loss, as `engine.backward(loss)`: gradients add up over the micro-batches of
 *  an update, and are summed over the ranks at the times that the stage of ZeRO requires.
 *  Collective.
 *  @return RING_OK; RING_ERR_USAGE: there was no loss; or the error that ended the communicator. */
ring_status ring_train_backward(ring_train *engine);

/** As `engine.step()`: after the last micro-batch of an update it clips the gradients and updates
 *  the parameters; after any other micro-batch it only counts. Collective.
 *  @return RING_OK, also for an update that was skipped in 16 bits; RING_ERR_USAGE: there was no
 *  backward, or a loss or gradient is not finite (the update is dropped on all ranks); or the error
 *  that ended the communicator. */
ring_status ring_train_step(ring_train *engine);

/** As `lr_scheduler.step()` after `engine.step()`, for loops that call it. It changes nothing,
 *  because ring_train_step() has already advanced the schedule; in DeepSpeed the schedule would
 *  advance twice. The first call reports this to options.note, if there is a schedule. @return
 *  RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_scheduler_step(ring_train *engine);

/** As `engine.no_sync()`: until it is called with 0, gradients of micro-batches only add up on each
 *  rank. This is the default for all but the last micro-batch of an update. ring_train_backward()
 *  refuses the last one while no_sync is on, because its gradients would never be exchanged.
 *  @param on 1 or 0. @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: in a pipeline, and from
 *  stage 2 of ZeRO on, which sends gradients after each micro-batch. */
ring_status ring_train_no_sync(ring_train *engine, int on);

/** Drops the micro-batches of the current update, as `optimizer.zero_grad()` in the middle of one:
 *  the next forward begins an update, and ring_train_next() returns the same samples again. Between
 *  updates it does nothing. Collective: all ranks must call it after the same call; waits for
 *  communication in flight. @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_drop(ring_train *engine);

/* ---- Whole updates ------------------------------------------------------------- */

/** One update on the engine's data, with or without a pipeline, as `engine.train_batch()`. It
 *  begins the next epoch automatically. Collective.
 *  @param[out] loss  mean over the samples of all ranks; or NULL
 *  @return RING_OK; RING_ERR_USAGE: there are no data, an update is in progress, or a number is not
 *  finite as in ring_train_step(); RING_ERR_USAGE, RING_ERR_ARGUMENT on all ranks: a callback
 *  failed on one of them, and no parameter has changed; or the error that ended the communicator.
 */
ring_status ring_train_train_batch(ring_train *engine, double *loss);

/** Evaluates the network on the test set, of which each rank takes a part. Collective.
 *  @param[out] loss, accuracy  means over all labels; each may be NULL
 *  @return RING_OK; RING_ERR_USAGE: there are no test data or no loss, or an update is in progress;
 *  if a callback fails on one rank, its error on all ranks. */
ring_status ring_train_evaluate(ring_train *engine, double *loss, double *accuracy);

/** Computes outputs without training, as `engine.eval(); outputs = engine(inputs)`: there is no
 *  dropout, and no activations are kept. Collective; costs one short exchange, and forward passes
 *  of up to 256 samples. Ranks may pass different samples, and different numbers of them, but the
 *  stages of a pipeline and the tensor ranks of one data-parallel rank must pass the same.
 *  @param inputs  [rows, input of the model]; in a pipeline those of the first stage are read
 *  @param rows any number; if 0, this rank has no samples, and both pointers may be NULL
 *  @param[out] outputs  [rows, output of the model] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: within an update; or the error that ended
 * the communicator. */
ring_status ring_train_predict(ring_train *engine, const float *inputs, size_t rows,
                               float *outputs);

/** Computes means over all ranks, weighted for example by each rank's number of samples. Unlike a
 *  mean of means this is exact if batches differ in size. Collective; gathers count + 1 numbers
 *  from each rank and sums them in the order of the ranks.
 *  @param[in,out] values [count] this rank's means; replaced by the means over all ranks
 *  @param weight this rank's weight, 0 or more; with 0 its values are ignored
 *  @return RING_OK; RING_ERR_ARGUMENT on all ranks: a weight or an array is wrong on one rank, or
 *  no rank has a weight above 0; or the error that ended the communicator. */
ring_status ring_train_mean(ring_train *engine, double *values, size_t count, double weight);

typedef enum ring_train_set { RING_TRAIN_SET_TRAIN = 0, RING_TRAIN_SET_TEST = 1 } ring_train_set;

/** Returns samples of the engine's data, as training and evaluation see them. Not collective; may
 *  be called at any time.
 *  @param samples  [rows] numbers, below info.train_samples or info.test_samples
 *  @param[out] inputs  [rows, input of the model]; NULL: not wanted
 *  @param[out] labels  [rows, info.labels]
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: there is no such data, or the callback that
 *  fills samples failed. */
ring_status ring_train_samples(const ring_train *engine, ring_train_set set,
                               const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/* ---- Parameters and checkpoints ------------------------------------------------ */

/** Describes a tensor of parameters. @param index  from 0 to below info.tensors; tensors that share
 *  their values with an earlier one are not counted.
 *  @param[out] name in the engine's memory; as in PyTorch's state_dict(): "0.weight"
 *  @param[out] dim   [RING_TRAIN_PARAM_DIMS]; @param[out] dims, count  elements. Each may be NULL.
 *  @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_tensor(const ring_train *engine, int index, const char **name, size_t *dim,
                              int *dims, size_t *count);

/** Gathers a tensor, as the optimiser stores it, from the ranks that own it. Collective; costs as
 *  much as gathering all tensors.
 *  @param[out] values  [count] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT: the name is unknown or the count differs; RING_ERR_USAGE:
 *  within an update. */
ring_status ring_train_get_tensor(ring_train *engine, const char *name, float *values,
                                  size_t count);

/** Sets a tensor. All ranks must call it with the same values [count]; it does not communicate.
 *  @return as ring_train_get_tensor(). */
ring_status ring_train_set_tensor(ring_train *engine, const char *name, const float *values,
                                  size_t count);

/** Writes a checkpoint DIR/step-NNNNNNNN, which `ringtrain --resume` and ring_train_load() can load
 *  on any number of ranks. Collective.
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: within
 *  an update. */
ring_status ring_train_save(ring_train *engine, const char *dir);

/** Resumes from a checkpoint, or from the newest complete one in a folder of checkpoints: restores
 *  parameters, optimiser, schedule and position in the data. The numbers of ranks, pipeline stages
 *  and tensor ranks and the stage of ZeRO may differ from those that saved it. Collective.
 *  @return as ring_train_save(); RING_ERR_CONFIG: the checkpoint has a different model, seed or
 *  data. On failure the engine is as it was, with one exception: if a disk fails while values that
 *  passed their check are being read (RING_ERR_SYSTEM), only some of them have been loaded, and the
 *  engine must load again. */
ring_status ring_train_load(ring_train *engine, const char *path);

/** As ring_train_load() for a folder that may have no checkpoint yet, or may not exist: then the
 *  engine is unchanged. Meant for programs that may be restarted. Collective.
 *  @param[out] found 1: resumed from a checkpoint; 0: there is none
 *  @return as ring_train_load(). */
ring_status ring_train_resume(ring_train *engine, const char *dir, int *found);

/** Writes only the parameters, as the optimiser stores them, to one safetensors file of float32
 *  with the names of ring_train_tensor(), as save_16bit_model() does. `ringtrain export` writes the
 *  same file from a checkpoint. Rank 0 writes it, complete or not at all. Collective; costs as much
 *  as ring_train_get_tensor().
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: within
 *  an update, or a parameter is not finite. */
ring_status ring_train_save_params(ring_train *engine, const char *path);

/** Sets all parameters from a safetensors file, as `ringtrain --init`: names and shapes must match
 *  the model's; types may be float32, float16 and bfloat16. Optimiser, schedule and position in the
 *  data are unchanged. Collective; all ranks read the file.
 *  @return RING_OK; RING_ERR_CONFIG: the file is for a different model; RING_ERR_SYSTEM;
 *  RING_ERR_USAGE: within an update. */
ring_status ring_train_load_params(ring_train *engine, const char *path);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
