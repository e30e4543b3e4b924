/* SPDX-License-Identifier: Apache-2.0
 * Whether a pipeline goes with the ranks that there are, and with ZeRO. */
#include "config.h"

#include "errors.h"

static ring_status check_ranks(long stages, long ranks, const char *launcher)
{
    if (ranks % stages == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "%ld pipeline stages do not divide %ld rank%s (from %s); start %ld or %ld "
                      "ranks, or take other stages (pipeline.stages, --pipeline-parallel-size)",
                      stages, ranks, ranks == 1 ? "" : "s", launcher, stages, 2 * stages);
}

static bool is_float32(const precision_config *precision)
{
    return precision->params == RING_FLOAT32 && precision->grads == RING_FLOAT32 &&
           precision->wire == RING_FLOAT32;
}

ring_status config_resolve_stages(train_config *config, long asked, int ranks, const char *launcher)
{
    if (asked > 0)
        config->pipeline.stages = asked;
    if (config->pipeline.stages > 1 && config->zero_stage >= 2)
        return train_fail(RING_ERR_CONFIG,
                          "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism; set "
                          "zero_optimization.stage to 1");
    if (config->pipeline.stages > 1 && !is_float32(&config->precision))
        return train_fail(RING_ERR_UNSUPPORTED,
                          "pipelines with fp16, bf16, amp or communication_data_type are not "
                          "supported yet by this version: train in float32, or without stages");
    if (config->pipeline.interval > 0 &&
        (config->zero_stage == 3 || config->precision.params != RING_FLOAT32))
        return train_fail(RING_ERR_CONFIG,
                          "pipeline.activation_checkpoint_interval does not go with fp16, bf16 or "
                          "zero_optimization.stage 3, where the parameters are no longer there; "
                          "train in float32, in stage 2 or less");
    return check_ranks(config->pipeline.stages, ranks, launcher);
}
