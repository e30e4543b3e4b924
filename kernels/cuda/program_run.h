/* SPDX-License-Identifier: Apache-2.0
 *
 * program_run: runs the ops of one lane in order, with all threads of a block.
 *
 * An op is executed in passes. In each pass the leader waits for the messages that the pass needs
 * and publishes the addresses of its operands; then all threads copy or fold; then the leader
 * notifies the peers. A message is read in the sender's memory (referred to), or stored to the
 * peer's dst if its address is known. Eager messages, and results of a fold that have no buffer of
 * their own, are carried in the peer's box. Short messages are sent by words, which all threads
 * store and wait for.
 */
#ifndef RING_CUDA_PROGRAM_RUN_H
#define RING_CUDA_PROGRAM_RUN_H

#include "copy_range.h"
#include "fold_range.h"
#include "program_words.h"
#include "scale_range.h"

/** The current pass, in shared memory. The leader writes it, and all threads read it. */
struct lane_pass {
    lane_run run;
    uint32_t lanes, slice, runs;
    uint64_t position; /* elements of the op that are done   */
    uint64_t elements; /* elements of the pass               */
    bool fails, last, divides;
    const char *from; /* source of the copy */
    char *to;
    uint64_t bytes;          /* bytes to copy; 0: nothing is copied                        */
    double scale;            /* factor of the elements at `from`, whose products are stored
                                at `to`; 1: nothing is multiplied                          */
    uint32_t fold_count;     /* 0: nothing is folded                                       */
    cuda_fold_args folds[2]; /* of an average: first the outputs that are not divided, then
                                those that are, which may overwrite an input               */
    pass_ends ends;
};

/* ---- Operands ------------------------------------------------------------------------- */

DEVICE uint64_t skipped(const lane_pass *p, const program_op *o)
{
    const uint64_t skip = p->slice * p->run.call->slice;
    return skip < o->count ? skip : o->count;
}

DEVICE uint64_t elements_of(const lane_pass *p, const program_op *o)
{
    const uint64_t left = o->count - skipped(p, o), slice = p->run.call->slice;
    return left < slice ? left : slice;
}

/* @return the offset in its buffer of the next element of an operand. */
DEVICE uint64_t offset_of(const lane_pass *p, const program_op *o, const operand *at)
{
    const bool whole = at->buffer == OPERAND_SCRATCH && p->run.call->slices > 1;
    return at->offset + ((whole ? 0 : skipped(p, o)) + p->position) * at->width;
}

DEVICE char *local_address(const lane_pass *p, const program_op *o, const operand *at)
{
    const device_call *call = p->run.call;
    if (at->buffer == OPERAND_SCRATCH)
        return call->scratch + p->run.lane * call->scratch_bytes + offset_of(p, o, at);
    const uint64_t *bases = call->bases[at->buffer];
    char *whole = at->buffer == OPERAND_SRC ? call->src : call->dst;
    return (bases != NULL ? (char *)bases[at->block] : whole) + offset_of(p, o, at);
}

/* @return the address in the peer's dst to which a result is stored; NULL if it is not stored. */
DEVICE char *store_address(const lane_pass *p, const program_op *o, const operand *to)
{
    const device_link *l = lane_link(&p->run, to->peer);
    return to->buffer == OPERAND_DST && l->dst != 0 ? (char *)l->dst + offset_of(p, o, to) : NULL;
}

/* @return the local output with the same contents as the output @p to; NULL if there is none. */
DEVICE const operand *local_twin(const program_op *o, const operand *outs, const operand *to)
{
    for (uint32_t i = 0; i < o->outs; i++)
        if (outs[i].peer == OPERAND_LOCAL && outs[i].finish == to->finish &&
            outs[i].accumulator == to->accumulator)
            return &outs[i];
    return NULL;
}

DEVICE bool is_apart(const lane_pass *p, const operand *at)
{
    return lane_link(&p->run, at->peer)->apart != DEVICE_NEAR;
}

/* Limits the pass to one frame of a carried message. */
DEVICE void cover_segment(lane_pass *p)
{
    if (p->elements > p->run.call->segment)
        p->elements = p->run.call->segment;
}

/* @return true if a message is sent by words. Both ends decide alike. */
DEVICE bool is_by_words(const lane_pass *p, const program_op *o, const operand *at)
{
    return at->peer != OPERAND_LOCAL && at->message < DEVICE_SLOTS &&
           elements_of(p, o) <= p->run.call->words &&
           lane_link(&p->run, at->peer)->apart != DEVICE_FAR;
}

