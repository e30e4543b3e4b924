/* SPDX-License-Identifier: Apache-2.0
 *
 * same: ranks that train with different settings or data each compute a step of their own,
 * and nothing else would notice.
 */
#ifndef TRAIN_SAME_H
#define TRAIN_SAME_H

#include <ring/ring.h>

enum { SAME_TEXT_MAX = 8192 };

/** Collective: fails on all ranks, naming the first difference, unless every rank has the
 *  same text. @param mine  lines "name=value", the same names on all ranks. */
ring_status same_check(ring_comm *comm, const char mine[SAME_TEXT_MAX]);

#endif
