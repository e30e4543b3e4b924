/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_ranks: engines whose ranks are threads of the test. A test has a struct for a run and what
 * one rank sees of it, which begins with an engine_rank, and a function that a rank runs with its
 * engine; communicators, networks, engines, errors and threads are here.
 */
#ifndef TEST_TRAIN_ENGINE_RANKS_H
#define TEST_TRAIN_ENGINE_RANKS_H

#include <train_engine.h>

#include "check.h"
#include "errors.h"

enum { ENGINE_RANKS_MAX = 8 };

/** Where a rank is, and how it ended. */
typedef struct engine_rank {
    int ranks, rank;
    ring_comm *comm;
    ring_status status;
    char error[TRAIN_ERROR_MAX]; /* "" after RING_OK */
} engine_rank;

/** The work of all ranks of a run. */
typedef struct engine_job {
    const char *config; /* JSON; its batch is settled for the ranks */
    const char *model;
    ring_status (*build)(model_spec *spec, const char *model); /* NULL: model_build() */
    loss_kind loss;
    size_t samples;        /* most of an update on a rank */
    const char *algorithm; /* of collectives; NULL: any */
    ring_status (*work)(train_engine *engine, void *rank);
} engine_job;

/** @return a configuration, with its grid and batch sizes settled for @p ranks; a wrong one ends
 * the test. */
train_config engine_config(const char *text, int ranks);

/** Runs a job on @p ranks ranks.
 *  @param runs  [ranks] of @p size bytes each, which begin with an engine_rank; the first is copied
 *  to all others before they start */
void engine_ranks_run(const engine_job *job, int ranks, void *runs, size_t size);

/** Fails the test with @p what, the first rank that failed, and its error. */
void engine_ranks_expect(int ranks, const void *runs, size_t size, const char *what);

/** Collective. @param[out] hash  of all parameters, tensor by tensor in the order of the network,
 *  without the zeros between buckets */
ring_status engine_params_hash(train_engine *engine, uint64_t *hash);

#endif
