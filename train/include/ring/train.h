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
 * All ranks of the communicator must make the calls marked collective, in the same order. These
 * calls have the same deadlines as libring's calls, so none of them blocks forever.
 *
 * A call that fails returns a status, and ring_train_error() returns a line of text about it.
 * Unless its documentation says otherwise, a call that returns RING_ERR_USAGE or RING_ERR_ARGUMENT
 * leaves the engine unchanged. A failure that other ranks cannot detect ends the communicator, so
 * that they do not wait.
 *
 * An update computes the same bits as the program ringtrain does with the same configuration, data
 * and seed. Only one thread at a time may use an engine. Numbers are float32 unless their type says
 * otherwise, and arrays are row-major.
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

/** @return the text of the calling thread's latest failure in this library, or "" if no call has
 *  failed. The text is valid until the thread's next failure. */
const char *ring_train_error(void);

/* ---- Data ---------------------------------------------------------------------- */

/** Callback that copies samples into the engine's memory. The training thread calls it, or with
 *  options.workers above 0 several threads at once.
 *  @param samples  [rows] numbers of the requested samples, from 0
 *  @param[out] inputs  [rows, input of the model]; NULL if only labels are wanted
 *  @param[out] labels  [rows, labels of a sample], each from 0 to below the number of classes
 *  @return 0; any other value fails the call that needs the samples. ring_train_train_batch() and
 *  ring_train_evaluate() then fail on all ranks, and the next call requests the same samples again;
 *  ring_train_next() ends the communicator. */
