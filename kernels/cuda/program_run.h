/* SPDX-License-Identifier: Apache-2.0
 *
 * program_run: a block runs the ops of one lane, in order.
 *
 * An op is done in passes. In each the leader waits for what the pass needs, and says where its
 * operands lie; then all threads copy or fold; then the leader tells peers of it. Messages are
 * referred to, and read where they lie, or stored to the peer's dst where its address has come;
 * what is eager, and what a fold relays without a buffer of its own, is carried in the peer's box.
 */
#ifndef RING_CUDA_PROGRAM_RUN_H
#define RING_CUDA_PROGRAM_RUN_H

#include "copy_range.h"
#include "fold_range.h"
#include "program_link.h"

enum { MOST_OPERANDS = 64 };

/** The present pass, in shared memory: the leader writes it, all threads read it. */
struct lane_pass {
    lane_run run;
    uint32_t lanes, slice, runs;
    uint64_t position; /* elements of the op that are done */
    uint64_t elements; /* of the pass                      */
    bool fails, last;
    const char *from; /* to copy */
    char *to;
    uint64_t bytes;               /* 0: nothing */
    uint32_t fold_count;          /* 0: nothing is folded */
    cuda_fold_args folds[2];      /* of an average: what is not divided, then what is, for it may
                                     replace an input */
    char *relayed[MOST_OPERANDS]; /* by output of the op: where it is carried, NULL: it is not */
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

/* Bytes from the beginning of its buffer to the next element of an operand. */
DEVICE uint64_t offset_of(const lane_pass *p, const program_op *o, const operand *at)
{
    const bool whole = at->buffer == OPERAND_SCRATCH && p->run.call->slices > 1;
    return at->offset + ((whole ? 0 : skipped(p, o)) + p->position) * at->width;
}

DEVICE char *local_address(const lane_pass *p, const program_op *o, const operand *at)
{
    const device_call *call = p->run.call;
    char *base = at->buffer == OPERAND_SRC   ? call->src
                 : at->buffer == OPERAND_DST ? call->dst
                                             : call->scratch + p->run.lane * call->scratch_bytes;
    return base + offset_of(p, o, at);
}

/* Where the result for a peer is stored in its dst; NULL: it is not. */
DEVICE char *store_address(const lane_pass *p, const program_op *o, const operand *to)
{
    const device_link *l = lane_link(&p->run, to->peer);
    return to->buffer == OPERAND_DST && l->dst != 0 ? (char *)l->dst + offset_of(p, o, to) : NULL;
}

/* The local output that holds what @p to is to get; NULL: there is none. */
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
    return lane_link(&p->run, at->peer)->apart != 0;
}

/* A carried message comes in frames: the pass covers one. */
DEVICE void cover_segment(lane_pass *p)
{
    if (p->elements > p->run.call->segment)
        p->elements = p->run.call->segment;
}

/* ---- A pass of a fold: its operands ------------------------------------------------------ */

DEVICE void add_input(lane_pass *p, uint32_t i, const void *at, bool accumulator)
{
    for (uint32_t k = 0; k < p->fold_count; k++) {
        p->folds[k].ins[i] = at;
        p->folds[k].ins_wide |= (uint64_t)accumulator << i;
    }
}

DEVICE bool gather_input(lane_pass *p, const program_op *o, const operand *from, uint32_t i)
{
    if (from->peer == OPERAND_LOCAL) {
        add_input(p, i, local_address(p, o, from), from->accumulator);
        return true;
    }
    const device_frame *f = lane_peek(&p->run, from->peer);
    if (f == NULL)
        return false;
    char *payload = lane_payload(lane_link(&p->run, from->peer), f);
    if (f->way == DEVICE_REFERRED)
        payload += p->position * from->width;
    else
        cover_segment(p);
    add_input(p, i, payload, from->accumulator);
    return f->way != DEVICE_STORED || lane_fail(&p->run, RING_ERR_INTERNAL, from->peer, f);
}

DEVICE bool gather_output(lane_pass *p, const program_op *o, const operand *outs, uint32_t i)
{
    const operand *to = &outs[i];
    p->relayed[i] = NULL;
    if (to->peer == OPERAND_LOCAL)
        return true;
    if (store_address(p, o, to) != NULL || (!is_apart(p, to) && local_twin(o, outs, to) != NULL))
        return true;
    cover_segment(p);
    p->relayed[i] = lane_await_room(&p->run, to->peer, p->elements * to->width);
    return p->relayed[i] != NULL;
}

