/* SPDX-License-Identifier: Apache-2.0
 *
 * agree: a failure on one rank becomes the same failure, with the same text, on all, so
 * that nobody waits for a rank that has given up.
 */
#ifndef TRAIN_AGREE_H
#define TRAIN_AGREE_H

#include <ring/ring.h>

/** Collective. @param mine  this rank's result, with its text if it failed.
 *  @return RING_OK if it is so on all ranks; else the failure of the lowest rank that has
 *  one, its text led by that rank's number unless all ranks failed, and marked as shared. */
ring_status agree(ring_comm *comm, ring_status mine);

#endif
