/* SPDX-License-Identifier: Apache-2.0
 * Matches tagged messages with receives. A new receive takes the oldest message that fits, and a
 * new message is given to the oldest waiting receive that it fits. */
#include "tagged_match.h"

#include "channel_table.h"
#include "mismatch.h"

static bool fits(const work *w, const tagged_message *m)
{
    return (w->call.root == RING_ANY_SOURCE || w->call.root == m->peer) &&
           (w->call.tag == RING_ANY_TAG || w->call.tag == m->call.tag);
}

/* @return the first message that matches the receive, removed from the list; NULL: none. */
static tagged_message *take_early(tagged_traffic *t, const work *w)
{
    for (tagged_message **at = &t->early; *at != NULL; at = &(*at)->next) {
        tagged_message *m = *at;
        if (!fits(w, m))
            continue;
        *at = m->next;
        if (*at == NULL)
            t->early_end = at;
        return m;
    }
    return NULL;
}

tagged_peer *tagged_peer_of(const ring_comm *comm, int rank)
{
    const channel *c = channel_find(comm, TRAFFIC_TAGGED, 0, rank);
    return c != NULL ? c->tagged : NULL;
}

static void count_posted(const work *w, int32_t change)
{
    ring_comm *comm = w->comm;
    if (w->call.root == RING_ANY_SOURCE)
        comm->tagged.any += change;
    else if (w->call.root != comm->rank)
        tagged_peer_of(comm, w->call.root)->named += change;
}

/* @return the first receive that matches the message, removed from the list; NULL: none. */
static work *take_posted(ring_comm *comm, const tagged_message *m)
{
    tagged_traffic *t = &comm->tagged;
    for (work **at = &t->posted; *at != NULL; at = &(*at)->tagged.next) {
        work *w = *at;
        if (!fits(w, m))
            continue;
        *at = w->tagged.next;
        if (*at == NULL)
            t->posted_end = at;
        count_posted(w, -1);
        return w;
    }
    return NULL;
}

/* ---- Matching --------------------------------------------------------------------------- */

static ring_status match(work *receiver, tagged_message *m)
{
    receiver->tagged.message = m;
    m->receiver = receiver;
    RING_TRY(mismatch_check_pair(receiver, m->peer, &m->call, m->seq));
    if (receiver->tagged.envelope != NULL)
        *receiver->tagged.envelope = (ring_envelope){.source = m->peer, .tag = m->call.tag};
    return RING_OK;
}

ring_status tagged_deliver(ring_comm *comm, tagged_message *m)
{
    work *w = take_posted(comm, m);
    if (w != NULL)
        return match(w, m);
    m->next = NULL;
    *comm->tagged.early_end = m;
    comm->tagged.early_end = &m->next;
    return RING_OK;
}

void tagged_arrived(tagged_message *m)
{
    if (m->receiver != NULL && m->receiver->tagged.open)
        (void)work_hold(m->receiver);
}

/* Activates the channels on which the receive's message may arrive. */
static void listen_for(const work *w)
{
    tagged_traffic *t = &w->comm->tagged;
    if (w->wait.last != NULL)
        channel_activate(w->wait.last);
    if (w->call.root != RING_ANY_SOURCE || t->next_visited == NULL)
        return;
    tagged_peer *p = t->next_visited;
    do {
        channel_activate(p->on);
        p = p->next;
    } while (p != t->next_visited);
}

ring_status tagged_seek(work *w)
{
    tagged_traffic *t = &w->comm->tagged;
    tagged_message *m = take_early(t, w);
    if (m != NULL) {
        if (m->from != NULL)
            channel_activate(m->from->on); /* frames of the message may be in flight */
        return match(w, m);
    }
    w->tagged.next = NULL;
    *t->posted_end = w;
    t->posted_end = &w->tagged.next;
    count_posted(w, 1);
    listen_for(w);
    return RING_OK;
}
