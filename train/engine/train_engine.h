/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: runs the data-parallel training of a whole network or of one stage of a pipeline. Every
 * rank processes its part of each global batch and holds as much of its stage's state as the stage
 * of ZeRO assigns to it. Gradients are sums over samples divided by the number of samples in the
 * whole global batch, so any number of ranks and micro-batches computes the same update up to
 * rounding, even if the last batch is short; parameters have the same bits on all ranks.
 */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include <ring/ring.h>

#include "config.h"
#include "dataset.h"
#include "grid.h"
#include "loss.h"
#include "model.h"
#include "offload.h"
#include "optimizer.h"
#include "overflow.h"
#include "pipeline.h"
#include "reader.h"
#include "sampler.h"
#include "tensor_parallel.h"
#include "update_schedule.h"
#include "update_times.h"
#include "zero_memory.h"

enum { LOSS_SUMS = 3 };

/** Numbers that an update's instructions pass to each other. They keep their address from
 *  engine_create() to engine_destroy(), in shared memory (ring_mem_alloc()). The first LOSS_SUMS
 *  members are summed over all ranks in one call. */
typedef struct update_scalars {
    double loss;       /* sum of the losses of all samples */
    double stop_asked; /* sum of engine->stop_asked */
    double unloaded;   /* number of ranks that could not load their samples */
    double lr;         /* learning rate of the update */
    double grad_norm;  /* of the scaled gradients, before clipping; NaN: it is not computed */
    double clip;       /* factor that clips the gradients and removes the loss scale */
} update_scalars;

/** The batch of the micro-batch that is computed, at a place other than the host. */
typedef struct placed_batch {
    float *images;     /* [model.max_batch, input] */
    uint32_t *labels;  /* [model.max_batch, labels of a sample] */
    uint32_t *samples; /* [model.max_batch] numbers of the samples, for dropout */
    double *loss;      /* [1] */
    float *outputs;    /* [2, model.max_batch, output] on the host: outputs and their gradients */
} placed_batch;

typedef struct engine_result {
    double loss;       /* mean over the global batch */
    double grad_norm;  /* before clipping; NaN if it is not computed */
    size_t samples;    /* of the global batch */
    double stop_asked; /* sum of engine->stop_asked over all ranks; the same on all ranks */
    bool skipped;      /* a gradient was not finite, so no parameter was updated; overflow.lines
                          report it */
    bool unloaded;     /* a rank could not load its samples, so no parameter was updated */
} engine_result;

/** An update whose outcome has not been read. */
typedef struct awaited_update {
    long number; /* counted from 1 */
    size_t samples;
    double stop_asked;
} awaited_update;

/** Updates at a place that computes them later (deferred_update.h). */
typedef struct deferred_updates {
    const train_dataset
        *kept;     /* its samples are kept at the place; borrowed; NULL: there is none */
    bool opened;   /* the place has been prepared */
    bool unloaded; /* the samples of the latest update could not be loaded */
    awaited_update awaited[PLACE_UPDATES_MAX]; /* a ring of count updates that begins at first */
    int first, count;
} deferred_updates;

