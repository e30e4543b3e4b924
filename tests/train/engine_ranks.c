/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_ranks.h"

#include <builtin.h>
#include <gemm.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "parsing.h"

/* A thread's arguments. */
typedef struct engine_thread {
    const engine_job *job;
    const ring_unique_id *id;
    engine_rank *rank;
} engine_thread;

train_config engine_config(const char *text, int ranks)
{
    parsed got = parse(text);
    train_config *config = &got.config;
    if (got.status != RING_OK || config_resolve_tensor(config, 0, ranks, "") != RING_OK)
        fail_msg("%s: %s", text, train_error());
    const int others = ranks / (int)config->tensor_ranks;
    if (config_resolve_stages(config, 0, others, "") != RING_OK ||
        config_resolve_batch(config, others / (int)config->pipeline.stages, "", BATCH_EXACT) !=
            RING_OK)
        fail_msg("%s, %d ranks: %s", text, ranks, train_error());
    return *config;
}

static ring_status join(const engine_thread *thread)
{
    char algorithm[64];
    engine_rank *rank = thread->rank;
    snprintf(algorithm, sizeof algorithm, "RING_ALGO=%s",
             thread->job->algorithm != NULL ? thread->job->algorithm : "");
    const char *const settings[] = {algorithm, NULL};
    const ring_config how = {.size = sizeof how, .settings = settings};
    return ring_comm_init_config(&rank->comm, rank->ranks, thread->id, rank->rank, &how);
}

/* The engine goes before the configuration. */
static ring_status run_job(const engine_job *job, engine_rank *rank, const model_spec *spec)
{
    const train_config config = engine_config(job->config, rank->ranks);
    train_engine engine = {0};
    ring_status status = engine_create(&engine, rank->comm, &config, job->loss, spec, job->samples,
                                       1);
    if (status == RING_OK)
        status = job->work(&engine, rank);
    if (status != RING_OK)
        snprintf(rank->error, sizeof rank->error, "%s", train_error());
    engine_destroy(&engine);
    return status;
}

static void *run_rank(void *argument)
{
    const engine_thread *thread = argument;
    const engine_job *job = thread->job;
    engine_rank *rank = thread->rank;
    model_spec spec = {0};
    gemm_set_threads(1);
    rank->status = join(thread);
    if (rank->status == RING_OK)
        rank->status = (job->build != NULL ? job->build : model_build)(&spec, job->model);
    if (rank->status == RING_OK)
        rank->status = run_job(job, rank, &spec);
    else
        snprintf(rank->error, sizeof rank->error, "%s", train_error());
    model_spec_free(&spec);
    ring_comm_destroy(rank->comm);
    return NULL;
}

static engine_rank *rank_of(void *runs, size_t size, int rank)
{
    return (engine_rank *)(void *)((char *)runs + (size_t)rank * size);
}

void engine_ranks_run(const engine_job *job, int ranks, void *runs, size_t size)
{
    ring_unique_id id;
    pthread_t threads[ENGINE_RANKS_MAX];
    engine_thread arguments[ENGINE_RANKS_MAX];
    assert_in_range(ranks, 1, ENGINE_RANKS_MAX);
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 1; r < ranks; r++)
        memcpy(rank_of(runs, size, r), runs, size);
    for (int r = 0; r < ranks; r++) {
        engine_rank *rank = rank_of(runs, size, r);
        *rank = (engine_rank){.ranks = ranks, .rank = r};
        arguments[r] = (engine_thread){job, &id, rank};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &arguments[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
}

void engine_ranks_expect(int ranks, const void *runs, size_t size, const char *what)
{
    for (int r = 0; r < ranks; r++) {
        const engine_rank *rank = (const void *)((const char *)runs + (size_t)r * size);
        if (rank->status != RING_OK)
            fail_msg("%s, rank %d: %s", what, r, rank->error);
    }
}

ring_status engine_params_hash(train_engine *engine, uint64_t *hash)
{
    const tensor_table *tensors = &engine_network(engine)->tensors;
    const float *params;
    *hash = 0;
    RING_TRY(engine_params(engine, &params));
    for (int t = 0; t < tensors->count; t++)
        *hash = *hash * 31 +
                fnv1a(params + tensors->list[t].offset, tensors->list[t].count * sizeof *params);
    return RING_OK;
}