DEVICE void add_output(lane_pass *p, const program_op *o, const operand *outs, uint32_t i)
{
    const operand *to = &outs[i];
    cuda_fold_args *f = &p->folds[to->finish ? p->fold_count - 1 : 0];
    char *at = to->peer == OPERAND_LOCAL ? local_address(p, o, to) : store_address(p, o, to);
    if (p->relayed[i] != NULL)
        at = p->relayed[i];
    if (at == NULL)
        return; /* it is sent from its twin */
    f->outs[f->out_count] = at;
    f->outs_wide |= (uint64_t)to->accumulator << f->out_count++;
}

DEVICE void begin_folds(lane_pass *p, const program_op *o)
{
    const device_call *call = p->run.call;
    const bool divides = call->op == RING_AVG && call->ranks > 1;
    p->fold_count = divides ? 2 : 1;
    for (uint32_t k = 0; k < p->fold_count; k++) {
        p->folds[k].ins_wide = p->folds[k].outs_wide = 0;
        p->folds[k].in_count = o->ins;
        p->folds[k].out_count = 0;
        p->folds[k].op = call->op;
        p->folds[k].divisor = k == 1 ? call->ranks : 0;
    }
}

DEVICE bool prepare_fold(lane_pass *p, const program_op *o, const operand *ins)
{
    const operand *outs = ins + o->ins;
    const uint64_t left = elements_of(p, o) - p->position;
    p->elements = left;
    begin_folds(p, o);
    for (uint32_t i = 0; i < o->ins; i++)
        if (!gather_input(p, o, &ins[i], i))
            return false;
    for (uint32_t i = 0; i < o->outs; i++)
        if (!gather_output(p, o, outs, i))
            return false;
    for (uint32_t i = 0; i < o->outs; i++)
        add_output(p, o, outs, i);
    p->last = p->elements == left;
    return true;
}

/* ---- After a pass of a fold ---------------------------------------------------------------- */

/* A message of which all is there: it was stored, or lies in a buffer of this rank that is written
 * no more before the peer has taken it. */
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
    for (uint32_t i = 0; i < o->ins; i++)
        if (ins[i].peer != OPERAND_LOCAL) {
            device_link *l = lane_link(&p->run, ins[i].peer);
            const device_frame *f = &l->in->frames[l->frames_in % DEVICE_FRAMES];
            if (p->last || f->way == DEVICE_CARRIED)
                lane_take(l, p->last);
        }
    for (uint32_t i = 0; i < o->outs; i++)
        if (outs[i].peer != OPERAND_LOCAL && p->relayed[i] != NULL)
            lane_send(&p->run, outs[i].peer, DEVICE_CARRIED, p->relayed[i],
                      p->elements * outs[i].width, p->last);
    p->position = p->last ? 0 : p->position + p->elements;
    for (uint32_t i = 0; p->last && i < o->outs; i++)
        if (outs[i].peer != OPERAND_LOCAL && p->relayed[i] == NULL &&
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

/* A borrowed message is referred to, unless its peer is apart; an eager one is carried. */
DEVICE bool prepare_send(lane_pass *p, const program_op *o, const operand *from)
{
    const operand *to = from + 1;
    const char *at = local_address(p, o, from);
    const uint64_t left = elements_of(p, o) - p->position;
    const bool carried = is_carried(p, o, from);
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
    p->relayed[0] = lane_await_room(&p->run, to->peer, p->elements * from->width);
    set_copy(p, p->relayed[0], at, p->elements * from->width);
    return p->relayed[0] != NULL;
}

DEVICE void finish_send(lane_pass *p, const program_op *o, const operand *from)
{
    if (is_carried(p, o, from))
        lane_send(&p->run, from[1].peer, DEVICE_CARRIED, p->relayed[0], p->elements * from->width,
                  p->last);
    p->position = p->last ? 0 : p->position + p->elements;
}

DEVICE bool prepare_recv(lane_pass *p, const program_op *o, const operand *from)
{
    const operand *to = from + 1;
    const device_frame *f = lane_peek(&p->run, from->peer);
    if (f == NULL)
        return false;
    p->elements = f->bytes / to->width;
    p->last = p->position + p->elements == elements_of(p, o);
    if (f->way != DEVICE_STORED)
        set_copy(p, local_address(p, o, to), lane_payload(lane_link(&p->run, from->peer), f),
                 f->bytes);
    return true;
}

DEVICE void finish_recv(lane_pass *p, const operand *from)
{
    lane_take(lane_link(&p->run, from->peer), p->last);
    p->position = p->last ? 0 : p->position + p->elements;
}

/* One that casts is a fold of one input. */
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
    begin_folds(p, o);
    p->fold_count = 1;
    add_input(p, 0, src, from->accumulator);
    p->folds[0].outs[0] = at;
    p->folds[0].outs_wide = to->accumulator;
    p->folds[0].out_count = 1;
}

