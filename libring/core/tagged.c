/* SPDX-License-Identifier: Apache-2.0
 * Tagged sends and receives: matching sends with receives in order, and completing receives. */
#include "comm.h"

#include "kernels.h"
#include "mismatch.h"
#include "unopened.h"

#include <stdlib.h>

/* ---- Options ------------------------------------------------------------------------ */

static ring_status check_tag(const call_signature *call, const ring_call *options)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    if (!options->tagged && (options->tag != 0 || options->envelope != NULL))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.tag and envelope go with ring_call.tagged = 1",
                    facts->name);
    if (options->tagged && !facts->pairwise)
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.tagged is for ring_send and ring_recv",
                    facts->name);
    const bool any = call->collective == PLAN_RECV && options->tag == RING_ANY_TAG;
    if (options->tag < 0 && !any)
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.tag is %d; want 0 or more%s",
                    facts->name, options->tag,
                    call->collective == PLAN_RECV ? ", or RING_ANY_TAG" : "");
    if (options->envelope != NULL && call->collective == PLAN_SEND)
        return fail(RING_ERR_ARGUMENT, "ring_send: ring_call.envelope is for ring_recv");
    return RING_OK;
}

ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status)
{
    call->tagged = options->tagged != 0 && plan_facts_of(call->collective)->pairwise;
    call->tag = call->tagged ? options->tag : 0;
    return status == RING_OK ? check_tag(call, options) : status;
}

ring_status tagged_read_again(const call_signature *call, const ring_call *options)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    if (options->tagged || options->tag != 0)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: a tag is given when a call is prepared, not when it is started",
                    facts->name);
    if (options->envelope != NULL && !(call->tagged && call->collective == PLAN_RECV))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.envelope is for calls that were prepared as tagged "
                    "receives",
                    facts->name);
    return RING_OK;
}

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

static void set_aside(tagged_traffic *t, tagged_message *m)
{
    m->next = NULL;
    *t->early_end = m;
    t->early_end = &m->next;
}

static bool fits(const work *w, const tagged_message *m)
{
    return (w->call.root == RING_ANY_SOURCE || w->call.root == m->peer) &&
           (w->call.tag == RING_ANY_TAG || w->call.tag == m->call.tag);
}

/* @return the first message that matches the receive, off the list; NULL: none. */
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

static tagged_peer *peer_of(const ring_comm *comm, int rank)
{
    const channel *c = channel_find(comm, LANE_TAGGED, 0, rank);
    return c != NULL ? c->tagged : NULL;
}

static void count_posted(const work *w, int32_t change)
{
    ring_comm *comm = w->comm;
    if (w->call.root == RING_ANY_SOURCE)
        comm->tagged.any += change;
    else if (w->call.root != comm->rank)
        peer_of(comm, w->call.root)->named += change;
}

/* @return the first receive that matches the message, off the list; NULL: none. */
static work *take_posted(ring_comm *comm, const tagged_message *m)
{
    tagged_traffic *t = &comm->tagged;
    for (work **at = &t->posted; *at != NULL; at = &(*at)->tag_next) {
        work *w = *at;
        if (!fits(w, m))
            continue;
        *at = w->tag_next;
        if (*at == NULL)
            t->posted_end = at;
        count_posted(w, -1);
        return w;
    }
    return NULL;
}

/* ---- Matching --------------------------------------------------------------------------- */

static ring_status meet(work *receiver, tagged_message *m)
{
    receiver->message = m;
    m->receiver = receiver;
    if (receiver->call.count != m->call.count || receiver->call.dtype != m->call.dtype)
        return mismatch_differ(receiver->comm, &receiver->call, receiver->seq, m->peer, &m->call,
                               m->seq);
    if (receiver->envelope != NULL)
        *receiver->envelope = (ring_envelope){.source = m->peer, .tag = m->call.tag};
    return RING_OK;
}