typedef struct train_engine {
    /* Communicators. */
    grid_comms comms;
    ring_comm *world; /* all ranks; borrowed */
    ring_comm *comm;  /* comms.data: the data-parallel ranks of this stage and tensor rank */
    int ranks, rank;  /* size of comm, and this rank's number in it */

    /* Settings. */
    const train_config *config; /* borrowed */
    loss_kind loss;
    uint64_t seed;
    bool skips_norm; /* updates do not compute the norm of their gradients, unless they need it to
                        clip them or to adjust the loss scale. A gradient that is not finite is
                        then detected by the loss of the next update. The same on all ranks */
    bool waits;      /* updates are not deferred, so that their instructions have times, or because
                        there is no memory for it */
    double stop_asked; /* this rank's summand of engine_result.stop_asked in the next update: not 0
                          if this rank wants the run to stop */

    /* The network. The tensor ranks share the whole network, the pipeline cuts the share of this
     * tensor rank into stages, and the model is this rank's stage. */
    tensor_parallel tensor;
    train_pipeline pipeline;
    train_model model;
    size_t words; /* size of the vocabulary of a network for text; else 0 */

    /* The state of the training. */
    int zero_stage; /* stage of ZeRO; 0 if there is only one data-parallel rank */
    train_partition partition;
    zero_memory memory;
    train_offload offload;
    train_optimizer optimizer;
    overflow_watch overflow;
    float *gathered; /* results of engine_params(), each NULL until it is needed: the parameters of
                        this stage, gathered from its data-parallel ranks */
    float *whole;    /* parameters of all stages of the pipeline */
    float *united;   /* parameters of all tensor ranks */

    /* Schedules, and memory for running them. */
    update_schedule *updates; /* [config->accumulation], by the number of micro-batches minus 1;
                                 written when they are first needed */
    update_schedule evaluation;
    size_t evaluation_rows; /* most samples of a forward pass of the evaluation */
    ring_work **works;      /* [work_room] by instruction: works in flight, for update_run() */
    bool *runs;             /* [work_room] by instruction: whether its work is in flight */
    int work_room;
    update_scalars *scalars;
    double *norm_sums; /* [the larger of pipeline stages and tensor ranks][ranks] for grid_sum() */

    /* Samples. */
    float **images;   /* [slots] each [model.max_batch, features]; NULL except on the first stage */
    uint32_t *labels; /* [model.max_batch, labels of a sample] */
    placed_batch placed; /* all NULL on the host */
    deferred_updates deferred;
    engine_result computed; /* by engine_submit(), if the update is not deferred */
    bool has_computed;
    data_reader *reader; /* NULL: batches are read when they are needed */

    /* Measurements. busy and span do not count the first update, since it makes connections. */
    update_times times; /* of all instructions so far */
    double busy;        /* seconds spent in forward and backward passes */
    double span;        /* seconds from the start of each update to the end of its passes */
} train_engine;

/** @return the network of this tensor rank with the layers of all stages, and the table of its
 *  parameters. */
static inline const train_model *engine_staged_network(const train_engine *engine)
{
    return engine->pipeline.place.stages > 1 ? &engine->pipeline.whole : &engine->model;
}

/** @return the whole network, with the parameters of all tensor ranks. */
static inline const train_model *engine_network(const train_engine *engine)
{
    return engine->tensor.ranks > 1 ? &engine->tensor.whole : engine_staged_network(engine);
}

enum { ENGINE_AWAITED_MAX = PLACE_UPDATES_MAX };

/** Plans this rank's part of the network and its partition. Unlike engine_create(), it neither
 *  allocates the network's memory nor communicates.
 *  @param engine  its config, ranks, tensor.ranks and pipeline.place are set, all else is 0
 *  @param spec    the whole network
 *  @param samples_max  most samples of an update on this rank
 *  @return RING_OK, RING_ERR_CONFIG or RING_ERR_MEMORY. Free with engine_destroy() whatever the
 *  result. */
ring_status engine_plan(train_engine *engine, const model_spec *spec, size_t samples_max);

/** Checks whether a network can be trained at @p place, which may be NULL for the host.
 *  @return RING_OK or RING_ERR_UNSUPPORTED. */
ring_status engine_check_place(const nn_place *place, const train_config *config, int ranks);

/** This rank's share of an update. */
typedef struct engine_share {
    const uint32_t *order; /* [samples] numbers of the samples */
    size_t samples;        /* 0: this rank has no samples left but must still take part */
    size_t micro;          /* samples of a micro-batch; the last micro-batch may be short */
    size_t total;          /* samples of all ranks */
    int micro_batches;     /* of the rank that has the most; the same on all ranks */
    const uint32_t *next;  /* [next_samples] numbers of the next update's samples, to be read ahead;
                              valid until that update. NULL: not known */
    size_t next_samples;
} engine_share;

/** @return the share of data-parallel rank @p share in @p update (from 0) of an epoch.
 *  @param sampler  borrowed by the result. */
engine_share engine_share_of(const data_shares *shares, const train_sampler *sampler, int share,
                             size_t update);

/** Creates an engine and draws its initial parameters from @p seed. Collective over @p comm; fails
 * on all ranks if it fails on one.
 *  @param comm, config  borrowed until engine_destroy()
 *  @param spec  the whole network; it outputs one number per class, for text at each token
 *  @param samples_max  most samples of an update on this rank. Free with engine_destroy()
 *  whatever the result. */
ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max,
                          uint64_t seed);
