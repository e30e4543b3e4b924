/* SPDX-License-Identifier: Apache-2.0
 * Keeps the records of tagged messages and of peers, and decides which send is next for a peer, and
 * whether frames must be sent to it or are expected from it. */
#include "tagged_traffic.h"

#include "comm.h"

#include <stdlib.h>

/* ---- Messages ------------------------------------------------------------------------- */

tagged_message *tagged_message_new(ring_comm *comm)
{
    tagged_message *m = comm->tagged.spare;
    if (m != NULL) {
        comm->tagged.spare = m->next;
    } else {
        m = malloc(sizeof *m);
        comm->tagged.bytes += m != NULL ? sizeof *m : 0;
    }
    if (m != NULL)
        *m = (tagged_message){0};
    return m;
}

void tagged_message_drop(ring_comm *comm, tagged_message *m)
{
    if (m->kept != NULL) {
        comm->tagged.bytes -= m->bytes;
        free(m->kept);
    }
    m->next = comm->tagged.spare;
    comm->tagged.spare = m;
}

/* The charge of a message covers its record and the allocator's two headers. */
_Static_assert(sizeof(tagged_message) + 32 <= TAGGED_KEEP, "a message's record fits its charge");

/* ---- Peers ---------------------------------------------------------------------------- */

ring_status tagged_peer_new(channel *c)
{
    tagged_traffic *t = &c->comm->tagged;
    tagged_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating a channel to rank %d", c->rank);
    c->tagged = p;
    p->on = c;
    p->queue_end = &p->queue;
    p->asked_end = &p->asked;
    p->grants_end = &p->grants;
    p->next = t->next_visited != NULL ? t->next_visited->next : p;
    if (t->next_visited != NULL)
        t->next_visited->next = p;
    else
        t->next_visited = p;
    if (t->any > 0)
        channel_activate(c);
    return RING_OK;
}

/* @return true if the queue has no earlier send with the tag of @p w. Sends with different tags do
 * not wait for each other. */
static bool is_first_of_tag(const tagged_peer *p, const work *w)
{
    const work *first = p->queue;
    while (first->call.tag != w->call.tag)
        first = first->tagged.next;
    return first == w;
}

work *tagged_next_to_send(const tagged_peer *p)
{
    if (p->open == 0)
        return NULL;
    work *w = p->sending != NULL ? p->sending : p->queue;
    while (w != NULL && (!w->tagged.open || !is_first_of_tag(p, w)))
        w = w->tagged.next;
    return w;
}

bool tagged_wants_out(const tagged_peer *p)
{
    const bool announces = p->grants != NULL || p->owed >= TAGGED_OWED;
    return (announces && !p->on->lost) || tagged_next_to_send(p) != NULL;
}

bool tagged_listens(const tagged_peer *p)
{
    return p->asked != NULL || p->named > 0 || (p->in != NULL && p->in->receiver != NULL) ||
           (p->on->comm->tagged.any > 0 && !p->on->lost) || p->on->waiting[WAIT_FREE] != NULL ||
           tagged_next_to_send(p) != NULL;
}

work *tagged_first_waiter(const tagged_peer *p)
{
    work *w = tagged_next_to_send(p);
    if (w == NULL)
        w = p->asked;
    if (w == NULL && p->in != NULL)
        w = p->in->receiver;
    if (w != NULL || p->named == 0)
        return w;
    for (w = p->on->comm->tagged.posted; w->call.root != p->on->rank; w = w->tagged.next)
        continue;
    return w;
}

/* ---- Dropping and clearing ------------------------------------------------------------ */

void tagged_let_go(tagged_message *m)
{
    tagged_peer *p = m->from;
    if (p == NULL || m->asked)
        return;
    p->owed += tagged_charge(m->bytes);
    if (p->owed >= TAGGED_OWED && comm_is_fine(p->on->comm))
        channel_activate(p->on);
}

void tagged_forget(work *w)
{
    tagged_message *m = w->tagged.message;
    w->tagged.message = NULL;
    if (m->sender == w) {
        m->sender = NULL;
        return;
    }
    if (m->sender != NULL)
        m->sender->tagged.message = NULL;
    tagged_let_go(m);
    tagged_message_drop(w->comm, m);
}

static void drop_all(ring_comm *comm, tagged_message *m)
{
    for (tagged_message *next; m != NULL; m = next) {
        next = m->next;
        if (m->sender != NULL)
            m->sender->tagged.message = NULL;
        tagged_message_drop(comm, m);
    }
}

static void clear_peer(ring_comm *comm, tagged_peer *p)
{
    drop_all(comm, p->grants);
    p->grants = p->in = NULL;
    p->grants_end = &p->grants;
    p->queue = p->asked = p->sending = NULL;
    p->queue_end = &p->queue;
    p->asked_end = &p->asked;
    p->named = p->open = 0;
}

void tagged_clear(ring_comm *comm)
{
    tagged_traffic *t = &comm->tagged;
    drop_all(comm, t->early);
    t->early = NULL;
    t->early_end = &t->early;
    t->posted = NULL;
    t->posted_end = &t->posted;
    t->any = 0;
    tagged_peer *p = t->next_visited;
    if (p == NULL)
        return;
    do {
        clear_peer(comm, p);
        p = p->next;
    } while (p != t->next_visited);
}

void tagged_free(ring_comm *comm)
{
    tagged_message *next;
    comm->tagged.next_visited = NULL; /* the peers were freed with their channels */
    tagged_clear(comm);
    for (tagged_message *m = comm->tagged.spare; m != NULL; m = next) {
        next = m->next;
        free(m);
    }
}
