/* SPDX-License-Identifier: Apache-2.0
 * ucx_state: determines whether a link is opening, open or broken. */
#ifndef RING_UCX_STATE_H
#define RING_UCX_STATE_H

#include "ucx.h"

/** @return RING_OK, RING_IN_PROGRESS while the link opens, or the status that broke it. */
ring_status ucx_state(ucx_link *l);
/** Breaks the link at once. */
ring_status ucx_break(ucx_link *l, ring_status status, const char *why);

#endif