/* Adds an operand to the ends of the pass. Inputs are added first.
 * @return NULL if the call has failed. */
DEVICE pass_end *add_end(lane_pass *p, const program_op *o, const operand *at, bool is_out)
{
    const device_call *call = p->run.call;
    pass_end *e = &p->ends.of[p->ends.count++];
    *e = pass_end{};
    e->peer = (uint32_t)at->peer;
    e->width = at->width;
    e->divided = o->kind == OP_FOLD && at->finish && call->op == RING_AVG && call->ranks > 1;
    p->divides = p->divides || e->divided;
    p->ends.ins += !is_out;
    if (at->peer == OPERAND_LOCAL)
        e->at = local_address(p, o, at);
    if (!is_by_words(p, o, at))
        return e;
    p->ends.by_words = true;
    return find_slot(&p->run, e, is_out) ? e : NULL;
}

DEVICE void finish_slots(lane_pass *p)
{
    for (uint32_t i = 0; i < p->ends.count; i++)
        if (p->ends.of[i].slot != NULL)
            finish_slot(&p->run, &p->ends.of[i], i >= p->ends.ins);
}

/* ---- Operands of a pass of a fold --------------------------------------------------------- */

DEVICE bool gather_input(lane_pass *p, const program_op *o, const operand *from)
{
    pass_end *e = add_end(p, o, from, false);
    if (e == NULL || e->slot != NULL || from->peer == OPERAND_LOCAL)
        return e != NULL;
    const device_frame *f = lane_peek(&p->run, from->peer);
    if (f == NULL)
        return false;
    e->at = lane_payload(lane_link(&p->run, from->peer), f);
    if (f->way == DEVICE_REFERRED)
        e->at += p->position * from->width;
    else
        cover_segment(p);
    return f->way != DEVICE_STORED ||
           lane_fail(&p->run, RING_ERR_INTERNAL, from->peer, {f->call, f->signature});
}

/* An output without an address is sent from the local output with the same contents. */
DEVICE bool gather_output(lane_pass *p, const program_op *o, const operand *outs, uint32_t i)
{
    const operand *to = &outs[i];
    pass_end *e = add_end(p, o, to, true);
    if (e == NULL || e->slot != NULL || to->peer == OPERAND_LOCAL)
        return e != NULL;
    e->at = store_address(p, o, to);
    if (e->at != NULL || (!is_apart(p, to) && local_twin(o, outs, to) != NULL))
        return true;
    cover_segment(p);
    e->at = lane_await_room(&p->run, to->peer, p->elements * to->width);
    e->carried = true;
    return e->at != NULL;
}

/* Gives the ends of the pass to one fold, or to two, of which the second one divides. */
DEVICE void set_folds(lane_pass *p, const operand *first)
{
    p->fold_count = p->divides ? 2 : 1;
    for (uint32_t k = 0; k < p->fold_count; k++) {
        cuda_fold_args *f = &p->folds[k];
        f->ins_wide = f->outs_wide = 0;
        f->in_count = p->ends.ins;
        f->out_count = 0;
        f->op = p->run.call->op;
        f->divisor = k == 1 ? p->run.call->ranks : 0;
        for (uint32_t i = 0; i < p->ends.ins; i++) {
            f->ins[i] = p->ends.of[i].at;
            f->ins_wide |= (uint64_t)first[i].accumulator << i;
        }
    }
    for (uint32_t i = p->ends.ins; i < p->ends.count; i++) {
        const pass_end *e = &p->ends.of[i];
        cuda_fold_args *f = &p->folds[e->divided ? 1 : 0];
        if (e->at == NULL)
            continue;
        f->outs[f->out_count] = e->at;
        f->outs_wide |= (uint64_t)first[i].accumulator << f->out_count++;
    }
}

/* Like a fold, keeps the bits of one input if no output has another width. */
DEVICE bool keeps_bits(const lane_pass *p, const program_op *o)
{
    bool keeps = o->kind != OP_FOLD || (p->ends.ins == 1 && !fold_is_logical(p->run.call->op));
    for (uint32_t i = 1; i < p->ends.count; i++)
        keeps = keeps && (p->ends.of[i].divided || p->ends.of[i].width == p->ends.of[0].width);
    return keeps;
}

