/* SPDX-License-Identifier: Apache-2.0
 * Holds two tables. The first has fixed values: those of transformers' TrainingArguments, except
 * for the optimizer's rate and betas. The second has functions for values that the file alone does
 * not decide. */
#include "auto_values.h"

#include <stdio.h>
#include <string.h>

#include "keys.h"

enum { NOTE_BYTES = 160, UNKNOWN = -1 };

static const struct {
    const char *path, *value;
} table[] = {
    {"train_micro_batch_size_per_gpu", "8"},
    {"gradient_accumulation_steps", "1"},
    {"gradient_clipping", "1.0"},
    {"fp16.enabled", "false"},
    {"bf16.enabled", "false"},
    {"amp.enabled", "false"},
    {"amp.opt_level", "\"O1\""},
    {"optimizer.params.lr", "2e-4"},
    {"optimizer.params.betas", "[0.9, 0.99]"},
    {"optimizer.params.eps", "1e-8"},
    {"optimizer.params.weight_decay", "0"},
    {"scheduler.params.warmup_min_lr", "0"},
    {"scheduler.params.warmup_max_lr", ""}, /* the optimizer's rate */
    {"scheduler.params.warmup_type", "\"log\""},
    {"scheduler.params.last_batch_iteration", "-1"},
    /* TrainingArguments has 0, which DeepSpeed's schedules treat as 2. */
    {"scheduler.params.warmup_num_steps", "2"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", "true"},
    {"zero_optimization.sub_group_size", "1e9"},
    {"zero_optimization.stage3_max_live_parameters", "1e9"},
    {"zero_optimization.stage3_max_reuse_distance", "1e9"},
    {"zero_optimization.allgather_bucket_size", "5e8"},
    {"zero_optimization.allgather_partitions", "true"},
    {"zero_optimization.contiguous_gradients", "true"},
    {"zero_optimization.reduce_scatter", "true"},
};

typedef long late_value(const train_config *config, const automatic_facts *facts);

static long if_known(bool known, double value)
{
    return known ? (long)value : UNKNOWN;
}

static long train_batch_of(const train_config *config, const automatic_facts *facts)
{
    (void)facts;
    return config->train_batch;
}

static long stages_of(const train_config *config, const automatic_facts *facts)
{
    (void)facts;
    return config->pipeline.stages;
}

static long bucket_of(const train_config *config, const automatic_facts *facts)
{
    const double width = (double)facts->width;
    (void)config;
    return if_known(facts->width > 0, width * width);
}

static long prefetch_of(const train_config *config, const automatic_facts *facts)
{
    const double width = (double)facts->width;
    (void)config;
    return if_known(facts->width > 0, 0.9 * width * width);
}

static long persistence_of(const train_config *config, const automatic_facts *facts)
{
    (void)config;
    return if_known(facts->width > 0, 10.0 * (double)facts->width);
}

static long total_of(const train_config *config, const automatic_facts *facts)
{
    (void)config;
    return if_known(facts->updates > 0, (double)facts->updates);
}

/* In the order of the bits of train_config.automatic. */
static const struct late_key {
    const char *path;
    late_value *value;
} late[] = {
    {"train_batch_size", train_batch_of},
    {"pipeline.stages", stages_of},
    {"zero_optimization.reduce_bucket_size", bucket_of},
    {"zero_optimization.stage3_prefetch_bucket_size", prefetch_of},
    {"zero_optimization.stage3_param_persistence_threshold", persistence_of},
    {"scheduler.params.total_num_steps", total_of},
};

enum { LATE_KEYS = sizeof late / sizeof late[0] };

const char *automatic_value(const char *path)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].path, path) == 0)
            return table[i].value;
    return NULL;
}

bool automatic_later(train_config *config, const char *path)
{
    for (size_t i = 0; i < LATE_KEYS; i++) {
        if (strcmp(late[i].path, path) == 0) {
            config->automatic |= 1U << i;
            return true;
        }
    }
    return false;
}

bool automatic_default(const char *path)
{
    static const char *const sections[] = {
        "zero_optimization.", "fp16.",  "bf16.",  "tensorboard.",
        "csv_monitor.",       "wandb.", "comet.", "tensor_parallel."};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strncmp(path, sections[i], strlen(sections[i])) == 0)
            return true;
    return false;
}

void automatic_optimizer(optimizer_config *optimizer)
{
    strcpy(optimizer->type, "AdamW");
    optimizer->lr = 2e-4;
    optimizer->betas[0] = 0.9;
    optimizer->betas[1] = 0.99;
}

void config_fill_automatic(train_config *config, const automatic_facts *facts, config_note_fn *note,
                           void *context)
{
    for (int i = 0; i < LATE_KEYS; i++) {
        char text[NOTE_BYTES];
        const config_key *key = config_key_find(late[i].path);
        const long value = late[i].value(config, facts);
        if ((config->automatic & 1U << i) == 0 || value == UNKNOWN)
            continue;
        if (key->use == USE_HONOURED && key->kind == KEY_INT)
            *(long *)((char *)config + key->field) = value;
        config->automatic &= ~(1U << i);
        snprintf(text, sizeof text, "%s: auto -> %ld", late[i].path, value);
        if (note != NULL)
            note(context, text);
    }
}

const char *config_open_automatic(const train_config *config)
{
    for (int i = 0; i < LATE_KEYS; i++) {
        if ((config->automatic & 1U << i) != 0)
            return late[i].path;
    }
    return NULL;
}
