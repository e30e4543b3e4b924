/* SPDX-License-Identifier: Apache-2.0
 * Posts the operations of a link in order, handles their completions, and moves the link to its
 * second rail when the first one fails. */
#include "verbs.h"

#include "slot_format.h"
#include "verbs_state.h"
#include "verbs_words.h"

#include <errno.h>

/* Entries of the send queue that requests for payload leave free for a header, and that requests
 * for headers leave free for status words. */
enum { FOR_HEADER = 1, FOR_WORDS = 4 };

/* ---- The ring ----------------------------------------------------------------------------- */

bool verbs_has_operation(verbs_link *l)
{
    return l->send.accepted - l->send.done < VERBS_OPERATIONS;
}

verbs_operation *verbs_next_operation(verbs_link *l)
{
    verbs_operation *o = verbs_operation_at(l, l->send.accepted);
    *o = (verbs_operation){.bytes = 0};
    return o;
}

/* ---- Posting ------------------------------------------------------------------------------ */

/* Posts one request. If the adapter rejects it, the rail counts as failed. */
static bool post(verbs_link *l, const queue_request *r)
{
    queue_pair *q = &l->rail.queue[l->rail.active];
    int none = 0;
    if (queue_pair_post(q, r))
        return true;
    log_debug("verbs: port %s rejects a request: %m", q->port->name);
    (void)atomic_compare_exchange_strong(&q->sink.failed, &none, (int)IBV_WC_LOC_QP_OP_ERR);
    return false;
}

/* Posts an operation's bytes in pieces of at most the port's longest transfer. A get asks for a
 * completion with its last piece. @return false if the queue is full; a later call continues. */
static bool post_bytes(verbs_link *l, verbs_operation *o)
{
    queue_pair *q = &l->rail.queue[l->rail.active];
    while (o->moved < o->bytes) {
        const size_t piece = min_size(o->bytes - o->moved, q->port->longest);
        const queue_request r = {.opcode = o->over != NULL ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                 .local = o->local + o->moved,
                                 .local_key = o->local_key[l->rail.active],
                                 .bytes = piece,
                                 .remote = o->remote + o->moved,
                                 .remote_key = o->remote_key[l->rail.active],
                                 .signals = o->over != NULL && o->moved + piece == o->bytes};
        if (!queue_pair_has_room(q, 1 + FOR_HEADER + FOR_WORDS) || !post(l, &r))
            return false;
        o->moved += piece;
    }
    return true;
}

/* Posts the write of an operation's header into the peer's slot. @return as post_bytes(). */
static bool post_header(verbs_link *l, verbs_operation *o)
{
    queue_pair *q = &l->rail.queue[l->rail.active];
    const uint64_t place = o->slot % VERBS_SLOTS;
    const bool inlined = q->inlined >= sizeof o->header;
    if (!queue_pair_has_room(q, 1 + FOR_WORDS))
        return false;
    if (!inlined)
        l->out->slot[place] = o->header;
    queue_request r = {.opcode = IBV_WR_RDMA_WRITE,
                       .local = inlined ? &o->header : &l->out->slot[place],
                       .local_key = l->rail.out_mr[l->rail.active]->lkey,
                       .bytes = sizeof o->header,
                       .remote = l->peer.inbox + offsetof(verbs_inbox, slot) +
                                 place * sizeof(verbs_slot),
                       .remote_key = l->peer.key[l->rail.active],
                       .inlined = inlined,
                       .signals = true,
                       .wakes = verbs_sleeper(l, false)};
    if (r.wakes != 0)
        r.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    return post(l, &r);
}

/* Posts queued operations until the send queue is full. */
static void post_waiting(verbs_link *l)
{
    while (l->send.posted < l->send.accepted && !l->rail.resuming) {
        verbs_operation *o = verbs_operation_at(l, l->send.posted);
        if (!o->arrived && (!post_bytes(l, o) || (o->over == NULL && !post_header(l, o))))
            return;
        o->last = l->rail.queue[l->rail.active].posted;
        l->send.posted++;
    }
}

void verbs_accept(verbs_link *l)
{
    l->send.accepted++;
    verbs_look_at_words(l);
    post_waiting(l);
}

/* ---- Completions -------------------------------------------------------------------------- */

/* Removes completed operations from the ring. While the link is resuming, operations still have the
 * request numbers of the old rail, so none can be removed. */
static void take_ends(verbs_link *l)
{
    const queue_pair *q = &l->rail.queue[l->rail.active];
    if (l->rail.resuming)
        return;
    while (l->send.done < l->send.posted) {
        const verbs_operation *o = verbs_operation_at(l, l->send.done);
        if (!o->arrived && !queue_pair_is_done(q, o->last))
            return;
        l->send.flushed += o->is_frame;
        l->send.done++;
        if (o->over != NULL) {
            l->send.gets_done++;
            ticket_close(o->over, RING_OK);
        }
    }
}

