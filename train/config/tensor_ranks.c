/* SPDX-License-Identifier: Apache-2.0
 * Sets the number of tensor ranks, and checks that the number of all ranks is a multiple of it. */
#include "config.h"

#include "errors.h"

ring_status config_resolve_tensor(train_config *config, long asked, int ranks, const char *launcher)
{
    if (asked > 0)
        config->tensor_ranks = asked;
    if (config->tensor_ranks == 0)
        config->tensor_ranks = 1;
    const long tensors = config->tensor_ranks;
    if (ranks % tensors == 0)
        return RING_OK;
    return train_fail(
        RING_ERR_CONFIG,
        "%d rank%s (from %s) cannot be divided into groups of %ld tensor ranks; start "
        "a multiple of %ld ranks, or change the number of tensor ranks "
        "(tensor_parallel.autotp_size, --tp)",
        ranks, plural(ranks), launcher, tensors, tensors);
}
