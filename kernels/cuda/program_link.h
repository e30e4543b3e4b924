/* SPDX-License-Identifier: Apache-2.0
 *
 * program_link: sends and receives the frames of a lane, and waits for its peers. One thread of the
 * block, the leader, calls these functions; any thread may wait.
 */
#ifndef RING_CUDA_PROGRAM_LINK_H
#define RING_CUDA_PROGRAM_LINK_H

#include "device.h"
#include "program_args.h"

#include <ring/ring.h>

/** A wait checks its deadline and the requests to abort after this many polls of its word. */
enum { POLLS_PER_CHECK = 64 };
/** A frame arrives at most so long after words that were sent after it. */
enum { LATENESS_NANOSECONDS = 1000000 };

/** The state of a lane that the threads of its block share. */
struct lane_run {
    const device_call *call;
    const program_op *ops; /* the program, in shared memory if there is room for it */
    const operand *operands;
    const program_peer *peers;
    device_link *links; /* of the lane, by rank */
    uint64_t number;    /* of the call */
    uint64_t deadline;
    uint32_t lane;
};

/** @param peer  the place of the peer in the list of the program. */
DEVICE device_link *lane_link(const lane_run *r, uint32_t peer)
{
    return &r->links[r->peers[peer].rank];
}

/** @return the place of a frame, counted from 0, in its box. */
DEVICE uint64_t frame_place(const device_link *l, uint64_t frame)
{
    return frame & (l->frames - 1);
}

/** @return the frame that is taken next, which may not have arrived. */
DEVICE const device_frame *lane_frame(const device_link *l)
{
    return &l->in.frames[frame_place(l, l->frames_in)];
}

/** @return the slot of a message by words, counted from 1. */
DEVICE uint64_t *slot_of(const device_link *l, const device_box *box, uint64_t message)
{
    return box->slots + message % DEVICE_SLOTS * DEVICE_SLOT_WORDS(l->window);
}

/** The call of a message, as in device_frame. */
struct call_label {
    uint64_t call, signature;
};

/** @param[out] theirs  the call of a message by words. @return false if it has not arrived. */
DEVICE bool read_header(const uint64_t *slot, uint32_t flag, call_label *theirs)
{
    uint32_t data[DEVICE_HEADER_WORDS];
    bool arrived = true;
    UNROLL
    for (uint32_t i = 0; i < DEVICE_HEADER_WORDS; i++) {
        const uint64_t word = load_relaxed(&slot[i]);
        arrived = arrived && (uint32_t)(word >> 32) == flag;
        data[i] = (uint32_t)word;
    }
    theirs->call = (uint64_t)data[1] << 32 | data[0];
    theirs->signature = (uint64_t)data[3] << 32 | data[2];
    return arrived;
}

/* If both ends run pairs, prepare_pair_recv() compares the frames. */
DEVICE bool is_of_other_call(const lane_run *r, const call_label &theirs)
{
    if ((theirs.call & r->number & DEVICE_PAIR_CALL(0)) != 0)
        return false;
    return theirs.call != r->number || theirs.signature != r->call->signature;
}

/** The event for which a lane waits. It does not tell which message is awaited, only whether that
 *  is a frame or words. */
enum awaited { AWAITED_RECEIPT, AWAITED_FRAME, AWAITED_WORDS };

/* @return true if the awaited message has not arrived, but one of the other kind (frame or words)
 * has, which belongs to another call. The frame is read first: if it has arrived, so have words
 * that were sent before it. */
DEVICE bool is_in_other_call(const lane_run *r, int32_t rank, awaited what, call_label *theirs)
{
    const device_link *l = &r->links[rank];
    const device_frame *f = lane_frame(l);
    const uint64_t message = l->words_in + 1;
    const bool framed = load_acquire(&f->stamp) > l->frames_in;
    const bool worded = read_header(slot_of(l, &l->in, message), (uint32_t)message, theirs);
    if (what == AWAITED_FRAME)
        return worded && !framed && is_of_other_call(r, *theirs);
    if (what == AWAITED_RECEIPT || worded || !framed)
        return false;
    *theirs = {f->call, f->signature};
    return is_of_other_call(r, *theirs);
}

/* Words may arrive before a frame that was sent earlier, so the answer must stay the same. */
DEVICE bool stays_in_other_call(const lane_run *r, int32_t rank, awaited what, call_label *theirs)
{
    const uint64_t since = device_nanoseconds();
    while (is_in_other_call(r, rank, what, theirs)) {
        if (device_nanoseconds() - since > LATENESS_NANOSECONDS)
            return true;
        device_pause();
    }
    return false;
}