DEVICE bool prepare_fold(lane_pass *p, const program_op *o, const operand *ins)
{
    const operand *outs = ins + o->ins;
    const uint64_t left = elements_of(p, o) - p->position;
    p->elements = left;
    for (uint32_t i = 0; i < o->ins; i++)
        if (!gather_input(p, o, &ins[i]))
            return false;
    for (uint32_t i = 0; i < o->outs; i++)
        if (!gather_output(p, o, outs, i))
            return false;
    p->last = p->elements == left;
    p->ends.copies = keeps_bits(p, o);
    if (!p->ends.by_words)
        set_folds(p, ins);
    return true;
}

/* ---- After a pass of a fold ---------------------------------------------------------------- */

/* Announces a complete message, which was stored, or is in a buffer of this rank that is not
 * written again before the peer has taken it. */
DEVICE bool announce(lane_pass *p, const program_op *o, const operand *outs, const operand *to)
{
    const uint64_t bytes = elements_of(p, o) * to->width;
    if (!lane_await_place(&p->run, to->peer))
        return false;
    if (store_address(p, o, to) != NULL) {
        lane_send(&p->run, to->peer, DEVICE_STORED, NULL, bytes, true);
        return true;
    }
    lane_send(&p->run, to->peer, DEVICE_REFERRED, local_address(p, o, local_twin(o, outs, to)),
              bytes, true);
    return true;
}

DEVICE bool finish_fold(lane_pass *p, const program_op *o, const operand *ins)
{
    const operand *outs = ins + o->ins;
    const pass_end *to = &p->ends.of[o->ins];
    for (uint32_t i = 0; i < o->ins; i++)
        if (ins[i].peer != OPERAND_LOCAL && p->ends.of[i].slot == NULL) {
            device_link *l = lane_link(&p->run, ins[i].peer);
            const device_frame *f = lane_frame(l);
            if (p->last || f->way == DEVICE_CARRIED)
                lane_take(l, p->last);
        }
    for (uint32_t i = 0; i < o->outs; i++)
        if (to[i].carried)
            lane_send(&p->run, outs[i].peer, DEVICE_CARRIED, to[i].at, p->elements * outs[i].width,
                      p->last);
    p->position = p->last ? 0 : p->position + p->elements;
    for (uint32_t i = 0; p->last && i < o->outs; i++)
        if (outs[i].peer != OPERAND_LOCAL && to[i].slot == NULL && !to[i].carried &&
            !announce(p, o, outs, &outs[i]))
            return false;
    return true;
}

/* ---- Other ops ------------------------------------------------------------------------------ */

DEVICE void set_copy(lane_pass *p, char *to, const char *from, uint64_t bytes)
{
    p->from = from;
    p->to = to;
    p->bytes = bytes;
}

DEVICE bool is_carried(const lane_pass *p, const program_op *o, const operand *from)
{
    return o->eager || is_apart(p, from + 1);
}

/* A message that is sent or received by words is a copy in one pass. */
DEVICE bool prepare_words(lane_pass *p, const program_op *o, const operand *from)
{
    p->elements = elements_of(p, o);
    p->last = p->ends.copies = true;
    return add_end(p, o, from, false) != NULL && add_end(p, o, from + 1, true) != NULL;
}

/* A borrowed message is referred to, unless the peer is in another process. An eager message is
 * carried. */
DEVICE bool prepare_send(lane_pass *p, const program_op *o, const operand *from)
{
    const operand *to = from + 1;
    const char *at = local_address(p, o, from);
    const uint64_t left = elements_of(p, o) - p->position;
    const bool carried = is_carried(p, o, from);
    if (is_by_words(p, o, to))
        return prepare_words(p, o, from);
    p->elements = left;
    if (carried)
        cover_segment(p);
    p->last = p->elements == left;
    if (!carried) {
        if (!lane_await_place(&p->run, to->peer))
            return false;
        lane_send(&p->run, to->peer, DEVICE_REFERRED, at, left * from->width, true);
        return true;
    }
    char *room = lane_await_room(&p->run, to->peer, p->elements * from->width);
    set_copy(p, room, at, p->elements * from->width);
    return room != NULL;
}

DEVICE void finish_send(lane_pass *p, const program_op *o, const operand *from)
{
    if (!p->ends.by_words && is_carried(p, o, from))
        lane_send(&p->run, from[1].peer, DEVICE_CARRIED, p->to, p->elements * from->width, p->last);
    p->position = p->last ? 0 : p->position + p->elements;
}