ring_status tagged_deliver(ring_comm *comm, tagged_message *m)
{
    work *w = take_posted(comm, m);
    if (w != NULL)
        return meet(w, m);
    set_aside(&comm->tagged, m);
    return RING_OK;
}

void tagged_arrived(tagged_message *m)
{
    if (m->receiver != NULL && m->receiver->tag_open)
        (void)work_hold(m->receiver);
}

/* ---- Places ----------------------------------------------------------------------------- */

/* @return RING_OK, with the link dialed. */
static ring_status find_peer(ring_comm *comm, int rank, tagged_peer **out)
{
    channel *c;
    RING_TRY(channel_get(comm, LANE_TAGGED, 0, rank, &c));
    *out = c->tagged;
    return c->dialed ? RING_OK : unopened_dial(c);
}

static ring_status enlist_to_self(work *w)
{
    tagged_message *m = tagged_message_new(w->comm);
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "starting ring_send");
    w->seq = w->comm->tagged.self_sends++;
    m->call = w->call;
    m->seq = w->seq;
    m->peer = w->comm->rank;
    m->sender = w;
    w->message = m;
    return tagged_deliver(w->comm, m);
}

static ring_status enlist_send(work *w)
{
    tagged_peer *p;
    if (w->call.root == w->comm->rank)
        return enlist_to_self(w);
    RING_TRY(find_peer(w->comm, w->call.root, &p));
    w->seq = p->sends++;
    w->suspect = p->on;
    w->tag_next = NULL;
    *p->queue_end = w;
    p->queue_end = &w->tag_next;
    return RING_OK;
}

/* Makes the channels active on which the receive's message may come. */
static void listen_for(const work *w)
{
    tagged_traffic *t = &w->comm->tagged;
    if (w->suspect != NULL)
        channel_watch(w->suspect);
    if (w->call.root != RING_ANY_SOURCE || t->next_visited == NULL)
        return;
    tagged_peer *p = t->next_visited;
    do {
        channel_watch(p->on);
        p = p->next;
    } while (p != t->next_visited);
}

static ring_status enlist_recv(work *w)
{
    tagged_traffic *t = &w->comm->tagged;
    tagged_peer *p;
    w->seq = t->recvs++;
    if (w->call.root != RING_ANY_SOURCE && w->call.root != w->comm->rank) {
        RING_TRY(find_peer(w->comm, w->call.root, &p));
        w->suspect = p->on;
    }
    tagged_message *m = take_early(t, w);
    if (m != NULL) {
        if (m->from != NULL)
            channel_watch(m->from->on); /* the rest of it may be on its way */
        return meet(w, m);
    }
    w->tag_next = NULL;
    *t->posted_end = w;
    t->posted_end = &w->tag_next;
    count_posted(w, 1);
    listen_for(w);
    return RING_OK;
}

ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope)
{
    w->call.root = call->root;
    w->call.tag = call->tag;
    w->envelope = envelope;
    return w->call.collective == PLAN_SEND ? enlist_send(w) : enlist_recv(w);
}

/* ---- Going on ----------------------------------------------------------------------------- */

static ring_status bind_program(work *w, int root)
{
    call_signature call = w->program->call;
    program *p;
    call.root = root;
    if (w->program->call.root == root)
        return RING_OK;
    RING_TRY(programs_get(w->comm, &call, &p));
    return work_rebind(w, p);
}

/* The message is complete: in its buffer already, or to be copied, by an accelerator into its own
 * memory.
 */
static ring_status finish_recv(work *w, tagged_message *m)
{
    w->tag_met = true;
    if (m->kept != NULL && w->dst_by != NULL) {
        RING_TRY(bind_program(w, w->comm->rank));
        w->src = m->kept; /* until the work ends */
        return RING_OK;
    }
    if (m->kept != NULL)
        kernel_copy(w->dst, m->kept, m->bytes);
    w->slice = w->program->slices;
    w->message = NULL;
    tagged_let_go(m);
    tagged_message_drop(w->comm, m);
    return RING_OK;
}

