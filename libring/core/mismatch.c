/* SPDX-License-Identifier: Apache-2.0
 * Compares calls of different ranks, and writes the errors for calls that differ. */
#include "mismatch.h"

/* ---- This rank's collectives ---------------------------------------------------------------- */

static const work *find_in_flight(const ring_comm *comm, uint64_t seq)
{
    for (const work *w = comm->works.first; w != NULL; w = w->next)
        if (w->seq == seq && !w->program->facts->pairwise)
            return w;
    return NULL;
}

static bool is_in_history(const ring_comm *comm, uint64_t seq)
{
    return seq < comm->history.calls && comm->history.calls - seq <= HISTORY_CALLS;
}

static uint64_t history_entry(const ring_comm *comm, uint64_t seq)
{
    return comm->history.packed[seq % HISTORY_CALLS];
}

own_call mismatch_compare(const ring_comm *comm, uint64_t seq, uint64_t packed,
                          const call_signature *theirs)
{
    if (seq >= comm->history.calls)
        return CALL_NOT_MADE;
    if (!is_in_history(comm, seq))
        return CALL_UNKNOWN;
    if (history_entry(comm, seq) == HISTORY_REFUSED)
        return CALL_REFUSED;
    const work *w = find_in_flight(comm, seq);
    const bool same = signature_same(packed, history_entry(comm, seq)) &&
                      (w == NULL || (theirs->count == w->call.count &&
                                     (theirs->root == w->call.root || !w->program->facts->rooted)));
    return same ? CALL_SAME : CALL_OTHER;
}

call_signature mismatch_own(const ring_comm *comm, uint64_t seq)
{
    const work *w = find_in_flight(comm, seq);
    if (w != NULL)
        return w->call;
    return is_in_history(comm, seq) ? signature_unpack(history_entry(comm, seq))
                                    : comm->info.latest;
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* @param caller  a rank that made @p call. @param other  a rank that made another call or refused
 * this one. @param did  "called" or "refused it:". @param object  the other call, or the reason of
 * the refusal. */
static ring_status differ(const ring_comm *comm, int caller, const call_signature *call,
                          uint64_t seq, int other, const char *did, const char *object)
{
    char text[160];
    signature_describe(call, seq, text, sizeof text);
    return fail(RING_ERR_MISMATCH,
                "ranks made different calls: rank %d (%s) called %s, rank %d (%s) %s %s", caller,
                comm_host(comm, caller), text, other, comm_host(comm, other), did, object);
}

ring_status mismatch_differ(const ring_comm *comm, const call_signature *mine, uint64_t my_seq,
                            int rank, const call_signature *theirs, uint64_t their_seq)
{
    char text[160];
    signature_describe(theirs, their_seq, text, sizeof text);
    return differ(comm, comm->rank, mine, my_seq, rank, "called", text);
}

ring_status mismatch_refused(const ring_comm *comm, const call_signature *mine, uint64_t seq,
                             int refuser, const char *why)
{
    return differ(comm, comm->rank, mine, seq, refuser, "refused it:", why);
}

ring_status mismatch_collective(const ring_comm *comm, uint64_t my_seq, int rank,
                                const call_signature *theirs, uint64_t their_seq)
{
    const call_reports *s = &comm->reports;
    if (is_in_history(comm, my_seq) && history_entry(comm, my_seq) == HISTORY_REFUSED)
        return differ(comm, rank, theirs, my_seq, comm->rank,
                      "refused it:", s->own_number == my_seq ? s->own : "its arguments were wrong");
    const call_signature mine = mismatch_own(comm, my_seq);
    return mismatch_differ(comm, &mine, my_seq, rank, theirs, their_seq);
}

ring_status mismatch_check_pair(const work *w, int rank, const call_signature *theirs,
                                uint64_t their_seq)
{
    if (w->call.count == theirs->count && w->call.dtype == theirs->dtype)
        return RING_OK;
    return mismatch_differ(w->comm, &w->call, w->seq, rank, theirs, their_seq);
}

/* ---- Frames --------------------------------------------------------------------------------- */

/* @return the call number of a frame. The frame carries only the low 16 bits; the number with these
 * bits that is closest to @p near is the right one. */
static uint64_t call_of(const transport_frame *frame, uint64_t near)
{
    return near + (uint64_t)(int64_t)(int16_t)(frame->call - (uint16_t)near);
}

static bool is_of_later_call(const work *w, const transport_frame *frame)
{
    return !w->program->facts->pairwise && call_of(frame, w->seq) > w->seq;
}

static ring_status other_call(const work *w, const channel *c, const transport_frame *frame)
{
    const uint64_t theirs = call_of(frame, w->seq);
    const uint64_t mine = theirs < w->seq ? theirs : w->seq;
    const call_signature other = signature_of_frame(frame);
    if (w->program->facts->pairwise)
        return mismatch_differ(w->comm, &w->call, mine, c->rank, &other, theirs);
    return mismatch_collective(w->comm, mine, c->rank, &other, theirs);
}

ring_status mismatch_of_frame(const work *w, const channel *c, const transport_frame *frame)
{
    return is_of_later_call(w, frame) ? RING_IN_PROGRESS : other_call(w, c, frame);
}

ring_status mismatch_check_stalled(const work *w)
{
    const channel *c = w->wait.on;
    const transport_frame *frame;
    const void *payload;
    if (c == NULL || w->wait.kind != WAIT_FRAME || w->wait.number != c->received ||
        c->link->transport->peek(c->link, &frame, &payload) != RING_OK)
        return RING_OK;
    return is_of_later_call(w, frame) ? other_call(w, c, frame) : RING_OK;
}

ring_status mismatch_check_left_over(const channel *c)
{
    const ring_comm *comm = c->comm;
    const transport_frame *frame;
    const void *payload;
    if (c->link->transport->peek(c->link, &frame, &payload) != RING_OK || comm->history.calls == 0)
        return RING_OK;
    const uint64_t seq = call_of(frame, comm->history.calls - 1);
    const call_signature theirs = signature_of_frame(frame);
    const own_call mine = mismatch_compare(comm, seq, frame->signature, &theirs);
    return mine == CALL_REFUSED || mine == CALL_OTHER
               ? mismatch_collective(comm, seq, c->rank, &theirs, seq)
               : RING_OK;
}

ring_status mismatch_of_length(const work *w, int rank, size_t theirs, size_t mine)
{
    const ring_comm *comm = w->comm;
    return fail(RING_ERR_MISMATCH,
                "ring_%s: rank %d (%s) sends %zu element%s to rank %d (%s), which expects %zu",
                w->program->facts->name, rank, comm_host(comm, rank), theirs, plural(theirs),
                comm->rank, comm_host(comm, comm->rank), mine);
}