DEVICE bool prepare_recv(lane_pass *p, const program_op *o, const operand *from)
{
    const operand *to = from + 1;
    if (is_by_words(p, o, from))
        return prepare_words(p, o, from);
    const device_frame *f = lane_peek(&p->run, from->peer);
    if (f == NULL)
        return false;
    p->elements = f->bytes / to->width;
    if (p->elements > elements_of(p, o) - p->position)
        return lane_fail(&p->run, RING_ERR_INTERNAL, from->peer, {f->call, f->signature});
    p->last = p->position + p->elements == elements_of(p, o);
    if (f->way != DEVICE_STORED)
        set_copy(p, local_address(p, o, to), lane_payload(lane_link(&p->run, from->peer), f),
                 f->bytes);
    return true;
}

DEVICE void finish_recv(lane_pass *p, const operand *from)
{
    if (!p->ends.by_words)
        lane_take(lane_link(&p->run, from->peer), p->last);
    p->position = p->last ? 0 : p->position + p->elements;
}

/* A copy that casts is executed as a fold of one input. */
DEVICE void prepare_copy(lane_pass *p, const program_op *o, const operand *from)
{
    const operand *to = from + 1;
    char *at = local_address(p, o, to);
    const char *src = local_address(p, o, from);
    p->elements = elements_of(p, o);
    p->last = true;
    if (from->accumulator == to->accumulator) {
        set_copy(p, at, src, at == src ? 0 : p->elements * to->width);
        return;
    }
    (void)add_end(p, o, from, false);
    (void)add_end(p, o, to, true);
    set_folds(p, from);
}

/* Like the host, multiplies by no factor of 1, which could change the bits of a NaN. */
DEVICE void prepare_scale(lane_pass *p, const program_op *o, const operand *from)
{
    const device_call *call = p->run.call;
    p->scale = call->scale_at != NULL ? *call->scale_at : call->scale;
    p->elements = elements_of(p, o);
    p->last = true;
    set_copy(p, local_address(p, o, from + 1), local_address(p, o, from),
             p->scale == 1 ? p->elements * from->width : 0);
}

/* Waits until the peer has released the messages up to number @p last that were not carried. */
DEVICE bool await_lent(lane_pass *p, uint32_t peer, uint64_t last)
{
    const device_link *l = lane_link(&p->run, peer);
    const uint64_t least = l->lent < last ? l->lent : last;
    return least <= l->messages_before ||
           lane_await(&p->run, &l->receipt->released, least, peer, AWAITED_RECEIPT);
}

/* Waits for the messages sent so far in this run of the plan. */
DEVICE bool prepare_wait(lane_pass *p, const program_op *o, const operand *of)
{
    const uint32_t peer = (uint32_t)of->peer;
    const uint64_t sent = (uint64_t)p->runs * p->run.peers[peer].sends + o->messages;
    p->last = true;
    return await_lent(p, peer, lane_link(&p->run, peer)->messages_before + sent);
}

/* ---- The lane ----------------------------------------------------------------------------- */

DEVICE bool prepare(lane_pass *p, const program_op *o, const operand *first)
{
    p->fold_count = 0;
    p->bytes = 0;
    p->scale = 1;
    p->ends.ins = p->ends.count = 0;
    p->ends.by_words = p->divides = false;
    switch (o->kind) {
    case OP_SEND:
        return prepare_send(p, o, first);
    case OP_RECV:
        return prepare_recv(p, o, first);
    case OP_COPY:
        prepare_copy(p, o, first);
        return true;
    case OP_FOLD:
        return prepare_fold(p, o, first);
    case OP_SCALE:
        prepare_scale(p, o, first);
        return true;
    default:
        return prepare_wait(p, o, first);
    }
}

DEVICE bool finish(lane_pass *p, const program_op *o, const operand *first)
{
    finish_slots(p);
    switch (o->kind) {
    case OP_SEND:
        finish_send(p, o, first);
        return true;
    case OP_RECV:
        finish_recv(p, first);
        return true;
    case OP_FOLD:
        return finish_fold(p, o, first);
    default:
        return true;
    }
}

/* All threads call this. @tparam T  the type of elements, as in fold_range().
 * @return false if the call has failed. */
