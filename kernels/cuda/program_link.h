/* SPDX-License-Identifier: Apache-2.0
 *
 * program_link: the messages of a lane, and its waits. One thread of the block, the leader, calls
 * all of this.
 */
#ifndef RING_CUDA_PROGRAM_LINK_H
#define RING_CUDA_PROGRAM_LINK_H

#include "device.h"
#include "program_args.h"

#include <ring/ring.h>

/** How often a wait looks at its word before it looks at the clock and at who wants its end. */
enum { LOOKS = 64 };

/** The state of a lane that the threads of its block share. */
struct lane_run {
    const device_call *call;
    device_link *links; /* of the lane, by rank */
    uint64_t number;    /* of the call */
    uint64_t deadline;
    uint32_t lane;
};

/** @param peer  its place among the peers of the program. */
DEVICE device_link *lane_link(const lane_run *r, uint32_t peer)
{
    return &r->links[r->call->peers[peer].rank];
}

/* ---- Waiting ------------------------------------------------------------------------ */

/** The lane's call ends; the rank's other lanes end. @param rank  that it is about. */
DEVICE void lane_end(lane_run *r, ring_status status, int32_t rank, const device_frame *theirs)
{
    device_verdict *v = &r->call->verdicts[r->lane];
    v->peer = (uint64_t)rank;
    v->their_signature = theirs != NULL ? theirs->signature : 0;
    v->their_call = theirs != NULL ? theirs->call : 0;
    store_release(&v->status, (uint64_t)status);
    store_release(r->call->stop, 1);
}

/** The same, about a peer. @return false. */
DEVICE bool lane_fail(lane_run *r, ring_status status, uint32_t peer, const device_frame *theirs)
{
    lane_end(r, status, r->call->peers[peer].rank, theirs);
    return false;
}

/* @return true: it goes on waiting. */
DEVICE bool may_wait(lane_run *r, uint32_t peer)
{
    if (load_relaxed(r->call->abort) != 0)
        return lane_fail(r, RING_ERR_ABORTED, peer, NULL);
    if (load_relaxed(r->call->stop) != 0)
        return false;
    if (device_nanoseconds() >= r->deadline)
        return lane_fail(r, RING_ERR_TIMEOUT, peer, NULL);
    return true;
}

/** Until the word, which only grows, is @p least. @return false: the call has failed. */
DEVICE bool lane_await(lane_run *r, const uint64_t *word, uint64_t least, uint32_t peer)
{
    for (uint32_t looks = 1; load_acquire(word) < least; looks++) {
        if (looks % LOOKS == 0 && !may_wait(r, peer))
            return false;
        device_pause();
    }
    return true;
}

/* ---- In ------------------------------------------------------------------------------- */

/** The next frame of the peer, which stays until lane_take(). @return NULL: the call has failed. */
DEVICE const device_frame *lane_peek(lane_run *r, uint32_t peer)
{
    device_link *l = lane_link(r, peer);
    const device_frame *f = &l->in->frames[l->frames_in % DEVICE_FRAMES];
    if (!lane_await(r, &f->stamp, l->frames_in + 1, peer))
        return NULL;
    if (f->call != r->number || f->signature != r->call->signature) {
        lane_fail(r, RING_ERR_MISMATCH, peer, f);
        return NULL;
    }
    if (l->begun == 0 && l->apart == 0)
        l->dst = f->dst;
    l->begun = 1;
    return f;
}

/** Where the bytes of a frame lie: a whole message's if it is referred to. */
DEVICE char *lane_payload(const device_link *l, const device_frame *f)
{
    return f->way == DEVICE_REFERRED ? (char *)f->at : l->in->carried + f->at;
}

/** The frame has been read. */
DEVICE void lane_take(device_link *l, bool last)
{
    store_release(&l->given->taken, ++l->frames_in);
    if (last)
        store_release(&l->given->released, ++l->messages_in);
}

/* ---- Out ------------------------------------------------------------------------------ */

/** Room for one more frame. @return false: the call has failed. */
DEVICE bool lane_await_place(lane_run *r, uint32_t peer)
{
    const device_link *l = lane_link(r, peer);
    return l->frames_out < DEVICE_FRAMES ||
           lane_await(r, &l->receipt->taken, l->frames_out + 1 - DEVICE_FRAMES, peer);
}

/* Bytes of the box that are in use: those of frames that the peer has not taken. */
DEVICE uint64_t carried_free_from(const device_link *l, uint64_t taken)
{
    return taken == l->frames_out ? l->carried : l->carried_before[taken % DEVICE_FRAMES];
}

/** Room in the peer's box for the next frame, and a place for it.
 *  @return NULL: the call has failed. */
DEVICE char *lane_await_room(lane_run *r, uint32_t peer, uint64_t bytes)
{
    device_link *l = lane_link(r, peer);
    const uint64_t whole = (bytes + 15) / 16 * 16, at = l->carried % DEVICE_CARRIED_BYTES;
    const uint64_t gap = at + whole > DEVICE_CARRIED_BYTES ? DEVICE_CARRIED_BYTES - at : 0;
    const uint64_t end = l->carried + gap + whole;
    uint64_t taken = load_acquire(&l->receipt->taken);
    if (!lane_await_place(r, peer))
        return NULL;
    while (end - carried_free_from(l, taken) > DEVICE_CARRIED_BYTES) {
        if (!lane_await(r, &l->receipt->taken, taken + 1, peer))
            return NULL;
        taken = load_acquire(&l->receipt->taken);
    }
    return l->out->carried + (at + whole > DEVICE_CARRIED_BYTES ? 0 : at);
}

/** Sends a frame for which there is a place, and if it is carried, room.
 *  @param at  where its bytes lie; NULL where none are read. */
DEVICE void lane_send(lane_run *r, uint32_t peer, uint32_t way, const char *at, uint64_t bytes,
                      bool last)
{
    device_link *l = lane_link(r, peer);
    device_frame *f = &l->out->frames[l->frames_out % DEVICE_FRAMES];
    l->carried_before[l->frames_out % DEVICE_FRAMES] = l->carried;
    f->call = r->number;
    f->signature = r->call->signature;
    f->at = (uint64_t)at;
    if (way == DEVICE_CARRIED) {
        const uint64_t offset = (uint64_t)(at - l->out->carried);
        const uint64_t passed = l->carried % DEVICE_CARRIED_BYTES;
        f->at = offset;
        l->carried += (offset < passed ? DEVICE_CARRIED_BYTES - passed + offset : offset - passed) +
                      (bytes + 15) / 16 * 16;
    }
    f->dst = (uint64_t)r->call->dst;
    f->bytes = bytes;
    f->way = way;
    f->last = last;
    l->messages_out += last;
    store_release(&f->stamp, ++l->frames_out);
}

#endif
