/* SPDX-License-Identifier: Apache-2.0
 *
 * The fold: combines chunks of several ranks, left to right, and puts the result to several
 * places in one pass. Inputs are local, mapped (by reference) or carried by segments.
 * Outputs are local, stored into a peer's mapped buffer, sent afterwards from the local output,
 * or, where there is none, relayed: put segment by segment into the room of the next link.
 * If nothing is carried in or relayed a pass covers all that a turn may, else one segment.
 */
#include "comm.h"

#include "kernels.h"

_Static_assert(ALGO_MAX_OPERANDS <= KERNEL_MAX_INPUTS && ALGO_MAX_OPERANDS <= KERNEL_MAX_OUTPUTS,
               "a kernel takes every fold of a plan");

/* One pass over the elements that are at hand. */
typedef struct fold_pass {
    const program_op *o;
    const operand *ins, *outs;
    size_t total;
    kernel_operand in[KERNEL_MAX_INPUTS];
    arrival arrived[KERNEL_MAX_INPUTS];
    kernel_operand out[KERNEL_MAX_OUTPUTS];
    const operand *written[KERNEL_MAX_OUTPUTS]; /* what out[] is of: local, stored, relayed */
    bool relayed[KERNEL_MAX_OUTPUTS];
    int out_count;
    bool by_segment;
} fold_pass;

/* ---- Inputs ----------------------------------------------------------------------- */

static ring_status remote_input(work *w, fold_pass *pass, int i)
{
    const operand *at = &pass->ins[i];
    arrival *in = &pass->arrived[i];
    const uint64_t number = operand_message(w, at, false);
    const ring_status status =
        channel_peek(w, at->peer, number, pass->total * at->width, w->position * at->width,
                     w->program->segment * at->width, in);
    if (status == RING_IN_PROGRESS || (status == RING_OK && in->payload == NULL && in->bytes > 0 &&
                                       !(in->frame->flags & FRAME_STORED)))
        return channel_await(w, w->peers[at->peer].on, WAIT_FRAME, number);
    RING_TRY(status);
    if (in->frame->flags & FRAME_STORED)
        return fail(RING_ERR_INTERNAL, "rank %d stored what is to be folded",
                    w->peers[at->peer].on->rank);
    const size_t skip = in->whole ? w->position * at->width : 0;
    pass->in[i].data = (char *)(uintptr_t)in->payload + skip;
    pass->by_segment |= !in->whole && pass->total > w->program->segment;
    return RING_OK;
}

/* Those that may not be here come first. */
static ring_status gather_inputs(work *w, fold_pass *pass)
{
    for (int i = 0; i < pass->o->ins; i++)
        if (pass->ins[i].peer != OPERAND_LOCAL)
            RING_TRY(remote_input(w, pass, i));
    for (int i = 0; i < pass->o->ins; i++) {
        pass->in[i].accumulator = pass->ins[i].accumulator;
        if (pass->ins[i].peer == OPERAND_LOCAL)
            pass->in[i].data = operand_address(w, pass->o, &pass->ins[i]);
    }
    return RING_OK;
}

static void release_inputs(work *w, const fold_pass *pass, bool last)
{
    for (int i = 0; i < pass->o->ins; i++)
        if (pass->ins[i].peer != OPERAND_LOCAL && (last || !pass->arrived[i].whole))
            channel_consume(w, pass->ins[i].peer, &pass->arrived[i], last);
}

/* ---- Outputs ---------------------------------------------------------------------- */

/* The peer's own buffer if it can be written from here, else NULL. */
static char *store_address(const work *w, const program_op *o, const operand *to)
{
    const work_peer *peer = &w->peers[to->peer];
    transport_link *l = peer->on->link;
    if (to->buffer != PLAN_DST || peer->dst_ref == 0)
        return NULL;
    const size_t offset = to->offset + (program_skip(w->program, o, w->slice) + w->position) *
                                           to->width;
    const size_t bytes = (program_count(w->program, o, w->slice) - w->position) * to->width;
    char *dst = l->transport->map(l, peer->dst_ref, offset + bytes);
    return dst != NULL ? dst + offset : NULL;
}

/* The local output that holds what @p to is to get: it is sent from there when the fold is done.
 * NULL: there is none, the result is relayed. */
static const operand *local_twin(const fold_pass *pass, const operand *to)
{
    for (int i = 0; i < pass->o->outs; i++) {
        const operand *out = &pass->outs[i];
        if (out->peer == OPERAND_LOCAL && out->finish == to->finish &&
            out->accumulator == to->accumulator)
            return out;
    }
    return NULL;
}

static void add_output(fold_pass *pass, const operand *of, void *data, bool relayed)
{
    pass->written[pass->out_count] = of;
    pass->relayed[pass->out_count] = relayed;
    pass->out[pass->out_count++] = (kernel_operand){.data = data, .accumulator = of->accumulator};
}

