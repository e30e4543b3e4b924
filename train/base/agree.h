/* SPDX-License-Identifier: Apache-2.0
 *
 * agree: turns a failure of one rank into the same failure on all ranks, so that no rank waits for
 * a rank that has stopped. Also checks that all ranks have the same settings, because nothing else
 * detects ranks that train with different settings.
 */
#ifndef TRAIN_AGREE_H
#define TRAIN_AGREE_H

#include <ring/ring.h>

/** Collective. @param mine  this rank's result; if it is a failure, train_error() has the text.
 *  @return RING_OK if all ranks pass RING_OK, or else the failure of the lowest rank that failed.
 * The text of the failure begins with the number of this rank, unless all ranks failed, and is
 * marked as shared. */
ring_status agree(ring_comm *comm, ring_status mine);

enum { SETTINGS_TEXT_MAX = 8192 };

/** Collective: if the ranks do not all have the same text, fails on all ranks and names the first
 *  difference. @param mine  lines "name=value", with the same names on all ranks. */
ring_status agree_on_settings(ring_comm *comm, const char mine[SETTINGS_TEXT_MAX]);

#endif
