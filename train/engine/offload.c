/* SPDX-License-Identifier: Apache-2.0
 * Decides which arrays are in files, and lets an update walk over all of these arrays in step. */
#include "offload.h"

#include "agree.h"

#define STATES_KEY "zero_optimization.offload_optimizer.nvme_path"
#define PARAMS_KEY "zero_optimization.offload_param.nvme_path"

/* An update processes this fraction of a window at a time, so that it spends several steps in a
 * window while the next window is read. */
enum { BLOCK_SHARE = 4 };

void offload_plan(const offload_config *config, zero_memory *memory)
{
    zero_array *params = &memory->arrays[ZERO_PARAMS];
    memory->arrays[ZERO_MASTERS].outside = zero_has_own(memory, ZERO_MASTERS) &&
                                           config->states.device == OFFLOAD_NVME;
    params->outside = params->layout == LAYOUT_KEPT && config->params.device == OFFLOAD_NVME;
}

static size_t param_bytes(const zero_memory *memory, size_t updated)
{
    const zero_array *params = &memory->arrays[ZERO_PARAMS];
    return params->outside ? mapped_file_room(updated * precision_size(params->type)) : 0;
}

static size_t state_bytes(const train_config *config, const zero_memory *memory, size_t updated)
{
    const size_t room = mapped_file_room(updated * sizeof(float));
    size_t bytes = memory->arrays[ZERO_MASTERS].outside ? room : 0;
    for (int s = 0; s < OPTIMIZER_STATES && config->offload.states.device == OFFLOAD_NVME; s++)
        bytes += optimizer_state_name(&config->optimizer, s) != NULL ? room : 0;
    return bytes;
}

size_t offload_bytes(const train_config *config, const zero_memory *memory, size_t updated)
{
    return state_bytes(config, memory, updated) + param_bytes(memory, updated);
}

static void *add_array(train_offload *offload, mapped_file *file, const offload_config *config,
                       size_t updated, size_t size)
{
    const int number = offload->array_count++;
    /* The windows of all arrays have the same number of elements. */
    const size_t window = (size_t)config->block_size * size / sizeof(float);
    offload->sizes[number] = size;
    offload->arrays[number] = mapped_file_take(file, updated * size, window,
                                               (size_t)config->queue_depth);
    return offload->arrays[number].data;
}

ring_status offload_open(train_offload *offload, const train_config *config, zero_memory *memory,
                         size_t updated, float *states[OPTIMIZER_STATES])
{
    const offload_config *wanted = &config->offload;
    *offload = (train_offload){0};
    RING_TRY(mapped_file_open(&offload->states, STATES_KEY, wanted->states.nvme_path,
                              state_bytes(config, memory, updated)));
    RING_TRY(mapped_file_open(&offload->params, PARAMS_KEY, wanted->params.nvme_path,
                              param_bytes(memory, updated)));
    for (int s = 0; s < OPTIMIZER_STATES && wanted->states.device == OFFLOAD_NVME; s++) {
        if (optimizer_state_name(&config->optimizer, s) != NULL)
            states[s] = add_array(offload, &offload->states, wanted, updated, sizeof(float));
    }
    zero_array *masters = &memory->arrays[ZERO_MASTERS], *params = &memory->arrays[ZERO_PARAMS];
    if (masters->outside)
        masters->data = add_array(offload, &offload->states, wanted, updated, sizeof(float));
    if (params->outside)
        params->data = add_array(offload, &offload->params, wanted, updated,
                                 precision_size(params->type));
    return RING_OK;
}

void offload_close(train_offload *offload)
{
    mapped_file_close(&offload->states);
    mapped_file_close(&offload->params);
}

size_t offload_block(const train_offload *offload)
{
    if (offload->array_count == 0)
        return SIZE_MAX;
    return offload->arrays[0].window / offload->sizes[0] / BLOCK_SHARE;
}

bool offload_enter(train_offload *offload, size_t at, size_t count)
{
    for (int a = 0; a < offload->array_count && offload->failure.status == RING_OK; a++) {
        const size_t size = offload->sizes[a];
        train_failure_keep(&offload->failure,
                           mapped_array_enter(&offload->arrays[a], at * size, (at + count) * size));
    }
    return offload->failure.status == RING_OK;
}

void offload_read_params(train_offload *offload, void *to, const void *from, size_t bytes)
{
    if (offload->failure.status == RING_OK)
        train_failure_keep(&offload->failure, mapped_file_read(&offload->params, to, from, bytes));
}

bool offload_fetch(train_offload *offload, const void *at, size_t bytes, bool to_change)
{
    const mapped_file *files[] = {&offload->states, &offload->params};
    for (int f = 0; f < 2 && offload->failure.status == RING_OK; f++)
        train_failure_keep(&offload->failure, mapped_file_fetch(files[f], at, bytes, to_change));
    return offload->failure.status == RING_OK;
}

/* A rank that owns no parameters of its stage has no files, but must still take part in the
 * collective call. */
ring_status offload_leave(train_offload *offload, const offload_config *config, ring_comm *comm)
{
    if (config->states.device != OFFLOAD_NVME && config->params.device != OFFLOAD_NVME)
        return RING_OK;
    for (int a = 0; a < offload->array_count; a++)
        train_failure_keep(&offload->failure, mapped_array_leave(&offload->arrays[a]));
    return agree(comm, train_failure_tell(&offload->failure));
}
