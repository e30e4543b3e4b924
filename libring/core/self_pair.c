/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements sends of a rank to itself. Send k is matched with recv k. The first call of the two
 * waits in a list of this file, not in one of the engine's lists, until the second call is made.
 * Then the recv copies from the buffer of the send.
 */
#include "self_pair.h"

#include "comm.h"
#include "mismatch.h"
#include "sleep.h"

void self_pair_clear(ring_comm *comm)
{
    comm->self_pair.first = NULL;
    comm->self_pair.end = &comm->self_pair.first;
}

/* @return the matching work, removed from the list; NULL if the matching call has not been made. */
static work *take_partner(self_pair *pair, const work *w)
{
    for (work **at = &pair->first; *at != NULL; at = &(*at)->wait.next) {
        work *other = *at;
        if (other->seq != w->seq || other->call.collective == w->call.collective)
            continue;
        *at = other->wait.next;
        if (other->wait.next == NULL)
            pair->end = at;
        return other;
    }
    return NULL;
}

static ring_status check_pair(const work *w, const work *other)
{
    RING_TRY(mismatch_check_pair(w, w->comm->rank, &other->call, other->seq));
    const accelerator *a = w->by, *b = other->by;
    if (a != NULL && b != NULL && a != b)
        return fail(RING_ERR_UNSUPPORTED,
                    "this rank sends to itself from memory of %s to memory of %s; one of the two "
                    "buffers must be in host memory",
                    a->name, b->name);
    return RING_OK;
}

ring_status self_pair_join(work *receiver, work *sender)
{
    RING_TRY(check_pair(receiver, sender));
    receiver->partner = sender;
    sender->partner = receiver;
    /* The sender's buffer stays valid, because the end of the receiver ends both works. */
    receiver->buffers.src = sender->buffers.src;
    receiver->buffers.src_bytes = sender->buffers.src_bytes;
    receiver->buffers.src_by = sender->buffers.src_by;
    receiver->by = receiver->buffers.dst_by != NULL ? receiver->buffers.dst_by
                                                    : receiver->buffers.src_by;
    sleep_wake_callers(receiver->comm);
    return RING_OK;
}

ring_status self_pair_meet(work **w)
{
    work *mine = *w;
    self_pair *pair = &mine->comm->self_pair;
    if (mine->partner != NULL)
        return RING_OK;
    work *other = take_partner(pair, mine);
    if (other == NULL) {
        mine->wait.next = NULL;
        *pair->end = mine;
        pair->end = &mine->wait.next;
        return RING_IN_PROGRESS;
    }
    *w = mine->call.collective == PLAN_RECV ? mine : other;
    return self_pair_join(*w, *w == mine ? other : mine);
}