template <class T> DEVICE bool run_pass(lane_pass *p)
{
    if (p->ends.by_words)
        return fold_words<T>(&p->run, &p->ends, p->elements);
    if (p->bytes > 0)
        copy_range(p->to, p->from, p->bytes);
    if constexpr (T::FLOAT)
        if (p->scale != 1)
            scale_range<T, by_block>({p->to, p->from, (typename T::value)p->scale}, p->elements);
    NO_UNROLL
    for (uint32_t k = 0; k < p->fold_count; k++)
        if (p->folds[k].out_count > 0)
            fold_range<T, by_block, true>(p->folds[k], p->elements);
    return true;
}

/* All threads call this. The leader prepares each pass between two barriers, so that all threads
 * read the same pass and leave the loop together. */
template <class T> DEVICE bool run_op(lane_pass *p, const program_op *o)
{
    const operand *first = &p->run.operands[o->first];
    const bool leads = thread_index() == 0;
    for (;;) {
        if (leads)
            p->fails = p->fails || !prepare(p, o, first);
        block_barrier();
        const bool fails = p->fails, last = p->last;
        if (block_any(fails || !run_pass<T>(p)))
            return false;
        if (leads)
            p->fails = !finish(p, o, first);
        if (last)
            return true;
    }
}

/* All threads call this. The program lies in memory of the host, where each dependent read takes a
 * microsecond or more, so the block reads it once, all threads at the same time. */
DEVICE void read_program(lane_pass *p, device_16 *room, const device_call *call)
{
    const char *at = (const char *)call->ops;
    if (call->program_bytes > 0) {
        for (uint64_t i = thread_index(); i < call->program_bytes / 16; i += thread_count())
            room[i] = load_16(at + 16 * i);
        at = (const char *)room;
    }
    if (thread_index() == 0) {
        const char *ops = (const char *)call->ops;
        p->run.ops = (const program_op *)at;
        p->run.operands = (const operand *)(at + ((const char *)call->operands - ops));
        p->run.peers = (const program_peer *)(at + ((const char *)call->peers - ops));
    }
    block_barrier();
}

DEVICE void begin_lane(lane_pass *p, const device_call *call, uint32_t lane, uint32_t lanes)
{
    p->lanes = lanes;
    p->run.number = call->numbers[lane];
    p->fails = !lane_begin(&p->run, call, lane);
    p->position = 0;
    p->runs = 0;
    for (int32_t i = 0; i < call->peer_count; i++) {
        device_link *l = lane_link(&p->run, (uint32_t)i);
        l->begun = 0;
        l->dst = 0;
        l->messages_before = l->messages_out;
    }
}

DEVICE void end_lane(lane_pass *p)
{
    const device_call *call = p->run.call;
    for (int32_t i = 0; i < call->peer_count; i++)
        if (!await_lent(p, (uint32_t)i, UINT64_MAX))
            return;
    call->numbers[p->run.lane] = p->run.number + 1;
}

/* Runs all ops on one slice. Trailing waits are left out except in the last slice, because between
 * slices only scratch memory is written again. */
template <class T> DEVICE bool run_slice(lane_pass *p, const device_call *call)
{
    for (int32_t i = 0; i < call->op_count; i++) {
        const program_op *o = &p->run.ops[i];
        const bool passes = o->kind == OP_WAIT && o->trailing && call->scratch_bytes == 0 &&
                            p->slice + p->lanes < (uint32_t)call->slices;
        if (!passes && !run_op<T>(p, o))
            return false;
    }
    return true;
}

/** Runs one lane of a rank's program: the slices lane, lane + lanes, …. All threads of the block
 *  call it. @param room  of DEVICE_PROGRAM_BYTES in shared memory. */
template <class T>
DEVICE void run_lane(lane_pass *p, device_16 *room, const device_call *call, uint32_t lane,
                     uint32_t lanes)
{
    const bool leads = thread_index() == 0;
    bool goes_on = true;
    read_program(p, room, call);
    if (leads)
        begin_lane(p, call, lane, lanes);
    for (uint32_t slice = lane; goes_on && slice < (uint32_t)call->slices; slice += lanes) {
        block_barrier();
        if (leads) {
            p->runs += slice > lane;
            p->slice = slice;
        }
        block_barrier();
        goes_on = run_slice<T>(p, call);
    }
    if (leads && goes_on && !p->fails)
        end_lane(p);
    if (leads)
        count_end(call, lanes);
}

#endif