/* ---- Rails -------------------------------------------------------------------------------- */

static bool has_other_rail(const verbs_link *l)
{
    const int other = l->rail.active + 1;
    return other < l->rail.count && l->rail.queue[other].connected &&
           queue_pair_failure(&l->rail.queue[other]) == IBV_WC_SUCCESS;
}

/* @return true if the port is down and the other rail is usable: then the link fails over without
 * waiting until the adapter's retries run out. */
static bool may_leave_port(const verbs_link *l)
{
    const adapter_port *port = l->rail.queue[l->rail.active].port;
    if (!atomic_load_explicit(&port->down, memory_order_relaxed) || !has_other_rail(l))
        return false;
    const adapter_port *other = l->rail.queue[l->rail.active + 1].port;
    adapter_look_at_events(other->device);
    return !atomic_load(&other->down) && !atomic_load(&other->device->dead);
}

/* @return why the link abandons the rail of this queue pair. */
static const char *why_changed(const queue_pair *old)
{
    const enum ibv_wc_status failure = queue_pair_failure(old);
    if (failure != IBV_WC_SUCCESS)
        return ibverbs_explain(failure);
    if (atomic_load(&old->port->device->dead))
        return "the adapter failed";
    return atomic_load(&old->port->down) ? "the port went down" : "the peer abandoned this rail";
}

/* Moves to the other rail, and asks the peer to do the same. The old queue pair is closed first, so
 * that no write can arrive after the arrived slots have been counted. */
static void change_rail(verbs_link *l)
{
    queue_pair *old = &l->rail.queue[l->rail.active];
    const char *why = why_changed(old);
    queue_pair_close(old);
    l->rail.active++;
    log_warn("verbs: rank %d now reaches rank %d over port %s instead of %s: %s", l->rank,
             l->head.peer, l->rail.queue[l->rail.active].port->name, old->port->name, why);
    l->recv.words[WORD_LEFT] = (uint64_t)l->rail.active;
    l->recv.words[WORD_ARRIVED] = verbs_arrived(l);
    l->rail.resuming = true;
    l->sleep.roused = 0; /* this end's last wake-up may have been lost, so it must be repeated */
    l->recv.words_over = true;
    verbs_announce(l);
}

/* Queues all unfinished operations again for the new rail. Those whose slot has arrived at the peer
 * are marked, so that they count as complete and are not posted. */
static void resume(verbs_link *l)
{
    l->rail.resuming = false;
    for (uint64_t n = l->send.done; n < l->send.accepted; n++) {
        verbs_operation *o = verbs_operation_at(l, n);
        o->arrived = n < l->send.posted && o->over == NULL && o->slot < l->peer.words[WORD_ARRIVED];
        o->moved = 0;
    }
    l->send.posted = l->send.done;
}

static void look_at_rails(verbs_link *l)
{
    const queue_pair *q = &l->rail.queue[l->rail.active];
    const bool dead = atomic_load_explicit(&q->port->device->dead, memory_order_relaxed);
    const enum ibv_wc_status failure = queue_pair_failure(q);
    const bool failed = failure != IBV_WC_SUCCESS;
    const bool left = l->peer.words[WORD_LEFT] > (uint64_t)l->rail.active;
    if (((failed || left || dead) && has_other_rail(l)) || may_leave_port(l))
        change_rail(l);
    else if (dead)
        (void)verbs_break(l, fail(RING_ERR_SYSTEM,
                                  "the adapter %s has failed; see the kernel's log (dmesg)",
                                  q->port->device->name));
    else if (failed)
        (void)verbs_break(l,
                          fail(RING_ERR_PEER, "%s: %s: %s", q->port->name,
                               ibverbs_load()->wc_status_str(failure), ibverbs_explain(failure)));
    if (l->rail.resuming && l->peer.words[WORD_LEFT] >= (uint64_t)l->rail.active)
        resume(l);
}

void verbs_push(verbs_link *l)
{
    if (l->state != RING_OK)
        return;
    take_ends(l);
    if (l->send.done < l->send.posted || l->send.posted < l->send.accepted || l->recv.words_due) {
        completions_poll(l->rail.queue[l->rail.active].port->device);
        take_ends(l);
    }
    verbs_look_at_words(l);
    look_at_rails(l);
    if (l->state != RING_OK)
        return;
    if (l->recv.words_due)
        verbs_announce(l);
    if (l->send.posted < l->send.accepted)
        post_waiting(l);
}
