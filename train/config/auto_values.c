/* SPDX-License-Identifier: Apache-2.0
 * A table: transformers' TrainingArguments, but for the optimizer's rate. */
#include "auto_values.h"

#include <string.h>

static const struct {
    const char *path, *value;
} table[] = {
    {"train_batch_size", ""},
    {"data_partition", ""},
    {"train_micro_batch_size_per_gpu", "8"},
    {"gradient_accumulation_steps", "1"},
    {"gradient_clipping", "1.0"},
    {"fp16.enabled", "false"},
    {"bf16.enabled", "false"},
    {"optimizer.params.lr", "2e-4"},
    {"optimizer.params.betas", "[0.9, 0.99]"},
    {"optimizer.params.eps", "1e-8"},
    {"optimizer.params.weight_decay", "0"},
    {"scheduler.params.warmup_min_lr", "0"},
    {"scheduler.params.warmup_max_lr", "2e-4"},
    {"scheduler.params.warmup_num_steps", "1000"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", "true"},
    {"pipeline.stages", ""},
    {"zero_optimization.reduce_bucket_size", ""},
    {"zero_optimization.stage3_prefetch_bucket_size", ""},
    {"zero_optimization.stage3_param_persistence_threshold", ""},
};

const char *automatic_value(const char *path)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].path, path) == 0)
            return table[i].value;
    return NULL;
}

void automatic_optimizer(optimizer_config *optimizer)
{
    strcpy(optimizer->type, "AdamW");
    optimizer->lr = 2e-4;
    optimizer->betas[0] = 0.9;
    optimizer->betas[1] = 0.99;
}