/* Between slices only scratch memory is written again. */
DEVICE bool prepare_wait(lane_pass *p, const program_op *o, const operand *of)
{
    const device_call *call = p->run.call;
    const device_link *l = lane_link(&p->run, of->peer);
    const uint64_t messages = (uint64_t)p->runs * call->peers[of->peer].sends + o->messages;
    p->last = true;
    return lane_await(&p->run, &l->receipt->released, l->messages_before + messages, of->peer);
}

/* ---- The lane ----------------------------------------------------------------------------- */

DEVICE bool prepare(lane_pass *p, const program_op *o, const operand *first)
{
    p->fold_count = 0;
    p->bytes = 0;
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
    default:
        return prepare_wait(p, o, first);
    }
}

DEVICE bool finish(lane_pass *p, const program_op *o, const operand *first)
{
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

/* All threads. @tparam T  the type of elements, as fold_range() has it. */
template <class T> DEVICE void run_pass(const lane_pass *p)
{
    if (p->bytes > 0)
        copy_range(p->to, p->from, p->bytes);
    NO_UNROLL
    for (uint32_t k = 0; k < p->fold_count; k++)
        if (p->folds[k].out_count > 0)
            fold_range<T, true>(p->folds[k], share_of_block(0, p->elements));
}

/* All threads. The leader's waits are between two barriers, so all go the same way. */
template <class T> DEVICE bool run_op(lane_pass *p, const program_op *o)
{
    const operand *first = &p->run.call->operands[o->first];
    const bool leads = thread_index() == 0;
    for (;;) {
        if (leads)
            p->fails = p->fails || !prepare(p, o, first);
        block_barrier();
        const bool fails = p->fails, last = p->last;
        if (!fails)
            run_pass<T>(p);
        block_barrier();
        if (fails)
            return false;
        if (leads)
            p->fails = !finish(p, o, first);
        if (last)
            return true;
    }
}

DEVICE void begin_lane(lane_pass *p, const device_call *call, uint32_t lane, uint32_t lanes)
{
    p->lanes = lanes;
    p->run.call = call;
    p->run.lane = lane;
    p->run.links = &call->links[(uint64_t)lane * (uint64_t)call->ranks];
    p->run.number = call->numbers[lane];
    p->run.deadline = device_nanoseconds() + call->nanoseconds;
    p->fails = load_relaxed(call->abort) != 0; /* peers' memory may be gone then */
    if (p->fails)
        lane_end(&p->run, RING_ERR_ABORTED, 0, NULL);
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
    for (int32_t i = 0; i < call->peer_count; i++) {
        const device_link *l = lane_link(&p->run, (uint32_t)i);
        if (!lane_await(&p->run, &l->receipt->released, l->messages_out, (uint32_t)i))
            return;
    }
    call->numbers[p->run.lane] = p->run.number + 1;
}

template <class T> DEVICE bool run_slice(lane_pass *p, const device_call *call)
{
    for (int32_t i = 0; i < call->op_count; i++) {
        const program_op *o = &call->ops[i];
        const bool passes = o->kind == OP_WAIT && o->trailing && call->scratch_bytes == 0 &&
                            p->slice + p->lanes < (uint32_t)call->slices;
        if (!passes && !run_op<T>(p, o))
            return false;
    }
    return true;
}

/** All threads of a block: the program of a rank, one lane of it. */
template <class T>
DEVICE void run_lane(lane_pass *p, const device_call *call, uint32_t lane, uint32_t lanes)
{
    const bool leads = thread_index() == 0;
    bool goes_on = true;
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
}

#endif
