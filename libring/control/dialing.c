/* SPDX-License-Identifier: Apache-2.0
 * Dialers are only marked as ended here: the membership frees them at the end of an event. */
#include "dialing.h"

#include <stdlib.h>

ring_status dialing_start(membership *m, const dialer *like)
{
    dialer *d = malloc(sizeof *d);
    if (d == NULL)
        return fail(RING_ERR_MEMORY, "dialing rank %d", like->peer);
    *d = *like;
    d->source = (control_source){.fd = -1, .client = &m->client};
    d->context = m;
    d->next = m->dialers;
    m->dialers = d;
    dialer_go(d);
    return RING_OK;
}

ring_status dialing_start_to(membership *m, int peer, bool local, const dialer *like)
{
    const control_card *card = &m->world.cards[peer];
    dialer d = *like;
    d.terms = m->terms;
    d.peer = peer;
    d.local = local;
    d.to = address_unix(card->unix_name);
    if (!local && !address_unpack(card->address, &d.to))
        return fail(RING_ERR_INTERNAL, "the card of rank %d has no address", peer);
    return dialing_start(m, &d);
}

void dialing_drop(membership *m, int kind)
{
    for (dialer *d = m->dialers; d != NULL; d = d->next)
        if (!d->ended && (kind == 0 || d->purpose.kind == kind))
            dialer_drop(d);
}

void dialing_tick(membership *m, double now)
{
    for (dialer *d = m->dialers; d != NULL; d = d->next) {
        if (!d->ended && now >= dialer_due(d))
            dialer_go(d);
        else if (!d->ended)
            membership_due(m, dialer_due(d));
    }
}