void engine_destroy(train_engine *engine);

/** Starts @p threads threads that read the next micro-batch while the current one is being
 * computed; with 0 it does nothing. Call it at most once, after engine_create(). */
ring_status engine_read_ahead(train_engine *engine, int threads);

/** Runs one update, in which all ranks have the same number of samples. Collective.
 *  @param order  [samples] numbers of this rank's samples, at most config->accumulation
 *  micro-batches; the stages of a pipeline must pass the same numbers
 *  @param lr  learning rate
 *  @param[out] result  the same on all ranks
 *  @return RING_OK, also for an update that 16-bit training skips because a gradient is not finite.
 *  Otherwise, if a loss or gradient is not finite (with skips_norm, only the loss), or if a rank
 *  cannot load its samples, all ranks return the same error, and no parameter has changed. */
ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result);

/** Returns the schedule of an update, and writes it if it is needed for the first time.
 *  @param micro_batches  1 to config->accumulation
 *  @param[out] schedule  valid until engine_destroy(). @return RING_OK or RING_ERR_MEMORY. */
ring_status engine_schedule(train_engine *engine, int micro_batches,
                            const update_schedule **schedule);

/** As engine_update(), but ranks may have different numbers of samples. Collective.
 *  @param share  its micro is at most config->micro_batch */
ring_status engine_update_share(train_engine *engine, const train_dataset *dataset,
                                const engine_share *share, double lr, engine_result *result);

/** Keeps the samples of @p dataset at the place of the network, if it is not the host, and if they
 *  are images and fit. Call it before the first update.
 *  @param dataset  borrowed until engine_destroy(). @return RING_OK or a failure of the place. */
ring_status engine_keep_samples(train_engine *engine, const train_dataset *dataset);

/** As engine_update_share(), but a GPU may compute the update after this call, and its result is
 *  returned by engine_collect(). At most ENGINE_AWAITED_MAX results may be left uncollected, and
 *  all must be collected before other functions of the engine are called. */
ring_status engine_submit(train_engine *engine, const train_dataset *dataset,
                          const engine_share *share, double lr);
/** Returns the result of the earliest update that has not been collected.
 *  @param wait  waits for it; false: returns it only if it has been computed
 *  @param[out] found  whether there is a result. @return as engine_update_share() for that update;
 *  after an error there are no further results. */
ring_status engine_collect(train_engine *engine, bool wait, engine_result *result, bool *found);

/** Checks that every parameter is finite; otherwise it fails on all ranks and names a tensor.
 *  Collective. Updates check only losses and gradients, so the last update needs this check. */
ring_status engine_check_params(train_engine *engine);

/** Quality of a network; both numbers are means over labels. */
typedef struct engine_score {
    double accuracy; /* share of labels that are predicted correctly, 0 to 1 */
    double loss;
} engine_score;

/** Computes the score on @p dataset, of which each data-parallel rank takes a part. Collective; the
 *  result is the same on all ranks. */
ring_status engine_evaluate(train_engine *engine, const train_dataset *dataset,
                            engine_score *score);

/** Computes outputs as an evaluation does. Collective; call offload_leave() after the last batch.
 *  @param begin, rows  samples begin to begin + rows - 1 of @p dataset, at most evaluation_rows.
 * With 0 rows this rank takes part without samples
 *  @param[out] outputs [rows, output], on all stages of a pipeline */
ring_status engine_outputs(train_engine *engine, const train_dataset *dataset, size_t begin,
                           size_t rows, float *outputs);

/** Returns the outputs of the last forward pass of @p rows samples in slot 0.
 *  @param[out] outputs  [rows, output] on the host; valid until the next pass. */
ring_status engine_read_outputs(const train_engine *engine, size_t rows, const float **outputs);

/** Gathers all parameters, as the optimiser stores them: the masters if there are any. Collective.
 *  @param[out] params  in the engine's memory, by the offsets of engine_network()'s table; valid
 *  until the next update. */
ring_status engine_params(train_engine *engine, const float **params);

/** @return bytes of state that this rank keeps all the time: parameters, gradients, masters and the
 *  optimiser's states, without live buckets. */
size_t engine_state_bytes(const train_engine *engine);

/** @return bytes of the buffers for samples and labels, including those of the reader. */
size_t engine_batch_bytes(const train_engine *engine);

#endif
