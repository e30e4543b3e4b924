/* SPDX-License-Identifier: Apache-2.0
 * Sets the number of pipeline stages, and checks it against the ranks and the stage of ZeRO. */
#include "config.h"

#include "errors.h"

ring_status config_resolve_stages(train_config *config, long asked, int ranks, const char *launcher)
{
    if (asked > 0)
        config->pipeline.stages = asked;
    if (config->pipeline.stages > 1 && config->zero_stage >= 2)
        return train_fail(RING_ERR_CONFIG,
                          "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism; set "
                          "zero_optimization.stage to 1");
    const long stages = config->pipeline.stages;
    if (ranks % stages == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "%d rank%s (from %s) cannot be divided into %ld pipeline stages; start a "
                      "multiple of %ld ranks, or change the number of stages (pipeline.stages, "
                      "--pipeline-parallel-size)",
                      ranks, plural(ranks), launcher, stages, stages);
}
