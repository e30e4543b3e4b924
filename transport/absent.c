/* SPDX-License-Identifier: Apache-2.0
 * Defines placeholders for transports whose library was missing at build time. Ranks of different
 * builds identify a transport by its index in the table, so a missing one must keep its entry. */
#include "table.h"

#define ABSENT(transport_name, package, what, power) \
    static bool has_no_##transport_name(const transport_ib *ib, char *why, size_t size) \
    { \
        (void)ib; \
        (void)text_format(why, size, "libring was built without it; install %s and build again", \
                          package); \
        return false; \
    } \
    const transport transport_##transport_name = {.name = #transport_name, \
                                                  .about = what, \
                                                  .powers = power, \
                                                  .probe = has_no_##transport_name}

#ifndef RING_HAVE_VERBS
ABSENT(verbs, "libibverbs-dev", "between hosts, over InfiniBand or RoCE", 0);
#endif
#ifndef RING_HAVE_UCX
ABSENT(ucx, "libucx-dev", "over any network that UCX finds, only on request", TRANSPORT_ASKED);
#endif
