/* SPDX-License-Identifier: Apache-2.0
 * verbs_state: determines whether a link is opening, open or broken, and breaks links. */
#ifndef RING_VERBS_STATE_H
#define RING_VERBS_STATE_H

#include "verbs.h"

/** Breaks the link with the failure that this thread has just passed to fail(): closes its queue
 *  pairs, and closes the tickets of its gets. @return the status that broke the link first. */
ring_status verbs_break(verbs_link *l, ring_status status);
/** Continues to open a link that is not open yet. @return RING_OK, RING_IN_PROGRESS while the link
 *  opens, or the status that broke it. */
ring_status verbs_state(verbs_link *l);

/** Closes the tickets of unfinished gets with @p status. Nothing may be in flight any more. */
void verbs_end_gets(verbs_link *l, ring_status status);
/** Closes all queue pairs. Afterwards, no transfer of either end is in flight. */
void verbs_close_queues(verbs_link *l);

#endif