typedef int (*ring_train_take)(void *context, const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/** Samples that the caller provides. All ranks describe the same samples, and each rank takes its
 *  part of them. */
typedef struct ring_train_data {
    size_t count; /**< number of samples; 0: the caller provides none */
    ring_train_take take;
    void *context; /**< first argument of take */
} ring_train_data;

/* ---- The caller's own layers --------------------------------------------------- */

#define RING_TRAIN_INPUT_DIMS 3
#define RING_TRAIN_PARAM_DIMS 4
#define RING_TRAIN_OP_PARAMS 2

/** Shape of one sample: [features], [tokens, features] or [channels, rows, columns]. */
typedef struct ring_train_shape {
    size_t dim[RING_TRAIN_INPUT_DIMS];
    int dims;
} ring_train_shape;

/** Distribution of a parameter's initial values. */
typedef enum ring_train_start {
    RING_TRAIN_ZEROS = 0,
    RING_TRAIN_ONES = 1,
    RING_TRAIN_UNIFORM = 2, /**< between -1 / sqrt(fan_in) and 1 / sqrt(fan_in), as in PyTorch */
    RING_TRAIN_NORMAL = 3   /**< with mean 0 and the parameter's standard deviation */
} ring_train_start;

/** A parameter of a layer. */
typedef struct ring_train_param {
    const char *name; /**< for example "weight", which becomes "3.weight" in layer 3; must outlive
                           the engine */
    size_t dim[RING_TRAIN_PARAM_DIMS];
    int dims;
    ring_train_start start;
    size_t fan_in;    /**< for RING_TRAIN_UNIFORM: inputs of one output */
    double deviation; /**< for RING_TRAIN_NORMAL: the standard deviation */
    int no_decay;     /**< 1: belongs to the group without weight decay ("param_groups") */
} ring_train_param;

/** Arguments of a layer's functions for one batch. */
typedef struct ring_train_pass {
    void *context; /**< ring_train_op.context */
    size_t rows;   /**< samples of the batch */
    const ring_train_shape *in_shape, *out_shape;
    const float *in;                           /**< [rows, in_shape] */
    float *out;                                /**< [rows, out_shape]; forward() writes it, params()
                                                    and inputs() read it */
    const float *params[RING_TRAIN_OP_PARAMS]; /**< in the shapes that shape() returned */
    const float *out_grad;                     /**< [rows, out_shape] gradient of out */
    float *in_grad;                            /**< [rows, in_shape]; inputs() overwrites it */
    float *grads[RING_TRAIN_OP_PARAMS];        /**< shaped like params; params() adds to them */
} ring_train_pass;

/** A layer that the caller implements. Lists of layers use its name as a "type". Its functions must
 *  depend on their arguments only, so that all ranks compute the same. Initialize it with
 *  RING_TRAIN_OP_INIT. */
typedef struct ring_train_op {
    size_t size;      /**< sizeof(ring_train_op) */
    const char *name; /**< the type: 1 to 31 letters, different from all built-in types */
    /** Derives the output shape and the parameters, @p params [*count], from the input shape.
     *  *out, @p params and *count are zero on entry. @return 0, or any other value if the layer
     * does not accept the input. */
    int (*shape)(void *context, const ring_train_shape *in, ring_train_shape *out,
                 ring_train_param params[RING_TRAIN_OP_PARAMS], int *count);
    void (*forward)(const ring_train_pass *pass);
    /** Backward: computes the gradients of the parameters. NULL for a layer without parameters. */
    void (*params)(const ring_train_pass *pass);
    /** Backward: computes the gradient of the input. */
    void (*inputs)(const ring_train_pass *pass);
    void *context; /**< passed to all four functions; must outlive the engine */
} ring_train_op;

#define RING_TRAIN_OP_INIT \
    { \
        sizeof(ring_train_op), NULL, NULL, NULL, NULL, NULL, NULL \
    }

/* ---- Engines ------------------------------------------------------------------- */

/** Callback. @return the learning rate of update @p update, which must be the same on all ranks.
 *  Updates are counted from 1, without those that 16-bit training skips. */
typedef double (*ring_train_schedule)(void *context, long update);

/** Callback that receives a line of text about a configuration key that has no effect here, or
 *  about a checkpoint that is not used. */
typedef void (*ring_train_note)(void *context, const char *text);

/** The definition of an engine. Initialize it with RING_TRAIN_OPTIONS_INIT; members beyond `size`
 *  count as zero. Contexts and functions must outlive the engine; everything else is borrowed only
 *  for the duration of ring_train_create(). */
typedef struct ring_train_options {
    size_t size;             /**< sizeof(ring_train_options) */
    const char *config;      /**< path of a DeepSpeed configuration; NULL: config_text is used */
    const char *config_text; /**< text of the configuration, in place of config */
    const char *model;  /**< a name ("mlp") or FILE.json, as ringtrain --model takes; NULL: mlp */
    const char *layers; /**< the text of such a file, in place of model */
    const ring_train_op *ops; /**< [op_count] the caller's layers, which model and layers may use */
    size_t op_count;
    const char *loss;      /**< "mse" or "cross_entropy"; NULL: the loss that suits the data, as
                              ringtrain chooses it */
    const char *data;      /**< a folder with training and test samples, as ringtrain --data takes:
                                MNIST's four files, CIFAR-10's files, or a text. The ranks of a host
                                read it once and share the memory. NULL: train and test are used */
    ring_train_data train; /**< the caller's training samples, in place of data. Without either, the
                                engine trains only on batches passed to ring_train_forward() */
    ring_train_data test;  /**< the caller's test samples, for ring_train_evaluate() */
    uint64_t seed;         /**< of initial parameters, order of samples and dropout */
    ring_train_schedule schedule; /**< replaces the configuration's scheduler in all parameter
                                     groups; or NULL */
    void *schedule_context;
    ring_train_note note; /**< receives notes about the configuration and checkpoints; or NULL */
    void *note_context;
    const char *normalize; /**< "MEAN/STD" for the images in data: (byte / 255 - mean) / std, as
                                torchvision's Normalize. "0.1307/0.3081" is for all channels;
                                "0.5,0.4,0.3/0.25,0.25,0.25" has values for each channel; NULL:
                                byte / 255 */
    int workers; /**< number of threads, 0 to 256, that read the next micro-batch while the current
                    one is being computed, as ringtrain --workers. Results have the same bits for
                    any number. Several threads may call take at once, for different samples */
    int compat_ds_0_13; /**< 1: as ringtrain --compat ds-0.13: no clipping by default, the first
                             update at the optimiser's own rate, the same order in all epochs */
    int warn_unknown;   /**< 1: unknown keys of the configuration cause notes, not errors */
    int keep; /**< number of newest checkpoints that ring_train_save() keeps in a folder; 0: all */
    int loss_is_scaled; /**< 1: the caller has already divided the arguments of
                           ring_train_own_loss() by the accumulation steps, as a loop with `loss /=
                           accum_iter` does */
    const char *device; /**< "cpu", "cuda", "cuda:N", or "auto": GPU 0 if it can train the network,
                             else the CPU, as ringtrain --device; NULL: cpu. A GPU trains float32
                             networks of one rank, without the caller's own layers */
    int tf32; /**< 1: a GPU may round the operands of matrix products to TF32, as ringtrain --tf32.
                   On the CPU it has no effect, and a note says so */
} ring_train_options;

#define RING_TRAIN_OPTIONS_INIT \
    { \
        sizeof(ring_train_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, {0, NULL, NULL}, \
            {0, NULL, NULL}, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0 \
    }

/** Creates an engine, as deepspeed.initialize() does. Collective. If it fails on one rank, it fails
 *  on all ranks.
 *  @param comm borrowed until ring_train_destroy(); only the engine may use it meanwhile.
 *  @param[out] engine  to be freed with ring_train_destroy(); NULL after a failure.
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
    size_t parameters;       /**< total number of elements of all parameter tensors */
    int tensors;             /**< number of parameter tensors */
    long train_batch;        /**< samples of an update, on all ranks */
    size_t micro_batch;      /**< samples of a micro-batch, on this rank */
    int accumulation;        /**< micro-batches of an update */
    int zero_stage;          /**< as configured */
    int stages;              /**< stages of the pipeline; 1: there is no pipeline */
    long updates_per_epoch;  /**< 0 if the engine has no training data */
    long step;               /**< updates done: DeepSpeed's global_steps */
    long micro_steps;        /**< micro-batches for which ring_train_step() was called */
    long skipped;            /**< updates that 16-bit training has skipped */
    int epoch;               /**< the current epoch, from 1 */
    int at_boundary;         /**< 1: the next ring_train_step() ends an update. As
                                  is_gradient_accumulation_boundary() */
    double lr;               /**< learning rate of the next update */
    double loss_scale;       /**< the current scale with fp16; else 1 */
    double loss;             /**< of the latest update: the mean over its samples on all ranks */
    double grad_norm;        /**< of the latest update, before clipping */
    size_t state_bytes;      /**< of parameters, gradients and optimiser on this rank */
    int shares;           /**< number of data-parallel ranks, each of which takes its own share of
                               the data */
    int share;            /**< this rank's share, from 0. Pipeline stages and tensor ranks with
                               the same share take the same samples */
    int stage;            /**< this rank's stage of the pipeline, from 0 */
    int tensor_ranks;     /**< ranks that divide the layers among them; 1: layers are whole */
    int tensor_rank;      /**< this rank's number among the tensor ranks, from 0 */
    size_t train_samples; /**< training samples of the engine's data, on all ranks; 0: there are
                               none */
    size_t test_samples;  /**< test samples, likewise */
    size_t labels;        /**< labels of a sample: 1, or one for each row of the output */
    int applied; /**< 1: the latest update changed the parameters; 0: it was skipped or dropped, or
                    there has been no update. As was_step_applied() */
    double gradient_clipping; /**< largest norm; 0: gradients are not clipped */
    ring_dtype precision;     /**< type of the parameters in forward and backward: RING_FLOAT32,
                                   RING_FLOAT16 or RING_BFLOAT16 */
} ring_train_info;

/** Fills the first info->size bytes of @p info. Cheap. @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_get_info(const ring_train *engine, ring_train_info *info);

/** Sets the learning rate of the next updates, in place of any schedule. All ranks must set the
 *  same rate.
 *  @param lr  0 or more; below 0: the schedule sets the rate again.
 *  @return RING_OK, RING_ERR_ARGUMENT. */
ring_status ring_train_set_lr(ring_train *engine, double lr);

/* ---- Micro-batch by micro-batch ------------------------------------------------ */

/** A micro-batch. Initialize it with RING_TRAIN_BATCH_INIT, or take it from ring_train_next(). */
typedef struct ring_train_batch {
    size_t size; /**< sizeof(ring_train_batch) */
    size_t rows; /**< number of samples. The last micro-batch of an epoch may be short, or empty on
                    a rank that has run out of samples before the others */
    const float *inputs;     /**< [rows, input of the model] */
    const uint32_t *labels;  /**< [rows, labels of a sample]; not read by ring_train_forward() */
    const uint32_t *samples; /**< [rows] numbers of the samples, which seed dropout; NULL: the
                                engine numbers samples in the order of arrival */
} ring_train_batch;

#define RING_TRAIN_BATCH_INIT \
    { \
        sizeof(ring_train_batch), 0, NULL, NULL, NULL \
    }

/** Returns this rank's next micro-batch, in DistributedSampler's order: each epoch is shuffled
 *  differently, unless the configuration has "sampler_shuffle": false.
 *  @param[out] batch  its arrays are in the engine's memory, valid until the next call. The caller
 *  sets batch->size
 *  @param[out] more 0: the epoch has ended, and the next call begins another one
 *  @return RING_OK; RING_ERR_USAGE: there are no data, the engine is a pipeline, or the previous
 *  micro-batch has not been through forward, backward and step; RING_ERR_ARGUMENT. */
ring_status ring_train_next(ring_train *engine, ring_train_batch *batch, int *more);

/** Runs a forward pass, as `outputs = engine(inputs)`. Collective.
 *  @param batch borrowed until ring_train_backward(). It is either from ring_train_next(), where
 * the last batch of an epoch also ends the epoch's last update, or the caller's own with 1 to
 *  info.micro_batch rows. The caller's batches all have the same weight, even short ones, as in
 *  DeepSpeed. One update cannot mix both kinds. Tensor ranks of one data-parallel rank must pass
 * the same samples.
 *  @param[out] outputs [rows, output of the model], in the engine's memory, valid until the next
 *  forward pass; NULL: not wanted
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: the engine is a pipeline, or the previous
 *  micro-batch has not been through loss, backward and step; or the error that ended the
 *  communicator. */
ring_status ring_train_forward(ring_train *engine, const ring_train_batch *batch,
                               const float **outputs);

/** Computes the configured loss on the outputs, as `loss = criterion(outputs, labels)`, and its
 *  gradient.
 *  @param labels  [rows, labels of a sample]
 *  @param[out] loss mean over the rows; or NULL. Do not divide it by the accumulation steps.
 *  @return RING_OK; RING_ERR_USAGE: ring_train_forward() has not run; RING_ERR_ARGUMENT: a label is
 *  too large. */
ring_status ring_train_loss(ring_train *engine, const uint32_t *labels, double *loss);

/** Accepts a loss that the caller computed, in place of ring_train_loss().
 *  @param loss  mean over the rows, for reports
 *  @param gradient [rows, output of the model] gradient of @p loss with respect to the outputs. Do
 *  not divide @p loss or @p gradient by the accumulation steps, unless options.loss_is_scaled is 1.
 *  @return RING_OK; RING_ERR_USAGE: ring_train_forward() has not run; RING_ERR_ARGUMENT. */
ring_status ring_train_own_loss(ring_train *engine, double loss, const float *gradient);

/** Runs the backward pass from the loss, as `engine.backward(loss)`. Gradients add up over the
 *  micro-batches of an update. The stage of ZeRO determines when they are summed over the ranks.
 *  Collective.
 *  @return RING_OK; RING_ERR_USAGE: no loss was computed; or the error that ended the communicator.
 */
ring_status ring_train_backward(ring_train *engine);

/** As `engine.step()`: after the last micro-batch of an update it clips the gradients and updates
 *  the parameters; after any other micro-batch it only counts the micro-batch. Collective.
 *  @return RING_OK, also for an update that 16-bit training skips; RING_ERR_USAGE:
 *  ring_train_backward() has not run, or a loss or gradient is not finite (then all ranks drop the
 *  update); or the error that ended the communicator. */
ring_status ring_train_step(ring_train *engine);

/** Takes the place of `lr_scheduler.step()` in loops that call it after `engine.step()`. It changes
 *  nothing, because ring_train_step() has already advanced the schedule; in DeepSpeed the schedule
 *  would advance twice. If there is a schedule, the first call reports this to options.note.
 *  @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_scheduler_step(ring_train *engine);

/** As `engine.no_sync()`: while it is on, gradients of micro-batches only add up on each rank. The
 *  engine does the same by default for all but the last micro-batch of an update.
 *  ring_train_backward() rejects the last micro-batch while no_sync is on, because the gradients
 *  would never be exchanged.
 *  @param on  1: on; 0: off. @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: the engine is a
 *  pipeline, or the stage of ZeRO is 2 or 3, which exchanges gradients after each micro-batch. */
ring_status ring_train_no_sync(ring_train *engine, int on);

/** Drops the micro-batches of the current update, as `optimizer.zero_grad()` does in the middle of
 *  an update. The next ring_train_forward() begins a new update, and ring_train_next() returns the
 *  same samples again. Between updates it does nothing. It waits for communication in flight.
 *  Collective: all ranks must call it at the same point of the update. @return RING_OK or
 *  RING_ERR_ARGUMENT. */
ring_status ring_train_drop(ring_train *engine);

/* ---- Whole updates ------------------------------------------------------------- */

/** Runs one update on the engine's data, with or without a pipeline, as `engine.train_batch()`.
 *  After an epoch it begins the next one. Collective.
 *  @param[out] loss  mean over the samples of all ranks; or NULL
 *  @return RING_OK; RING_ERR_USAGE: the engine has no data, an update is in progress, or a loss or
 *  gradient is not finite as in ring_train_step(); RING_ERR_USAGE or RING_ERR_ARGUMENT on all
 * ranks: a callback failed on one rank, and no parameter has changed; or the error that ended the
 *  communicator. */
ring_status ring_train_train_batch(ring_train *engine, double *loss);

/** Evaluates the network on the test set, of which each rank takes a part. Collective.
 *  @param[out] loss, accuracy  means over all labels; each may be NULL
 *  @return RING_OK; RING_ERR_USAGE: the engine has no test data or no loss, or an update is in
 *  progress. If a callback fails on one rank, all ranks return that error. */
ring_status ring_train_evaluate(ring_train *engine, double *loss, double *accuracy);

/** Computes outputs without training, as `engine.eval(); outputs = engine(inputs)`: there is no
 *  dropout, and no activations are kept. Collective; costs one short exchange, and forward passes
 *  of up to 256 samples each. Ranks may pass different samples, and different numbers of samples,
 *  but the pipeline stages and tensor ranks of one data-parallel rank must pass the same samples.
 *  @param inputs  [rows, input of the model]; in a pipeline only the first stage reads its inputs
 *  @param rows any number; if 0, this rank has no samples, and both pointers may be NULL
 *  @param[out] outputs  [rows, output of the model] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: within an update; or the error that ended
 * the communicator. */
ring_status ring_train_predict(ring_train *engine, const float *inputs, size_t rows,
                               float *outputs);

/** Computes means over all ranks, weighted for example by each rank's number of samples. Unlike a
 *  mean of means, the result is exact even if batches differ in size. Collective; gathers count + 1
 *  numbers from each rank and sums them in the order of the ranks.
 *  @param[in,out] values [count] this rank's means; replaced by the means over all ranks
 *  @param weight this rank's weight, 0 or more; with 0 its values are ignored
 *  @return RING_OK; RING_ERR_ARGUMENT on all ranks: a weight or an array is invalid on one rank, or
 *  no rank has a weight above 0; or the error that ended the communicator. */
ring_status ring_train_mean(ring_train *engine, double *values, size_t count, double weight);

typedef enum ring_train_set { RING_TRAIN_SET_TRAIN = 0, RING_TRAIN_SET_TEST = 1 } ring_train_set;

/** Returns samples of the engine's data, as training and evaluation read them. Not collective; may
 *  be called at any time.
 *  @param samples  [rows] numbers, below info.train_samples or info.test_samples
 *  @param[out] inputs  [rows, input of the model]; NULL: not wanted
 *  @param[out] labels  [rows, info.labels]
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE: the engine has no such data, or the caller's
 *  take callback failed. */
ring_status ring_train_samples(const ring_train *engine, ring_train_set set,
                               const uint32_t *samples, size_t rows, float *inputs,
                               uint32_t *labels);

/* ---- Parameters and checkpoints ------------------------------------------------ */

/** Describes a parameter tensor.
 *  @param index  from 0 to info.tensors - 1; a tensor that shares its values with an earlier one is
 *  not counted.
 *  @param[out] name  in the engine's memory; as in PyTorch's state_dict(): "0.weight"
 *  @param[out] dim  [RING_TRAIN_PARAM_DIMS], of which the first *dims are used
 *  @param[out] dims  number of dimensions
 *  @param[out] count  number of elements. Each output may be NULL.
 *  @return RING_OK or RING_ERR_ARGUMENT. */
ring_status ring_train_tensor(const ring_train *engine, int index, const char **name, size_t *dim,
                              int *dims, size_t *count);

/** Gathers a tensor from the ranks that own it: the float32 values that the optimiser stores, even
 *  if passes use 16 bits. Collective; costs as much as gathering all tensors.
 *  @param[out] values  [count] on every rank
 *  @return RING_OK; RING_ERR_ARGUMENT: the name is unknown or the count differs; RING_ERR_USAGE: an
 *  update is in progress. */
ring_status ring_train_get_tensor(ring_train *engine, const char *name, float *values,
                                  size_t count);

/** Sets a tensor. All ranks must call it with the same values [count]; it does not communicate.
 *  @return as ring_train_get_tensor(). */
ring_status ring_train_set_tensor(ring_train *engine, const char *name, const float *values,
                                  size_t count);

/** Writes a checkpoint DIR/step-NNNNNNNN, which `ringtrain --resume` and ring_train_load() can load
 *  on any number of ranks. Collective.
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: an
 *  update is in progress. */
ring_status ring_train_save(ring_train *engine, const char *dir);

/** Resumes from a checkpoint, or from the newest complete one in a folder of checkpoints: restores
 *  parameters, optimiser, schedule and position in the data. The numbers of ranks, pipeline stages
 *  and tensor ranks and the stage of ZeRO may differ from those of the run that saved the
 *  checkpoint. Collective.
 *  @return as ring_train_save(); RING_ERR_CONFIG: the checkpoint has a different model, seed or
 *  data. A failure leaves the engine unchanged, with one exception: the checkpoint is checked
 * before its values are loaded, but if a disk fails during loading (RING_ERR_SYSTEM), only some
 * values have been loaded. Then load again before using the engine. */
ring_status ring_train_load(ring_train *engine, const char *path);

/** As ring_train_load(), but succeeds without changing the engine if the folder has no checkpoint
 *  yet or does not exist. Meant for programs that may be restarted. Collective.
 *  @param[out] found 1: resumed from a checkpoint; 0: there is none
 *  @return as ring_train_load(). */
ring_status ring_train_resume(ring_train *engine, const char *dir, int *found);

/** Writes only the parameters to one safetensors file, as save_16bit_model() does: the float32
 *  values that the optimiser stores, under the names of ring_train_tensor(). `ringtrain export`
 *  writes the same file from a checkpoint. Rank 0 writes the file atomically. Collective; costs as
 *  much as ring_train_get_tensor().
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written; RING_ERR_USAGE: an
 *  update is in progress, or a parameter is not finite. */
ring_status ring_train_save_params(ring_train *engine, const char *path);

/** Sets all parameters from a safetensors file, as `ringtrain --init` does. Names and shapes must
 *  match the model's; types may be float32, float16 and bfloat16. Optimiser, schedule and position
 *  in the data are unchanged. Collective; all ranks read the file.
 *  @return RING_OK; RING_ERR_CONFIG: the file is for a different model; RING_ERR_SYSTEM;
 *  RING_ERR_USAGE: an update is in progress. */
ring_status ring_train_load_params(ring_train *engine, const char *path);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
