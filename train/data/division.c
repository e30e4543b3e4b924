/* SPDX-License-Identifier: Apache-2.0
 * Computes the shares of the ranks from the configuration's keys about batches and data. */
#include "division.h"

#include "errors.h"

static ring_status take_partition(const rank_numbers *partition, size_t samples,
                                  data_shares *shares)
{
    size_t sum = 0;
    for (int r = 0; r < partition->count; r++) {
        shares->samples[r] = (size_t)partition->values[r];
        sum += shares->samples[r];
    }
    if (sum > samples)
        return train_fail(
            RING_ERR_CONFIG,
            "data_partition lists %zu samples, but the training set has %zu; list fewer, "
            "or write \"auto\"",
            sum, samples);
    return RING_OK;
}

/* Makes shares by the configuration's micro-batches or parts of the data for each rank. Without
 * these, makes equal shares as PyTorch does, which repeat or leave out a few samples. */
static ring_status divide(const train_config *config, size_t samples, int ranks,
                          data_shares *shares)
{
    const size_t n = (size_t)ranks;
    const bool repeats = samples % n != 0 && !config->sampler_drop_last;
    RING_TRY(shares_create(shares, ranks, (size_t)config->micro_batch, samples / n + repeats,
                           (size_t)config->accumulation));
    if (samples < (size_t)config->train_batch)
        return train_fail(RING_ERR_CONFIG,
                          "the training set has %zu sample%s, and an update takes %ld; give more "
                          "data or a train_batch_size of at most %zu",
                          samples, plural(samples), config->train_batch, samples);
    for (int r = 0; r < ranks && config->micro_batches.listed; r++)
        shares->micro[r] = (size_t)config->micro_batches.values[r];
    if (config->data_partition.count > 0)
        RING_TRY(take_partition(&config->data_partition, samples, shares));
    else if (config_has_shares(config))
        shares_deal(shares, samples);
    shares_settle(shares, config->drop_last, config->end == DATA_SHORTEST);
    if (shares->updates > 0)
        return RING_OK;
    return train_fail(
        RING_ERR_CONFIG,
        "an epoch of %zu samples on %d ranks, in micro-batches of %ld, has no update; "
        "give more data or smaller micro-batches, or change data_partition, data_end, "
        "dataloader_drop_last or sampler_drop_last",
        samples, ranks, config->micro_batch);
}

ring_status division_make(const train_config *config, size_t samples, int ranks, int rank,
                          uint64_t seed, data_shares *shares, train_sampler *sampler)
{
    const sampler_rule rule = {.seed = seed,
                               .in_order = !config->sampler_shuffle,
                               .drop_last = config->sampler_drop_last};
    RING_TRY(divide(config, samples, ranks, shares));
    if (config_has_shares(config))
        return sampler_create_shares(sampler, samples, shares, rank, &rule,
                                     config->split == DATA_CONTIGUOUS);
    return sampler_create(sampler, samples, ranks, rank, &rule);
}

void division_print(const train_config *config, const data_shares *shares, size_t samples,
                    FILE *out)
{
    size_t fewest = shares->updates, sum = 0;
    if (!config_has_shares(config))
        return;
    for (int r = 0; r < shares->ranks; r++) {
        const size_t updates = shares_updates(shares, r);
        fprintf(out, "rank %d: %zu sample%s in micro-batches of %zu: %zu update%s an epoch\n", r,
                shares->samples[r], plural(shares->samples[r]), shares->micro[r], updates,
                plural(updates));
        fewest = updates < fewest ? updates : fewest;
        sum += shares->samples[r];
    }
    if (fewest < shares->updates)
        fprintf(out,
                "ranks that run out of data wait for the others (\"data_end\": \"join\"); "
                "\"shortest\" would end an epoch after %zu update%s\n",
                fewest, plural(fewest));
    if (sum < samples)
        fprintf(out, "each epoch leaves out %zu of %zu samples\n", samples - sum, samples);
}
