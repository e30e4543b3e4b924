/* SPDX-License-Identifier: Apache-2.0
 * rank list: a set of ranks in few words. */
#ifndef RING_CONTROL_RANK_LIST_H
#define RING_CONTROL_RANK_LIST_H

#include "base.h"

/** Writes ranks as "1, 3-5" for which missing(context, rank); returns their number. */
int rank_list_text(int size, bool (*missing)(const void *context, int rank), const void *context,
                   char *out, size_t bytes);

#endif
