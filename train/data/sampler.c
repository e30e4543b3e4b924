/* SPDX-License-Identifier: Apache-2.0
 * torch.randperm on the CPU, dealt to ranks. */
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "random.h"

ring_status sampler_create(train_sampler *sampler, size_t samples, int ranks, int rank,
                           uint64_t seed)
{
    memset(sampler, 0, sizeof *sampler);
    if (samples == 0 || samples >= UINT32_MAX / 20) /* beyond, PyTorch draws otherwise */
        return train_fail(RING_ERR_ARGUMENT, "cannot shuffle %zu samples", samples);
    sampler->samples = samples;
    sampler->ranks = (size_t)ranks;
    sampler->rank = (size_t)rank;
    sampler->seed = seed;
    sampler->per_rank = (samples + sampler->ranks - 1) / sampler->ranks;
    RING_TRY(train_alloc((void **)&sampler->permutation, samples * sizeof(uint32_t),
                         "the permutation of samples"));
    return train_alloc((void **)&sampler->order, sampler->per_rank * sizeof(uint32_t),
                       "the order of samples");
}

void sampler_destroy(train_sampler *sampler)
{
    free(sampler->permutation);
    free(sampler->order);
    memset(sampler, 0, sizeof *sampler);
}

static void permute(uint32_t *values, size_t count, uint64_t seed)
{
    train_random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < count; i++)
        values[i] = (uint32_t)i;
    for (size_t i = 0; i + 1 < count; i++) {
        const size_t other = i + random_u32(&random) % (uint32_t)(count - i);
        const uint32_t value = values[i];
        values[i] = values[other];
        values[other] = value;
    }
}

void sampler_set_epoch(train_sampler *sampler, uint64_t epoch)
{
    permute(sampler->permutation, sampler->samples, sampler->seed + epoch);
    for (size_t k = 0; k < sampler->per_rank; k++) {
        const size_t at = (k * sampler->ranks + sampler->rank) % sampler->samples;
        sampler->order[k] = sampler->permutation[at];
    }
}

size_t sampler_repeated(const train_sampler *sampler)
{
    return sampler->per_rank * sampler->ranks - sampler->samples;
}
