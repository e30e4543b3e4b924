/* SPDX-License-Identifier: Apache-2.0
 * Prints lines about the network, precision, ZeRO and ranks, and omits those that do not apply. */
#include "start_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agree.h"
#include "errors.h"
#include "gemm.h"

enum { HOST_BYTES = 64 };

/* Prints the effect of ZeRO. With a pipeline, sizes differ between stages, so
 * pipeline_lines_start() prints them instead. */
static void print_zero(const train_engine *engine)
{
    if (engine->zero_stage > 0 && engine->pipeline.place.stages == 1)
        printf("ZeRO stage %d: each rank holds %zu bytes of model state, and %zu of the buckets in "
               "use\n",
               engine->zero_stage, engine_state_bytes(engine), zero_live_bytes(&engine->memory));
    if (engine->zero_stage == 3)
        printf("ZeRO stage 3 partitions %zu of %zu parameters\n",
               partition_split(&engine->partition), model_parameters(&engine->model));
    else if (engine->zero_stage == 0 && engine->config->zero_stage > 0)
        printf("ZeRO has no effect with one rank\n");
}

static void print_offload(const train_engine *engine)
{
    const offload_config *offload = &engine->config->offload;
    if (engine->offload.states.bytes > 0)
        printf("offload: %zu bytes of the optimizer's states of rank %d are in a file in %s\n",
               engine->offload.states.bytes, engine->rank, offload->states.nvme_path);
    else if (offload->states.device == OFFLOAD_NVME)
        printf("offload: the optimizer has no states to offload\n");
    if (engine->offload.params.bytes > 0)
        printf("offload: %zu bytes of the parameters of rank %d are in a file in %s\n",
               engine->offload.params.bytes, engine->rank, offload->params.nvme_path);
    else if (offload->params.device == OFFLOAD_NVME)
        printf("offload: parameters stay in memory, because there is only one rank\n");
}

