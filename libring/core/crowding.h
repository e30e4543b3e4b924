/* SPDX-License-Identifier: Apache-2.0
 * crowding: whether ranks have to share cores. */
#ifndef RING_CORE_CROWDING_H
#define RING_CORE_CROWDING_H

#include "card.h"

/** @param cards  [ranks], of all ranks.
 *  @param quota  CPUs' worth of time for the ranks of this host together, 0: no limit.
 *  @return true if the ranks of @p rank's host outnumber the quota, or those among them that may
 * run on the same CPUs as @p rank outnumber these. */
bool crowding_found(const control_card *cards, int ranks, int rank, double quota);

#endif
