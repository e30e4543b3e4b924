/* SPDX-License-Identifier: Apache-2.0
 * verbs_state: whether a link is opening, open or broken. */
#ifndef RING_VERBS_STATE_H
#define RING_VERBS_STATE_H

#include "verbs.h"

/** Breaks the link with what fail() was called with. @return status. */
ring_status verbs_break(verbs_link *l, ring_status status);
/** @return RING_OK, RING_IN_PROGRESS while it opens, or what broke it. */
ring_status verbs_state(verbs_link *l);

/** Closes the tickets of gets that are not over. Nothing is under way any more. */
void verbs_end_gets(verbs_link *l, ring_status status);
void verbs_close_queues(verbs_link *l);

#endif
