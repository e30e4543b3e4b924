/* SPDX-License-Identifier: Apache-2.0
 * Implements tagged sends and receives. It checks their options, enters them into the lists of
 * their peers, and advances them until they are matched and their ops may run. */
#include "tagged.h"

#include "channel_table.h"
#include "kernels.h"
#include "placeholder_link.h"
#include "program_cache.h"
#include "self_pair.h"
#include "tagged_link.h"
#include "tagged_match.h"
#include "tagged_traffic.h"

#include <stdlib.h>

/* ---- Options ------------------------------------------------------------------------ */

static ring_status check_tag(const call_signature *call, const ring_call *options)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    if (!options->tagged && (options->tag != 0 || options->envelope != NULL))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.tag and envelope require ring_call.tagged = 1",
                    facts->name);
    if (options->tagged && !facts->pairwise)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.tagged is only for ring_send and ring_recv", facts->name);
    const bool any = call->collective == PLAN_RECV && options->tag == RING_ANY_TAG;
    if (options->tag < 0 && !any)
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.tag is %d; it must be 0 or more%s",
                    facts->name, options->tag,
                    call->collective == PLAN_RECV ? ", or RING_ANY_TAG" : "");
    if (options->envelope != NULL && call->collective == PLAN_SEND)
        return fail(RING_ERR_ARGUMENT, "ring_send: ring_call.envelope is only for ring_recv");
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
                    "ring_%s: the tag is set when a call is prepared, not when it is started",
                    facts->name);
    if (options->envelope != NULL && !(call->tagged && call->collective == PLAN_RECV))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.envelope is only for calls that were prepared as tagged "
                    "receives",
                    facts->name);
    return RING_OK;
}

/* ---- Lists ------------------------------------------------------------------------------ */

/* Finds the tagged traffic with a rank, and dials the link if it has not been dialed. */
static ring_status find_peer(ring_comm *comm, int rank, tagged_peer **out)
{
    channel *c;
    RING_TRY(channel_get(comm, TRAFFIC_TAGGED, 0, rank, &c));
    *out = c->tagged;
    return c->dialed ? RING_OK : channel_dial(c);
}

static ring_status enlist_to_self(work *w)
{
    tagged_message *m = tagged_message_new(w->comm);
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while starting ring_send");
    w->seq = w->comm->tagged.self_sends++;
    m->call = w->call;
    m->seq = w->seq;
    m->peer = w->comm->rank;
    m->sender = w;
    w->tagged.message = m;
    return tagged_deliver(w->comm, m);
}

static ring_status enlist_send(work *w)
{
    tagged_peer *p;
    if (w->call.root == w->comm->rank)
        return enlist_to_self(w);
    RING_TRY(find_peer(w->comm, w->call.root, &p));
    w->seq = p->sends++;
    w->wait.last = p->on;
    w->tagged.next = NULL;
    *p->queue_end = w;
    p->queue_end = &w->tagged.next;
    return RING_OK;
}

static ring_status enlist_recv(work *w)
{
    tagged_peer *p;
    w->seq = w->comm->tagged.recvs++;
    if (w->call.root != RING_ANY_SOURCE && w->call.root != w->comm->rank) {
        RING_TRY(find_peer(w->comm, w->call.root, &p));
        w->wait.last = p->on;
    }
    return tagged_seek(w);
}

ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope)
{
    w->call.root = call->root;
    w->call.tag = call->tag;
    w->tagged.envelope = envelope;
    return w->call.collective == PLAN_SEND ? enlist_send(w) : enlist_recv(w);
}

/* ---- Progress ----------------------------------------------------------------------------- */

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

/* Ends a receive whose message is complete. The payload is already in dst, or is copied there from
 * the stored message. If dst is in device memory, the accelerator copies it as the work's op. */
static ring_status finish_recv(work *w, tagged_message *m)
{
    w->tagged.met = true;
    if (m->kept != NULL && w->buffers.dst_by != NULL) {
        RING_TRY(bind_program(w, w->comm->rank));
        w->buffers.src = m->kept; /* valid until the work ends */
        return RING_OK;
    }
    if (m->kept != NULL)
        kernel_copy(w->buffers.dst, m->kept, m->bytes);
    w->step.slice = w->program->slices;
    w->tagged.message = NULL;
    tagged_let_go(m);
    tagged_message_drop(w->comm, m);
    return RING_OK;
}

/* Answers the question with which a receive was matched. */
static ring_status grant(work *w, tagged_message *m, bool *moved)
{
    tagged_peer *p = m->from;
    RING_TRY(bind_program(w, m->peer));
    RING_TRY(work_take_messages(w));
    w->seq = w->peers[0].in_base;
    w->tagged.met = true;
    w->tagged.message = NULL;
    m->receiver = NULL;
    m->next = NULL;
    *p->grants_end = m;
    p->grants_end = &m->next;
    channel_activate(p->on);
    const ring_status status = tagged_flush(p, NULL, moved);
    return status == RING_IN_PROGRESS ? RING_OK : status; /* tagged_turn() sends the grant */
}

/* Joins a receive with a send of this rank to itself. */
static ring_status take_own(work *w, tagged_message *m)
{
    work *sender = m->sender;
    if (!sender->tagged.open)
        return RING_IN_PROGRESS; /* advance_send() holds this work when the send's gate opens */
    RING_TRY(bind_program(w, w->comm->rank));
    RING_TRY(self_pair_join(w, sender));
    w->tagged.met = sender->tagged.met = true;
    w->tagged.message = sender->tagged.message = NULL;
    tagged_message_drop(w->comm, m);
    return RING_OK;
}

static ring_status advance_recv(work *w, bool *moved)
{
    tagged_message *m = w->tagged.message;
    w->tagged.open = true;
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
    const bool was_open = w->tagged.open;
    w->tagged.open = true;
    if (w->call.root == w->comm->rank) {
        tagged_arrived(w->tagged.message);
        return RING_IN_PROGRESS;
    }
    tagged_peer *p = tagged_peer_of(w->comm, w->call.root);
    p->open += !was_open;
    const ring_status status = tagged_flush(p, w, moved);
    channel_activate(p->on);
    RING_TRY(status == RING_IN_PROGRESS ? RING_OK : status);
    /* If tagged_flush() has received the grant, this work is already held. */
    return w->tagged.met && w->step.slice >= w->program->slices ? RING_OK : RING_IN_PROGRESS;
}

ring_status tagged_advance(work *w, bool *moved)
{
    if (w->tagged.met)
        return RING_OK;
    return w->call.collective == PLAN_SEND ? advance_send(w, moved) : advance_recv(w, moved);
}

ring_status tagged_timed_out(const work *w)
{
    char tag[48] = "any tag", peer[160] = "any rank";
    const bool sends = w->call.collective == PLAN_SEND;
    if (w->call.tag != RING_ANY_TAG)
        text_format(tag, sizeof tag, "tag %d", w->call.tag);
    if (w->call.root != RING_ANY_SOURCE)
        text_format(peer, sizeof peer, "rank %d (%s)", w->call.root,
                    comm_host(w->comm, w->call.root));
    return fail(RING_ERR_TIMEOUT,
                "not finished before its deadline (RING_TIMEOUT or ring_call.timeout): %s with %s "
                "%s %s",
                sends ? "the message" : "no message", tag,
                sends ? "was not received by" : "was sent by", peer);
}
