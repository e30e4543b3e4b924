/* SPDX-License-Identifier: Apache-2.0
 * ucx_state: determines whether a link is opening, open or broken, and breaks links. All functions
 * need the lock. */
#ifndef RING_UCX_STATE_H
#define RING_UCX_STATE_H

#include "ucx.h"

/** Continues to open a link that is not open yet. @return RING_OK, RING_IN_PROGRESS while the link
 *  opens, or the status that broke it. */
ring_status ucx_state(ucx_link *l);
/** Breaks the link at once, with the text @p why. @return its status. */
ring_status ucx_break(ucx_link *l, ring_status status, const char *why);

#endif
