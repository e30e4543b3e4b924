/* SPDX-License-Identifier: Apache-2.0
 *
 * agree: turns a failure of one rank into the same failure on all ranks, so that no rank waits for
 * one that has stopped. Also checks that all ranks have the same settings: ranks that train with
 * different ones each compute a step of their own, and nothing else would notice.
 */
#ifndef TRAIN_AGREE_H
#define TRAIN_AGREE_H

#include <ring/ring.h>

/** Collective. @param mine  this rank's result, with its text if it failed.
 *  @return RING_OK if all ranks pass RING_OK; else the failure of the lowest rank that failed. Its
 *  text begins with that rank's number unless all ranks failed, and is marked as shared. */
ring_status agree(ring_comm *comm, ring_status mine);

enum { SETTINGS_TEXT_MAX = 8192 };

/** Collective: fails on all ranks, naming the first difference, unless every rank has the
 *  same text. @param mine  lines "name=value", the same names on all ranks. */
ring_status agree_on_settings(ring_comm *comm, const char mine[SETTINGS_TEXT_MAX]);

#endif