/* ---- Waiting ------------------------------------------------------------------------ */

/** Ends the lane's call, and with it the rank's other lanes. Any thread may call this; the first
 * one gives the verdict. @param rank  the rank concerned. */
DEVICE void lane_end(lane_run *r, ring_status status, int32_t rank, call_label theirs = {})
{
    device_verdict *v = &r->call->verdicts[r->lane];
    if (add_release(r->call->stop, 1) != 0)
        return;
    v->peer = (uint64_t)rank;
    v->their_signature = theirs.signature;
    v->their_call = theirs.call;
    store_release(&v->status, (uint64_t)status);
}

/** Begins a lane's part of a call.
 *  @return false if the call has been aborted, so that the peers' memory may not be mapped, or if
 * an earlier call has failed: its number has not been used up, and peers would take this call for
 * it. */
DEVICE bool lane_begin(lane_run *r, const device_call *call, uint32_t lane)
{
    r->call = call;
    r->lane = lane;
    r->links = &call->links[(uint64_t)lane * (uint64_t)call->ranks];
    r->deadline = device_nanoseconds() + call->nanoseconds;
    if (load_relaxed(call->abort) == 0)
        return load_relaxed(call->stop) == 0;
    lane_end(r, RING_ERR_ABORTED, 0);
    return false;
}

/* Holds a run that has failed, and so its stream, until the host releases it. The host reads the
 * verdict meanwhile. */
DEVICE void await_release(const device_call *call)
{
    if (call->release == NULL || (load_relaxed(call->stop) == 0 && load_relaxed(call->abort) == 0))
        return;
    while (load_relaxed(call->release) == 0)
        device_pause();
}

/** Counts a lane that has ended. The last lane tells the host, and streams that wait for the run.
 * By then all results are visible at system scope, and no lane accesses memory any more: other
 * threads of a block have passed the last barrier, after which they only return. */
DEVICE void count_end(const device_call *call, uint32_t lanes)
{
    await_release(call);
    if (call->passed == NULL || (lanes > 1 && add_release(call->ended, 1) + 1 < lanes))
        return;
    if (lanes > 1) {
        (void)load_acquire(call->ended); /* orders what all lanes did before what follows */
        store_relaxed(call->ended, 0);
    }
    store_release(call->passed, call->run);
}

/** Ends the call as lane_end() does, because of a peer. @return false. */
DEVICE bool lane_fail(lane_run *r, ring_status status, uint32_t peer, call_label theirs)
{
    lane_end(r, status, r->peers[peer].rank, theirs);
    return false;
}

/** @param rank  for which the lane waits.
 *  @return false if the wait must end; the call has failed then. */
DEVICE bool may_wait(lane_run *r, int32_t rank, awaited what)
{
    call_label theirs = {};
    const bool aborted = load_relaxed(r->call->abort) != 0;
    if (!aborted && load_relaxed(r->call->stop) != 0)
        return false;
    const bool differs = !aborted && stays_in_other_call(r, rank, what, &theirs);
    if (!aborted && !differs && device_nanoseconds() < r->deadline)
        return true;
    if (differs)
        lane_end(r, RING_ERR_MISMATCH, rank, theirs);
    else
        lane_end(r, aborted ? RING_ERR_ABORTED : RING_ERR_TIMEOUT, rank);
    return false;
}

/** Polls a word, which only grows, until it is at least @p least.
 *  @return false if the call has failed. */
DEVICE bool lane_await(lane_run *r, const uint64_t *word, uint64_t least, uint32_t peer,
                       awaited what)
{
    for (uint32_t polls = 1; load_acquire(word) < least; polls++) {
        if (polls % POLLS_PER_CHECK == 0 && !may_wait(r, r->peers[peer].rank, what))
            return false;
        device_pause();
    }
    return true;
}

/* ---- Receiving ------------------------------------------------------------------------ */

/** Waits for the peer's next frame, which stays in the box until lane_take().
 *  @return NULL if the call has failed. */
DEVICE const device_frame *lane_peek(lane_run *r, uint32_t peer)
{
    device_link *l = lane_link(r, peer);
    const device_frame *f = lane_frame(l);
    if (!lane_await(r, &f->stamp, l->frames_in + 1, peer, AWAITED_FRAME))
        return NULL;
    if (is_of_other_call(r, {f->call, f->signature})) {
        lane_fail(r, RING_ERR_MISMATCH, peer, {f->call, f->signature});
        return NULL;
    }
    if (l->begun == 0 && l->apart == DEVICE_NEAR)
        l->dst = f->dst;
    l->begun = 1;
    return f;
}

