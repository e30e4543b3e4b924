/* SPDX-License-Identifier: Apache-2.0
 * ucx_state: whether a link is opening, open or broken. */
#ifndef RING_UCX_STATE_H
#define RING_UCX_STATE_H

#include "ucx.h"

/** @return RING_OK, RING_IN_PROGRESS while it opens, or what broke it. */
ring_status ucx_state(ucx_link *l);
/** Breaks it at once. */
ring_status ucx_break(ucx_link *l, ring_status status, const char *why);

#endif
