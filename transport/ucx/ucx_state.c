/* SPDX-License-Identifier: Apache-2.0
 * Determines whether a link is opening, open or broken, and continues to open it. */
#include "ucx_state.h"

#include "ucx_link.h"

static ring_status verdict(const ucx_link *l)
{
    return ucx_is_alive(l) ? l->state
                           : fail(l->state, "ucx link to rank %d: %s", l->head.peer, l->why);
}

ring_status ucx_break(ucx_link *l, ring_status status, const char *why)
{
    ucx_doom(l, status, "%s", why);
    l->state = l->doom;
    return verdict(l);
}

/* Frames that arrived before a failure can still be consumed. If status words arrived before it,
 * RING_OK is returned once more, so that a waiting caller can use them before it gets the
 * failure. */
ring_status ucx_state(ucx_link *l)
{
    if (l->state == RING_IN_PROGRESS)
        ucx_greeting_move(l);
    if (l->doom == RING_OK || !ucx_is_alive(l))
        return verdict(l);
    if (l->state == RING_OK && (l->recv.peeked || ucx_has_frame(l)))
        return RING_OK;
    if (l->state == RING_OK && l->grace) {
        l->grace = false;
        return RING_OK;
    }
    l->state = l->doom;
    return verdict(l);
}
