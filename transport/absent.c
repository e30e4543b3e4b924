/* SPDX-License-Identifier: Apache-2.0
 * Transports that this build has no headers for. They keep their places in the table, by which
 * ranks of different builds name them to each other. */
#include "table.h"

#ifndef RING_HAVE_VERBS
static bool has_no_verbs(const transport_ib *ib, char *why, size_t size)
{
    (void)ib;
    (void)text_format(why, size, "this build is without it: install libibverbs-dev and build anew");
    return false;
}

const transport transport_verbs = {.name = "verbs",
                                   .about = "between hosts, over InfiniBand or RoCE",
                                   .probe = has_no_verbs};
#else
typedef int transports_are_all_there; /* ISO C wants something in each file */
#endif