/** @return the address of a frame's bytes; if it is referred to, of the whole message. */
DEVICE char *lane_payload(const device_link *l, const device_frame *f)
{
    return f->way == DEVICE_REFERRED ? (char *)f->at : l->in.carried + f->at;
}

/** Releases a frame that has been read. @param last  whether its message is complete. */
DEVICE void lane_take(device_link *l, bool last)
{
    store_release(&l->given->taken, ++l->frames_in);
    if (last)
        store_release(&l->given->released, ++l->messages_in);
}

/* ---- Sending -------------------------------------------------------------------------- */

/** Waits until the peer's box has a place for one more frame.
 *  @return false if the call has failed. */
DEVICE bool lane_await_place(lane_run *r, uint32_t peer)
{
    const device_link *l = lane_link(r, peer);
    return l->frames_out < l->frames ||
           lane_await(r, &l->receipt->taken, l->frames_out + 1 - l->frames, peer, AWAITED_RECEIPT);
}

/* @return the position of the first carried byte that the peer has not taken. */
DEVICE uint64_t carried_free_from(const device_link *l, uint64_t taken)
{
    return taken == l->frames_out ? l->carried : l->carried_before[frame_place(l, taken)];
}

/** @param taken  frames that the peer has taken, of which the box has a place for one more.
 *  @return the room for the bytes of the next frame; NULL if the peer must take more frames first.
 *  A frame is not split at the end of the box: it begins at the start again instead. */
DEVICE char *link_room(const device_link *l, uint64_t bytes, uint64_t taken)
{
    const uint64_t whole = (bytes + 15) / 16 * 16;
    const bool fits = l->carried_at + whole <= l->window;
    const uint64_t end = l->carried + (fits ? 0 : l->window - l->carried_at) + whole;
    if (end - carried_free_from(l, taken) > l->window)
        return NULL;
    return l->out.carried + (fits ? l->carried_at : 0);
}

/** Waits until the peer's box has a place for the next frame and room for its bytes.
 *  @return the room; NULL if the call has failed. */
DEVICE char *lane_await_room(lane_run *r, uint32_t peer, uint64_t bytes)
{
    const device_link *l = lane_link(r, peer);
    if (!lane_await_place(r, peer))
        return NULL;
    for (;;) {
        const uint64_t taken = load_acquire(&l->receipt->taken);
        char *room = link_room(l, bytes, taken);
        if (room != NULL)
            return room;
        if (!lane_await(r, &l->receipt->taken, taken + 1, peer, AWAITED_RECEIPT))
            return NULL;
    }
}

/** The call of a frame, as in device_frame. */
struct frame_label {
    uint64_t call, signature, dst;
};

/** Sends a frame. The box must have a place for it and, if it is carried, room for its bytes.
 *  @param at  the address of its bytes; NULL if the peer reads no bytes. */
DEVICE void link_send(device_link *l, const frame_label &label, uint32_t way, const char *at,
                      uint64_t bytes, bool last)
{
    const uint64_t place = frame_place(l, l->frames_out);
    device_frame *f = &l->out.frames[place];
    l->carried_before[place] = l->carried;
    f->call = label.call;
    f->signature = label.signature;
    f->at = (uint64_t)at;
    if (way == DEVICE_CARRIED) {
        const uint64_t offset = (uint64_t)(at - l->out.carried);
        const uint64_t whole = (bytes + 15) / 16 * 16;
        const uint64_t skipped = offset < l->carried_at ? l->window - l->carried_at : 0;
        f->at = offset;
        l->carried += skipped + whole;
        l->carried_at = offset + whole;
    }
    f->dst = label.dst;
    f->bytes = bytes;
    f->way = way;
    f->last = last;
    l->messages_out += last;
    if (way != DEVICE_CARRIED)
        l->lent = l->messages_out;
    store_release(&f->stamp, ++l->frames_out);
}

/** Sends a frame of the collective that the lane runs. */
DEVICE void lane_send(lane_run *r, uint32_t peer, uint32_t way, const char *at, uint64_t bytes,
                      bool last)
{
    const frame_label label = {r->number, r->call->signature, (uint64_t)r->call->dst};
    link_send(lane_link(r, peer), label, way, at, bytes, last);
}

#endif