static ring_status grant(work *w, tagged_message *m, bool *moved)
{
    tagged_peer *p = m->from;
    RING_TRY(bind_program(w, m->peer));
    RING_TRY(work_take_messages(w));
    w->seq = w->peers[0].in_base;
    w->tag_met = true;
    w->message = NULL;
    m->receiver = NULL;
    m->next = NULL;
    *p->grants_end = m;
    p->grants_end = &m->next;
    channel_watch(p->on);
    const ring_status status = tagged_flush(p, NULL, moved);
    return status == RING_IN_PROGRESS ? RING_OK : status; /* tagged_turn() sends the grant */
}

/* Send and receive are both of this rank. */
static ring_status take_own(work *w, tagged_message *m)
{
    work *sender = m->sender;
    if (!sender->tag_open)
        return RING_IN_PROGRESS; /* advance_send() holds this work when it is */
    RING_TRY(bind_program(w, w->comm->rank));
    RING_TRY(self_pair_join(w, sender));
    w->tag_met = sender->tag_met = true;
    w->message = sender->message = NULL;
    tagged_message_drop(w->comm, m);
    return RING_OK;
}

static ring_status advance_recv(work *w, bool *moved)
{
    tagged_message *m = w->message;
    w->tag_open = true;
    if (m == NULL)
        return RING_IN_PROGRESS;
    if (m->sender != NULL)
        return take_own(w, m);
    if (m->asked)
        return grant(w, m, moved);
    return m->done == m->bytes ? finish_recv(w, m) : RING_IN_PROGRESS;
}

static ring_status advance_send(work *w, bool *moved)
{
    const bool was_open = w->tag_open;
    w->tag_open = true;
    if (w->call.root == w->comm->rank) {
        tagged_arrived(w->message);
        return RING_IN_PROGRESS;
    }
    tagged_peer *p = peer_of(w->comm, w->call.root);
    p->open += !was_open;
    const ring_status status = tagged_flush(p, w, moved);
    channel_watch(p->on);
    RING_TRY(status == RING_IN_PROGRESS ? RING_OK : status);
    /* A send that was granted meanwhile is held already. */
    return w->tag_met && w->slice >= w->program->slices ? RING_OK : RING_IN_PROGRESS;
}

ring_status tagged_advance(work *w, bool *moved)
{
    if (w->tag_met)
        return RING_OK;
    return w->call.collective == PLAN_SEND ? advance_send(w, moved) : advance_recv(w, moved);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

ring_status tagged_timed_out(const work *w)
{
    char what[48] = "any tag", who[160] = "any rank";
    const bool sends = w->call.collective == PLAN_SEND;
    if (w->call.tag != RING_ANY_TAG)
        text_format(what, sizeof what, "tag %d", w->call.tag);
    if (w->call.root != RING_ANY_SOURCE)
        text_format(who, sizeof who, "rank %d (%s)", w->call.root,
                    comm_host(w->comm, w->call.root));
    return fail(RING_ERR_TIMEOUT,
                "not finished before its deadline (RING_TIMEOUT or ring_call.timeout): %s %s %s",
                what, sends ? "was not received by" : "was not sent by", who);
}

void tagged_forget(work *w)
{
    tagged_message *m = w->message;
    w->message = NULL;
    if (m->sender == w) {
        m->sender = NULL;
        return;
    }
    if (m->sender != NULL)
        m->sender->message = NULL;
    tagged_let_go(m);
    tagged_message_drop(w->comm, m);
}

static void drop_all(ring_comm *comm, tagged_message *m)
{
    for (tagged_message *next; m != NULL; m = next) {
        next = m->next;
        if (m->sender != NULL)
            m->sender->message = NULL;
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
    comm->tagged.next_visited = NULL; /* freed with their channels */
    tagged_clear(comm);
    for (tagged_message *m = comm->tagged.spare; m != NULL; m = next) {
        next = m->next;
        free(m);
    }
}