static void print_tensor_ranks(const train_engine *engine)
{
    const tensor_parallel *tensor = &engine->tensor;
    if (tensor->ranks > 1)
        printf("tensor ranks: %d ranks share %d of %d layers; rank 0 holds %zu of %zu "
               "parameters%s\n",
               tensor->ranks, tensor_parallel_layers(tensor), tensor->whole.node_count,
               model_parameters(&engine->model), model_parameters(&tensor->whole),
               engine->pipeline.place.stages > 1 ? " of its stage" : "");
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

static void print_data(const train_state *state)
{
    const idx_array *arrays[] = {&state->trainer.train.images, &state->trainer.train.labels,
                                 &state->trainer.test.images, &state->trainer.test.labels};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        bytes += arrays[i]->bytes;
    printf("data: %zu bytes in memory, %s\n", bytes,
           state->trainer.train.shared != NULL ? "shared by the ranks of a host" : "on each rank");
}

/* Prints the memory of the GPU, most of which the line about this rank's memory has in parts. */
static void print_gpu(const cuda_place *gpu)
{
    if (gpu->context != NULL)
        printf("memory on %s in bytes: %zu, for parameters, gradients, states, activations, a copy "
               "of the batch, the training images if they fit, and %d of workspaces; the batch is "
               "also on the host\n",
               gpu->name, gpu->bytes, CUDA_LANES_BYTES);
}

/* Prints the path that gradients take if the algorithm is a ring: the order of the ranks. */
static void print_ring(const train_grid *grid, const char (*hosts)[HOST_BYTES])
{
    printf("path of gradients%s:", grid->stages * grid->tensors > 1 ? " in rank 0's group" : "");
    for (int share = 0; share < grid->shares; share++)
        printf(" rank %d on %s,", grid_rank(grid, 0, share, 0), hosts[share]);
    printf(" then rank 0\n");
}

/* Collective: gathers the names of hosts, and prints the ring. */
static ring_status report_ring(const train_state *state)
{
    ring_comm *comm = state->trainer.engine.comms.data;
    char(*hosts)[HOST_BYTES] = NULL;
    const size_t bytes = (size_t)state->trainer.grid.shares * sizeof *hosts;
    RING_TRY(agree(state->trainer.comm, train_alloc((void **)&hosts, bytes, "names of hosts")));
    char *mine = hosts[state->trainer.grid.share];
    gethostname(mine, HOST_BYTES - 1);
    const ring_status status = train_ring(comm, ring_all_gather(mine, hosts, HOST_BYTES, RING_UINT8,
                                                                comm, NULL));
    if (status == RING_OK && state->trainer.rank == 0 && state->trainer.grid.shares > 1)
        print_ring(&state->trainer.grid, (const char(*)[HOST_BYTES])hosts);
    free(hosts);
    return status;
}

/* Prints the lines that dump_state adds to the settings. */
static void print_ranks(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    grid_print_groups(&state->trainer.grid, stdout);
    if (ring_comm_get_info(state->trainer.comm, &info) == RING_OK)
        printf("ranks: %d on %d host%s, started by %s, transport %s\n", info.ranks, info.hosts,
               plural(info.hosts), info.launcher[0] != '\0' ? info.launcher : "no launcher",
               info.transport);
    partition_print(&state->trainer.engine.partition, stdout);
}

/* Warns if this host has less than one core for each rank and each of its reading threads, which
 * then wait for each other. */
static void warn_of_many_threads(const train_state *state)
{
    ring_comm_info info = {.size = sizeof info};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int readers = state->options->workers;
    if (ring_comm_get_info(state->trainer.comm, &info) != RING_OK)
        return;
    if (info.local_ranks > cores)
        printf("NOTE %d ranks share the %ld core%s of this host; fewer ranks would be faster\n",
               info.local_ranks, cores, plural((double)cores));
    else if ((long)info.local_ranks * (1 + readers) > cores)
        printf("NOTE %d rank%s with %d reader%s each share the %ld core%s of this host; a lower "
               "number of --workers may be faster\n",
               info.local_ranks, plural(info.local_ranks), readers, plural(readers), cores,
               plural((double)cores));
}

/* Prints how many samples are repeated or left out because the number of ranks does not divide
 * them. */
static void print_rest(const train_state *state)
{
    const size_t repeated = sampler_repeated(&state->trainer.sampler),
                 left_out = sampler_left_out(&state->trainer.sampler);
    const size_t rest = repeated + left_out;
    if (rest > 0)
        printf("%zu samples for %d ranks: %zu sample%s %s in each epoch\n",
               state->trainer.train.count, state->trainer.grid.shares, rest, plural(rest),
               repeated > 0 ? "repeated" : "left out");
}

static void print_lines(const train_state *state)
{
    printf("training %s (%zu parameters, loss %s) on %zu sample%s, testing on %zu, with %d rank%s; "
           "layers by %s on %s\n",
           state->trainer.spec.name, model_parameters(engine_network(&state->trainer.engine)),
           loss_names[state->trainer.loss], state->trainer.train.count,
           plural(state->trainer.train.count), state->trainer.test.count, state->trainer.ranks,
           plural(state->trainer.ranks), state->trainer.engine.model.place->maths(),
           state->trainer.engine.model.place->name);
    if (state->options->norm.channels > 0)
        printf("images are normalized, mean/std %s\n", state->options->norm.text);
    config_print(&state->trainer.config, state->trainer.config.dump_state, stdout);
    print_precision(&state->trainer.engine);
    if (state->trainer.grid.stages * state->trainer.grid.tensors > 1)
        grid_print(&state->trainer.grid, stdout);
    print_tensor_ranks(&state->trainer.engine);
    print_zero(&state->trainer.engine);
    print_offload(&state->trainer.engine);
    division_print(&state->trainer.config, &state->trainer.shares, state->trainer.train.count,
                   stdout);
    warn_of_many_threads(state);
    print_rest(state);
    print_gpu(&state->trainer.gpu);
    if (state->trainer.config.dump_state || state->trainer.config.memory_breakdown)
        print_data(state);
    if (state->trainer.config.dump_state)
        print_ranks(state);
}

ring_status start_lines_print(const train_state *state)
{
    if (state->trainer.rank == 0)
        print_lines(state);
    const ring_status status = state->trainer.config.dump_state ? report_ring(state) : RING_OK;
    fflush(stdout);
    return status;
}
