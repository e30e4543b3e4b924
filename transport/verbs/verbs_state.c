/* SPDX-License-Identifier: Apache-2.0
 * Determines whether a link is opening, open or broken, and breaks links. */
#include "verbs_state.h"

void verbs_close_queues(verbs_link *l)
{
    for (int r = 0; r < VERBS_RAILS; r++)
        if (l->rail.queue[r].port != NULL)
            queue_pair_close(&l->rail.queue[r]);
}

void verbs_end_gets(verbs_link *l, ring_status status)
{
    for (; l->send.done < l->send.accepted; l->send.done++)
        if (verbs_operation_at(l, l->send.done)->over != NULL)
            ticket_close(verbs_operation_at(l, l->send.done)->over, status);
    l->send.posted = l->send.done;
}

ring_status verbs_break(verbs_link *l, ring_status status)
{
    if (l->state != RING_OK && l->state != RING_IN_PROGRESS)
        return verbs_state(l);
    l->state = status;
    (void)text_format(l->why, sizeof l->why, "%s", fail_text());
    verbs_close_queues(l);
    verbs_end_gets(l, status);
    return verbs_state(l);
}

ring_status verbs_state(verbs_link *l)
{
    if (l->state == RING_IN_PROGRESS) {
        const ring_status status = verbs_continue_opening(l);
        if (status == RING_OK)
            l->state = RING_OK;
        return status == RING_OK || status == RING_IN_PROGRESS ? status : verbs_break(l, status);
    }
    return l->state == RING_OK ? RING_OK
                               : fail(l->state, "verbs link to rank %d: %s", l->head.peer, l->why);
}
