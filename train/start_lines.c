/* SPDX-License-Identifier: Apache-2.0
 * Lines about network, precision, ZeRO and ranks. */
#include "start_lines.h"

#include <stdio.h>
#include <unistd.h>

#include "gemm.h"

/* With a pipeline stages differ: pipeline_lines_start() tells. */
static void print_zero(const train_engine *engine)
{
    if (engine->stage > 0 && engine->pipeline.place.stages == 1)
        printf("ZeRO stage %d: each rank holds %zu bytes of model state, and %zu of the buckets "
               "that it works on\n",
               engine->stage, engine_state_bytes(engine), zero_live_bytes(&engine->memory));
    else if (engine->stage == 0 && engine->config->zero_stage > 0)
        printf("ZeRO: one rank has nothing to split\n");
}

static void print_precision(const train_engine *engine)
{
    const precision_config *precision = &engine->config->precision;
    const char *params = precision_name(precision->params);
    const char *grads = precision_name(precision->grads), *wire = precision_name(precision->wire);
    if (precision->params != RING_FLOAT32 || precision->wire != RING_FLOAT32)
        printf("%s storage, fp32 arithmetic: parameters %s%s, gradients %s and sent as %s\n",
               params, params, precision->masters ? " with fp32 masters" : "", grads, wire);
}

/* What dump_state shows beside the settings. */
static void print_ranks(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    if (ring_comm_get_info(state->comm, &info) == RING_OK)
        printf("ranks: %d on %d host%s, started by %s, transport %s\n", info.ranks, info.hosts,
               info.hosts == 1 ? "" : "s", info.launcher[0] != '\0' ? info.launcher : "nobody",
               info.transport);
    partition_print(&state->engine.partition, stdout);
}

/* Then they wait for each other: every rank computes on one core at least. */
static void warn_of_many_ranks(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (ring_comm_get_info(state->comm, &info) == RING_OK && info.local_ranks > cores)
        printf("NOTE %d ranks share the %ld core%s of this host: more ranks make it slower\n",
               info.local_ranks, cores, cores == 1 ? "" : "s");
}

void start_lines_print(const train_state *state)
{
    if (state->rank != 0)
        return;
    printf("training %s (%zu parameters, loss %s) on %zu samples, testing on %zu, with %d rank%s; "
           "layers by %s\n",
           state->spec.name, model_parameters(engine_network(&state->engine)),
           loss_names[state->loss], state->train.count, state->test.count, state->ranks,
           state->ranks == 1 ? "" : "s", gemm_library());
    config_print(&state->config, state->config.dump_state, stdout);
    print_precision(&state->engine);
    print_zero(&state->engine);
    division_print(&state->config, &state->shares, state->train.count, stdout);
    warn_of_many_ranks(state);
    const size_t repeated = sampler_repeated(&state->sampler);
    if (repeated > 0)
        printf("%zu/%d ranks: %zu sample%s repeated an epoch\n", state->train.count,
               state->grid.shares, repeated, repeated == 1 ? "" : "s");
    if (state->config.dump_state)
        print_ranks(state);
    fflush(stdout);
}
