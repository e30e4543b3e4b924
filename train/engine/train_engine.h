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

/** Numbers that an update's instructions pass to each other. They stay at one address from
 *  engine_create() to engine_destroy(), in memory that can be sent, and instructions access them by
 *  address; the host reads them for reports, and to decide whether an update is skipped. */
typedef struct update_scalars {
    double loss; /* these three, [LOSS_SUMS], are summed over all ranks: the losses of samples, */
    double stop_asked; /* engine->stop_asked, */
    double unloaded;   /* and ranks that could not load their samples */
    double lr;         /* of the update */
    double grad_norm;  /* of the scaled gradients, before clipping; NaN: not asked for */
    double clip;       /* factor for the gradients: clips them and removes the loss scale */
} update_scalars;

typedef struct train_engine {
    /* This rank among the others. */
    grid_comms comms;
    ring_comm *world, *comm; /* of those: all ranks, and the data-parallel ranks */
    int ranks, rank;         /* of comm */

    /* The caller's wishes. */
    const train_config *config; /* borrowed */
    loss_kind loss;
    uint64_t seed;
    bool skips_norm; /* updates do not compute the norm of their gradients unless they clip or scale
                        the loss; a gradient that is not finite then shows in the next loss. The
                        same on all ranks */
    double stop_asked; /* this rank's summand of engine_result.stop_asked in the next update; 0
                          while the run continues */

    /* The network. The pipeline cuts the network of this tensor rank, and the model is one of its
     * stages. */
    tensor_parallel tensor;
    train_pipeline pipeline;
    train_model model;
    size_t words; /* of a network that takes text; else 0 */

    /* Its states. */
    int zero_stage; /* 0 on one rank */
    train_partition partition;
    zero_memory memory;
    train_offload offload;
    train_optimizer optimizer;
    overflow_watch overflow;
    float *gathered; /* parameters of the stage, where ZeRO has split them, */
    float *whole;    /* of all stages of a pipeline, */
    float *united;   /* and of all tensor ranks; each NULL until engine_params() */

    /* Instructions, and what carries them out. */
    update_schedule *updates; /* [config->accumulation], by micro-batches; made when needed */
    update_schedule evaluation;
    size_t evaluation_rows; /* samples of its forward pass */
    ring_work **works;      /* [work_room] of the instructions that run, for update_run() */
    bool *runs;             /* [work_room] */
    int work_room;
    update_scalars *scalars;
    double *norm_sums; /* [stages of the pipeline or tensor ranks, ranks] for grid_sum() */

    /* Samples. */
    float **images;      /* [slots] of [model.max_batch, features]; first stage */
    uint32_t *labels;    /* [model.max_batch, labels of a sample] */
    data_reader *reader; /* NULL: batches are taken when they are needed */

    /* Measured. */
    update_times times; /* of all instructions so far */
    double busy, span;  /* seconds of computing passes, and of updates until all passes have ended;
                           without the first update, which makes connections */
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

typedef struct engine_result {
    double loss;       /* mean over the global batch */
    double grad_norm;  /* before clipping; NaN if it is not computed */
    size_t samples;    /* of the global batch */
    double stop_asked; /* the sum over the ranks: the same on all of them */
    bool skipped;  /* gradients were not finite: nothing was updated, and overflow.lines say why */
    bool unloaded; /* a rank could not load its samples: nothing was done */
} engine_result;

/** Makes the network and its partition as engine_create() does, without the ranks and the memory of
 *  the network.
 *  @param engine  with config, ranks, number of tensor ranks and the pipeline's place
 *  @param spec    the whole network
 *  Free with engine_destroy() whatever the result. */
ring_status engine_plan(train_engine *engine, const model_spec *spec, size_t samples_max);

/** This rank's share of an update. */
typedef struct engine_share {
    const uint32_t *order; /* [samples] */
    size_t samples;        /* 0: this rank has none left but still takes part */
    size_t micro;          /* of a micro-batch; the last one may be short */
    size_t total;          /* samples of all ranks */
    int micro_batches;     /* of the rank that has most; the same on all */
    const uint32_t *next;  /* [next_samples] of the update after this one, to be read ahead; they
                              stay as they are until then. NULL: not known */
    size_t next_samples;
} engine_share;

/** @return the samples of data-parallel rank @p share in @p update of an epoch and in the next
 *  update.
 *  @param sampler  borrowed by the result. */
engine_share engine_share_of(const data_shares *shares, const train_sampler *sampler, int share,
                             size_t update);

/** Collective. The parameters start from @p seed.
 *  @param spec  the network: its output is one number a class, or that for each token
 *  @param samples_max  most samples of an update on this rank. Free with engine_destroy()
 *  whatever the result. */
ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max,
                          uint64_t seed);
void engine_destroy(train_engine *engine);

/** Makes @p threads threads read the next micro-batch while the current one is being computed; 0:
 *  no threads. Call it once, after engine_create(). */
ring_status engine_read_ahead(train_engine *engine, int threads);

/** Collective: one update.
 *  @param order  [samples] this rank's samples, cut into micro-batches; the same number on
 *  all ranks, at most those of config->accumulation micro-batches. Samples that a rank cannot load,
 *  and a loss or gradient that is not finite, stop all ranks with the same text, and no parameter
 *  is changed (with skips_norm only the loss is looked at); but in 16 bits an update whose
 *  gradients are not finite is skipped. With a pipeline @p order is the same on all its stages, and
 *  so is the result (DeepSpeed's train_batch). */
ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result);

/** @param[out] schedule  the list of an update of @p micro_batches micro-batches (1 to
 *  config->accumulation), valid as long as the engine. @return RING_OK or RING_ERR_MEMORY. */
ring_status engine_schedule(train_engine *engine, int micro_batches,
                            const update_schedule **schedule);

/** The same with ranks that have shares of their own, each micro at most config->micro_batch. */
ring_status engine_update_share(train_engine *engine, const train_dataset *dataset,
                                const engine_share *share, double lr, engine_result *result);

/** Collective: fails on all ranks, naming a tensor, unless every parameter is finite. An
 *  update checks the loss and the gradient that it starts from, not what it leaves. */
ring_status engine_check_params(train_engine *engine);

/** Quality of a network; both numbers are means over labels. */
typedef struct engine_score {
    double accuracy; /* the share that is classified rightly */
    double loss;
} engine_score;

/** Collective. The score on @p dataset, of which each rank takes a part. */
ring_status engine_evaluate(train_engine *engine, const train_dataset *dataset,
                            engine_score *score);

/** Collective: forward as in an evaluation.
 *  @param begin, rows  samples of @p dataset, at most evaluation_rows; 0: this rank takes part
 *  @param[out] outputs [rows, output], on all stages of a pipeline. Call offload_leave() after the
 *  last batch. */
ring_status engine_outputs(train_engine *engine, const train_dataset *dataset, size_t begin,
                           size_t rows, float *outputs);

/** Collective. @param[out] params all parameters by the offsets of engine_network()'s table, as the
 *  optimiser stores them (masters if there are any); valid until the next update. */
ring_status engine_params(train_engine *engine, const float **params);

/** @return bytes of model state on this rank: parameters, gradients, masters and optimiser's states
 *  that it keeps, without live buckets. */
size_t engine_state_bytes(const train_engine *engine);

/** @return bytes of the samples and labels of a micro-batch. */
size_t engine_batch_bytes(const train_engine *engine);

#endif
