/* SPDX-License-Identifier: Apache-2.0
 * Checks that the number of tensor ranks fits the number of ranks. */
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
    return train_fail(RING_ERR_CONFIG,
                      "%ld tensor ranks do not divide %d rank%s (from %s); start %ld or %ld ranks, "
                      "or take other numbers (tensor_parallel.autotp_size, --tp)",
                      tensors, ranks, plural(ranks), launcher, tensors, 2 * tensors);
}
