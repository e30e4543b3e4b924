/* SPDX-License-Identifier: Apache-2.0
 * crowding: decides whether the ranks of a host have to share CPU cores. */
#ifndef RING_CORE_CROWDING_H
#define RING_CORE_CROWDING_H

#include "card.h"

/** @param cards  [ranks] the cards of all ranks.
 *  @param quota  the CPU time that the ranks of this host may use together, in CPUs; 0: no limit.
 *  @return true if there are more ranks on @p rank's host than the quota, or more of them with
 *  @p rank's CPU mask than CPUs in it. */
bool crowding_found(const control_card *cards, int ranks, int rank, double quota);

#endif
