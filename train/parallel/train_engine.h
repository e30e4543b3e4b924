/* SPDX-License-Identifier: Apache-2.0
 *
 * engine: data-parallel training. Every rank holds the whole model and takes its part of
 * each global batch. Gradients are sums over samples divided by the samples of the whole
 * global batch, so any number of ranks and micro-batches computes the same step up to
 * rounding, a short last batch included; every rank holds the same bits.
 */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include <ring/ring.h>

#include "config.h"
#include "dataset.h"
#include "loss.h"
#include "model.h"
#include "optimizer.h"

typedef struct train_engine {
    ring_comm *comm; /* borrowed */
    int ranks, rank;
    const train_config *config; /* borrowed */
    loss_kind loss;
    uint64_t seed;
    train_model model;
    train_optimizer optimizer;
    float *params, *grads; /* [model.tensors.elements], shared memory of the ranks of a host */
    double *loss_total;    /* one element, in shared memory too */
    ring_buckets *buckets;
    float *images;   /* [model.max_batch, features] */
    uint8_t *labels; /* [model.max_batch] */
} train_engine;

typedef struct engine_result {
    double loss;      /* mean over the global batch */
    double grad_norm; /* before clipping */
    size_t samples;   /* of the global batch */
} engine_result;

/** Collective. The parameters start from @p seed on rank 0 and are sent to all.
 *  @param spec  the network: its output is one number a class
 *  @param samples_max  most samples of an update on this rank. Free with engine_destroy()
 *  whatever the result. */
ring_status engine_create(train_engine *engine, ring_comm *comm, const train_config *config,
                          loss_kind loss, const model_spec *spec, size_t samples_max,
                          uint64_t seed);
void engine_destroy(train_engine *engine);

/** Collective: one update.
 *  @param order  [samples] this rank's samples, cut into micro-batches; the same number on
 *  all ranks. A loss or gradient that is not finite stops all ranks with the same text, and
 *  no parameter is changed. */
ring_status engine_update(train_engine *engine, const train_dataset *dataset, const uint32_t *order,
                          size_t samples, double lr, engine_result *result);

/** Collective: fails on all ranks, naming a tensor, unless every parameter is finite. An
 *  update checks the loss and the gradient that it starts from, not what it leaves. */
ring_status engine_check_params(train_engine *engine);

/** Collective. @return through @p accuracy the share of @p dataset that is classified
 *  rightly; each rank takes a part of it. */
ring_status engine_accuracy(train_engine *engine, const train_dataset *dataset, double *accuracy);

#endif
