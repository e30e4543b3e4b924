/* SPDX-License-Identifier: Apache-2.0
 * Solves train_batch = micro_batch * accumulation * ranks for the sizes that are missing. If the
 * given sizes do not fit, the error lists the changes that would make them fit. */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "errors.h"

enum { ADVICE_BYTES = 512 };

/* Derives missing sizes by DeepSpeed's rules. Divisions that leave a remainder are detected later,
 * when the product of the sizes is compared with train_batch. */
static ring_status derive(train_config *config, long ranks)
{
    long *train = &config->train_batch, *micro = &config->micro_batch,
         *accumulation = &config->accumulation;
    if (*train != 0 && *micro != 0 && *accumulation == 0)
        *accumulation = *train / *micro / ranks;
    else if (*train != 0 && *micro == 0 && *accumulation != 0)
        *micro = *train / ranks / *accumulation;
    else if (*accumulation == 0)
        *accumulation = 1;
    if (*micro == 0 && *accumulation == 1)
        *micro = *train / ranks;
    long product;
    if (__builtin_mul_overflow(*micro * *accumulation, ranks, &product))
        return train_fail(
            RING_ERR_CONFIG,
            "a batch of %ld * %ld * %ld samples is too large; reduce one of the factors", *micro,
            *accumulation, ranks);
    if (*train == 0)
        *train = product;
    return RING_OK;
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, ADVICE_BYTES - used, format, args);
    va_end(args);
}

/* Lists the changes of one size that would make the sizes fit. */
static void advise(const train_config *config, long ranks, char *text)
{
    const long train = config->train_batch, micro = config->micro_batch,
               accumulation = config->accumulation;
    const char *comma = "";
    text[0] = '\0';
    if (train % (micro * ranks) == 0) {
        append(text, "gradient_accumulation_steps %ld", train / (micro * ranks));
        comma = ", or ";
    }
    append(text, "%strain_batch_size %ld", comma, micro * accumulation * ranks);
    if (train % (micro * accumulation) == 0)
        append(text, ", or %ld rank%s", train / (micro * accumulation),
               train == micro * accumulation ? "" : "s");
}

static ring_status explain_product(const train_config *config, long ranks, const char *launcher)
{
    char ways[ADVICE_BYTES];
    advise(config, ranks, ways);
    return train_fail(
        RING_ERR_CONFIG,
        "Check batch related parameters. train_batch_size is not equal to "
        "micro_batch_per_gpu * gradient_acc_step * world_size %ld != %ld * %ld * "
        "%ld\none of these changes makes them fit: %s\nthe number of ranks is %ld, from %s",
        config->train_batch, config->micro_batch, config->accumulation, ranks, ways, ranks,
        launcher);
}

static ring_status explain_zero(const train_config *config, long ranks, const char *launcher)
{
    if (config->micro_batch < 1)
        return train_fail(RING_ERR_CONFIG,
                          "Micro batch size per gpu: %ld has to be greater than 0; "
                          "train_batch_size %ld is too small for %ld rank%s (from %s)",
                          config->micro_batch, config->train_batch, ranks, plural((double)ranks),
                          launcher);
    return train_fail(RING_ERR_CONFIG,
                      "Gradient accumulation steps: %ld has to be greater than 0; train_batch_size "
                      "%ld is less than micro-batch %ld times %ld rank%s (from %s)",
                      config->accumulation, config->train_batch, config->micro_batch, ranks,
                      plural((double)ranks), launcher);
}

/* ---- Micro-batches that differ between ranks ----------------------------------------------- */

static ring_status explain_list(const train_config *config, long pass, const char *launcher)
{
    char ways[ADVICE_BYTES] = "";
    if (config->train_batch % pass == 0)
        append(ways, "gradient_accumulation_steps %ld, or ", config->train_batch / pass);
    return train_fail(RING_ERR_CONFIG,
                      "train_batch_size %ld is not the sum of train_micro_batch_size_per_gpu, %ld, "
                      "times gradient_accumulation_steps %ld\none of these changes makes them fit: "
                      "%strain_batch_size %ld\nthe number of ranks is %d, from %s",
                      config->train_batch, pass, config->accumulation, ways,
                      pass * config->accumulation, config->micro_batches.count, launcher);
}

/* Completes the sizes if each rank has its own micro-batch size. */
static ring_status resolve_list(train_config *config, int ranks, const char *launcher,
                                batch_policy policy)
{
    const rank_numbers *micro = &config->micro_batches;
    long pass = 0, product;
    for (int r = 0; r < micro->count; r++)
        pass += micro->values[r];
    if (micro->count != ranks)
        return train_fail(RING_ERR_CONFIG,
                          "train_micro_batch_size_per_gpu lists %d rank%s, but there %s %d, from "
                          "%s; list one number for each rank",
                          micro->count, plural(micro->count), ranks == 1 ? "is" : "are", ranks,
                          launcher);
    if (config->accumulation == 0)
        config->accumulation = config->train_batch >= pass ? config->train_batch / pass : 1;
    if (__builtin_mul_overflow(pass, config->accumulation, &product))
        return train_fail(RING_ERR_CONFIG,
                          "a batch of %ld * %ld samples is too large; reduce one of the factors",
                          pass, config->accumulation);
    if (config->train_batch == 0)
        config->train_batch = product;
    if (policy == BATCH_KEEP_GLOBAL && config->train_batch % pass == 0)
        config->accumulation = config->train_batch / pass;
    if (config->train_batch != pass * config->accumulation)
        return explain_list(config, pass, launcher);
    return RING_OK;
}

/* ---- The public call ----------------------------------------------------------------------- */

ring_status config_resolve_batch(train_config *config, int ranks, const char *launcher,
                                 batch_policy policy)
{
    const rank_numbers *partition = &config->data_partition;
    if (config->train_batch == 0 && config->micro_batch == 0)
        return train_fail(
            RING_ERR_CONFIG,
            "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided");
    if (partition->count > 0 && (!partition->listed || partition->count != ranks))
        return train_fail(RING_ERR_CONFIG,
                          "data_partition must list one number for each of the %d rank%s (from %s)",
                          ranks, plural(ranks), launcher);
    if (config->micro_batches.listed)
        return resolve_list(config, ranks, launcher, policy);
    RING_TRY(derive(config, ranks));
    if (config->micro_batch < 1 || config->accumulation < 1)
        return explain_zero(config, ranks, launcher);
    /* Adapt a file that was written for another number of ranks: keep the global batch, and change
     * the accumulation. */
    const long pass = config->micro_batch * ranks;
    if (policy == BATCH_KEEP_GLOBAL && config->train_batch % pass == 0)
        config->accumulation = config->train_batch / pass;
    if (config->train_batch != pass * config->accumulation)
        return explain_product(config, ranks, launcher);
    config->micro_batches = (rank_numbers){.count = 1, .values = {config->micro_batch}};
    return RING_OK;
}
