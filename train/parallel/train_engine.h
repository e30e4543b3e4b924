/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: data-parallel training, of a whole network or of a stage of a pipeline. Every rank takes
 * its part of each global batch; of its stage's states it holds what the stage of ZeRO leaves it.
 * Gradients are sums over samples divided by the samples of the whole global batch, so any number
 * of ranks and micro-batches computes the same step up to rounding, a short last batch included;
 * parameters have the same bits everywhere.
 */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include <ring/ring.h>

#include "config.h"
#include "dataset.h"
#include "grid.h"
#include "loss.h"
#include "model.h"
#include "optimizer.h"
#include "overflow.h"
#include "pipeline.h"
#include "step_schedule.h"
#include "step_times.h"
#include "zero_memory.h"

typedef struct train_engine {
    ring_comm *world;           /* borrowed; all ranks */
    ring_comm *comm, *pipe;     /* ranks that share the data out, and stages: grid_join() */
    int ranks, rank;            /* of comm */
    int stage;                  /* of ZeRO; 0 on one rank */
    const train_config *config; /* borrowed */
    loss_kind loss;
    uint64_t seed;
    train_pipeline pipeline;
    train_model model; /* of this rank's stage */
    train_partition partition;
    zero_memory memory;
    train_optimizer optimizer;
    overflow_watch overflow;
    step_schedule *updates; /* [config->accumulation], by micro-batches; made when needed */
    step_schedule evaluation;
    size_t words;           /* of a network that takes text; else 0 */
    size_t evaluation_rows; /* samples of its forward pass */
    ring_work **works;      /* [work_room] of the instructions that run, for step_run() */
    bool *runs;             /* [work_room] */
    int work_room;
    double *norm_sums;  /* [stages of the pipeline, ranks] */
    float *gathered;    /* parameters of the stage, where ZeRO has split them */
    float *whole;       /* and of all stages of a pipeline */
    double *loss_total; /* [2] the loss, and stop_asked, summed over the ranks; in memory
                           that they share */
    double stop_asked;  /* what this rank adds to the sum that the next update tells all
                           ranks: 0 while nobody wants the run to end */
    float *images;      /* [slots, model.max_batch, features]; first stage */
    uint16_t *labels;   /* [model.max_batch, labels of a sample] */
    step_times times;   /* of all instructions so far */
    double busy, span;  /* seconds of computing passes, and of updates until all passes have ended;
                           without the first update, which makes connections */
} train_engine;

typedef struct engine_result {
    double loss;       /* mean over the global batch */
    double grad_norm;  /* before clipping */
    size_t samples;    /* of the global batch */
    double stop_asked; /* the sum over the ranks: the same on all of them */
    bool skipped;      /* gradients were not finite: nothing was updated, overflow.lines say why */
} engine_result;

/** Makes the network and its partition as engine_create() does, without the ranks.
 *  @param engine  with config, ranks and the pipeline's place
 *  @param part    this rank's stage of the network @p spec; the same without a pipeline
 *  Free with engine_destroy() whatever the result. */
ring_status engine_plan(train_engine *engine, const model_spec *spec, const model_spec *part,
                        size_t samples_max);

/** What this rank does of an update. */
typedef struct engine_share {
    const uint32_t *order; /* [samples] */
    size_t samples;        /* 0: this rank has none left, but takes part */
    size_t micro;          /* of a micro-batch; the last one may be short */
    size_t total;          /* samples of all ranks */
    int micro_batches;     /* of the rank that has most; the same on all */
} engine_share;

/** Collective. The parameters start from @p seed.
 *  @param spec  the network: its output is one number a class, or that for each token
 *  @param samples_max  most samples of an update on this rank. Free with engine_destroy()
 *  whatever the result. */
ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max,
                          uint64_t seed);
void engine_destroy(train_engine *engine);

/** Collective: one update.
 *  @param order  [samples] this rank's samples, cut into micro-batches; the same number on
 *  all ranks, at most those of config->accumulation micro-batches. A loss or gradient that is not
 *  finite stops all ranks with the same text, and no parameter is changed; but in 16 bits an update
 *  whose gradients are not finite is skipped. With a
 *  pipeline @p order is the same on all its stages, and so is the result (DeepSpeed's
 *  train_batch). */
ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result);

/** The same with ranks that have shares of their own, each micro at most config->micro_batch. */
ring_status engine_update_share(train_engine *engine, const train_dataset *dataset,
                                const engine_share *share, double lr, engine_result *result);

/** Collective: fails on all ranks, naming a tensor, unless every parameter is finite. An
 *  update checks the loss and the gradient that it starts from, not what it leaves. */
ring_status engine_check_params(train_engine *engine);

/** How good a network is: both are means over labels. */
typedef struct engine_score {
    double accuracy; /* the share that is classified rightly */
    double loss;
} engine_score;

/** Collective. The score on @p dataset, of which each rank takes a part. */
ring_status engine_evaluate(train_engine *engine, const train_dataset *dataset,
                            engine_score *score);

/** @return the network with the layers of all stages, and the table of its parameters. */
const train_model *engine_network(const train_engine *engine);

/** Collective. @param[out] params  all parameters by the offsets of engine_network()'s table, as
 * the optimiser has them: masters, where there are any; valid until the next update. */
ring_status engine_params(train_engine *engine, const float **params);

/** @return bytes of model state on this rank: parameters, gradients, masters and optimiser's states
 *  that it keeps, without live buckets. */
size_t engine_state_bytes(const train_engine *engine);

/** @return bytes of the samples and labels of a micro-batch. */
size_t engine_batch_bytes(const train_engine *engine);

#endif
