/* SPDX-License-Identifier: Apache-2.0
 * Checks that the number of pipeline stages fits the number of ranks and the stage of ZeRO. */
#include "config.h"

#include "errors.h"

static ring_status check_ranks(long stages, long ranks, const char *launcher)
{
    if (ranks % stages == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "%ld pipeline stages do not divide %ld rank%s (from %s); start %ld or %ld "
                      "ranks, or take other stages (pipeline.stages, --pipeline-parallel-size)",
                      stages, ranks, plural((double)ranks), launcher, stages, 2 * stages);
}

ring_status config_resolve_stages(train_config *config, long asked, int ranks, const char *launcher)
{
    if (asked > 0)
        config->pipeline.stages = asked;
    if (config->pipeline.stages > 1 && config->zero_stage >= 2)
        return train_fail(RING_ERR_CONFIG,
                          "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism; set "
                          "zero_optimization.stage to 1");
    return check_ranks(config->pipeline.stages, ranks, launcher);
}