static ring_status add_remote_output(work *w, fold_pass *pass, const operand *to)
{
    void *at = store_address(w, pass->o, to);
    const bool relayed = at == NULL;
    if (relayed && local_twin(pass, to) != NULL)
        return RING_OK;
    if (relayed) {
        channel *c = w->peers[to->peer].on;
        const uint64_t number = operand_message(w, to, true);
        w->suspect = c; /* if the link fails */
        const ring_status status = channel_reserve(c, number, &at);
        if (status == RING_IN_PROGRESS)
            return channel_await(w, c, WAIT_ROOM, number);
        RING_TRY(status);
        pass->by_segment |= pass->total > w->program->segment;
    }
    add_output(pass, to, at, relayed);
    return RING_OK;
}

static ring_status gather_outputs(work *w, fold_pass *pass)
{
    pass->out_count = 0;
    for (int i = 0; i < pass->o->outs; i++) {
        const operand *to = &pass->outs[i];
        if (to->peer == OPERAND_LOCAL)
            add_output(pass, to, operand_address(w, pass->o, to), false);
        else
            RING_TRY(add_remote_output(w, pass, to));
    }
    return RING_OK;
}

static ring_status send_relayed(work *w, const fold_pass *pass, size_t elements, bool last)
{
    for (int i = 0; i < pass->out_count; i++) {
        const operand *to = pass->written[i];
        if (!pass->relayed[i])
            continue;
        const size_t segment = w->program->segment * to->width;
        RING_TRY(channel_send_room(w, to->peer, operand_message(w, to, true), pass->out[i].data,
                                   w->position * to->width, elements * to->width, segment, last));
    }
    return RING_OK;
}

/* The result is complete: tells a peer that it is in its buffer, or sends it from the own one. */
static ring_status announce(work *w, const fold_pass *pass, const operand *to)
{
    const operand *twin = local_twin(pass, to);
    posted message = {.work = w, .peer = to->peer, .number = operand_message(w, to, true),
                      .bytes = pass->total * to->width, .by_value = true,
                      .segment = w->program->segment * to->width};
    if (store_address(w, pass->o, to) != NULL)
        message.stored = true;
    else if (twin != NULL)
        message.data = operand_address(w, pass->o, twin);
    else
        return RING_OK; /* relayed */
    return channel_post(&message);
}

static ring_status announce_all(work *w, const fold_pass *pass)
{
    w->position = 0; /* of whole chunks */
    for (int i = 0; i < pass->o->outs; i++)
        if (pass->outs[i].peer != OPERAND_LOCAL)
            RING_TRY(announce(w, pass, &pass->outs[i]));
    return RING_OK;
}

/* ---- The pass ----------------------------------------------------------------------- */

/* One rank alone, in place: the result is there already. */
static bool nothing_to_do(const fold_pass *pass, bool divide)
{
    return pass->o->ins == 1 && pass->out_count == 1 && !divide &&
           pass->in[0].data == pass->out[0].data && !pass->in[0].accumulator;
}

/* Results that are finished and others that are not, of an average: two kernels, the finished
 * ones last, for they may replace an input. */
static void run_kernel(work *w, fold_pass *pass, size_t elements, bool finish, int divisor)
{
    kernel_operand outs[KERNEL_MAX_OUTPUTS];
    int count = 0;
    for (int i = 0; i < pass->out_count; i++)
        if (pass->written[i]->finish == finish)
            outs[count++] = pass->out[i];
    if (count > 0)
        kernel_fold(outs, count, pass->in, pass->o->ins, elements, w->call.dtype, w->call.op,
                    divisor);
}

static void combine(work *w, fold_pass *pass, size_t elements)
{
    const bool divide = w->call.op == RING_AVG && w->comm->ranks > 1;
    if (elements == 0 || nothing_to_do(pass, divide))
        return;
    if (!divide) {
        kernel_fold(pass->out, pass->out_count, pass->in, pass->o->ins, elements, w->call.dtype,
                    w->call.op, 0);
        return;
    }
    run_kernel(w, pass, elements, false, 0);
    run_kernel(w, pass, elements, true, w->comm->ranks);
}

static ring_status fold_once(work *w, fold_pass *pass)
{
    pass->by_segment = false;
    RING_TRY(gather_inputs(w, pass));
    RING_TRY(gather_outputs(w, pass));
    const size_t left = pass->total - w->position;
    const size_t most = pass->by_segment ? w->program->segment
                                         : w->comm->turn_most / ring_dtype_size(w->call.dtype);
    const size_t elements = min_size(most, left);
    const bool last = elements == left;
    combine(w, pass, elements);
    release_inputs(w, pass, last);
    RING_TRY(send_relayed(w, pass, elements, last));
    w->position += elements;
    comm_count_moved(w->comm, elements * ring_dtype_size(w->call.dtype));
    return last ? announce_all(w, pass) : RING_IN_PROGRESS;
}

ring_status fold_run(work *w, const program_op *o, bool *moved)
{
    fold_pass pass; /* filled operand by operand; 6 KiB, too much to clear each time */
    pass.o = o;
    pass.ins = &w->program->operands[o->first];
    pass.outs = pass.ins + o->ins;
    pass.total = program_count(w->program, o, w->slice);
    for (;;) {
        const size_t before = w->position;
        const ring_status status = fold_once(w, &pass);
        *moved |= status == RING_OK || w->position != before;
        if (status != RING_IN_PROGRESS || w->awaits != NULL)
            return status;
        if (comm_turn_is_over(w->comm))
            return work_hold(w);
    }
}
