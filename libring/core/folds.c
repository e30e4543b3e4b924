/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the fold op, which combines chunks of several ranks from left to right and writes the
 * result to several places in one pass:
 *
 *     outs[0..m) (elements) = ins[0] (elements) op ins[1] (elements) op ... ins[n-1] (elements)
 *
 * An input is local, mapped (sent by reference), or carried in segments. An output is local, stored
 * into a peer's mapped buffer, sent from the local output after the fold, or, if there is no local
 * output, relayed: written segment by segment into room that the next link has reserved. A pass
 * covers one segment if an operand is carried or relayed, else as much as the turn allows.
 *
 * An accelerator folds asynchronously. Meanwhile the work is held, its inputs are not consumed and
 * its outputs not sent; the pass that finds the fold complete gathers the same operands again and
 * continues from there. A message that is referenced but cannot be mapped is likewise fetched
 * first, piece by piece, into memory that the link reaches.
 */
#include "folds.h"

#include "channel_in.h"
#include "channel_out.h"
#include "kernels.h"
#include "operand.h"
#include "references.h"
#include "scratch.h"

_Static_assert(ALGO_MAX_OPERANDS <= KERNEL_MAX_INPUTS && ALGO_MAX_OPERANDS <= KERNEL_MAX_OUTPUTS,
               "a kernel can run every fold of a plan");

/* One pass over the elements that are available. */
typedef struct fold_pass {
    const program_op *o;
    const operand *ins, *outs;
    size_t total;
    kernel_operand in[KERNEL_MAX_INPUTS];
    arrival arrived[KERNEL_MAX_INPUTS];
    kernel_operand out[KERNEL_MAX_OUTPUTS];
    const operand
        *written[KERNEL_MAX_OUTPUTS]; /* the operands of out[]: local, stored or relayed */
    bool relayed[KERNEL_MAX_OUTPUTS];
    int out_count;
    size_t most; /* elements that one pass may cover */
} fold_pass;

/* Limits the pass to one segment, because carried operands arrive segment by segment. */
static void cover_segment(const work *w, fold_pass *pass)
{
    if (pass->total > w->program->segment)
        pass->most = min_size(pass->most, w->program->segment);
}

/* ---- Inputs ----------------------------------------------------------------------- */

/* Fetches the next piece of a referenced message into the work's staging memory. */
RING_RARE static ring_status stage_input(work *w, fold_pass *pass, int i)
{
    const operand *at = &pass->ins[i];
    channel *c = w->peers[at->peer].on;
    const size_t elements = min_size(STAGE_BYTES / at->width, pass->total - w->step.position);
    if (pass->o->ins != 1)
        return fail(RING_ERR_INTERNAL,
                    "rank %d sent a fold input by reference, which this link cannot map", c->rank);
    if (w->stage == NULL)
        RING_TRY(scratch_take_stage(w));
    if (w->step.phase == PHASE_NONE || w->step.phase == PHASE_FETCHING) {
        RING_TRY(channel_fetch(w, c, w->stage,
                               pass->arrived[i].frame->ext.src_ref + w->step.position * at->width,
                               elements * at->width));
        w->step.phase = PHASE_FETCHED;
    }
    pass->in[i].data = w->stage;
    pass->most = min_size(pass->most, elements);
    return RING_OK;
}

static ring_status remote_input(work *w, fold_pass *pass, int i)
{
    const operand *at = &pass->ins[i];
    arrival *in = &pass->arrived[i];
    channel *c = w->peers[at->peer].on;
    RING_TRY(channel_peek(w, at, pass->total, in));
    if (in->payload == NULL && in->bytes > 0 && !in->whole)
        return channel_await(w, c, WAIT_FRAME, c->received);
    if (in->frame->flags & FRAME_STORED)
        return fail(RING_ERR_INTERNAL, "rank %d stored a fold input in dst instead of sending it",
                    c->rank);
    if (in->whole && in->payload == NULL)
        return stage_input(w, pass, i);
    const size_t skip = in->whole ? w->step.position * at->width : 0;
    pass->in[i].data = (char *)(uintptr_t)in->payload + skip;
    if (!in->whole)
        cover_segment(w, pass);
    return RING_OK;
}

/* Gathers remote inputs first, because they may not have arrived yet. */
static ring_status gather_inputs(work *w, fold_pass *pass)
{
    for (int i = 0; i < pass->o->ins; i++)
        if (pass->ins[i].peer != OPERAND_LOCAL)
            RING_TRY(remote_input(w, pass, i));
    for (int i = 0; i < pass->o->ins; i++) {
        pass->in[i].accumulator = pass->ins[i].accumulator;
        pass->in[i].on_device = pass->ins[i].peer == OPERAND_LOCAL &&
                                work_memory_of(w, pass->ins[i].buffer) != NULL;
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

/* @return the address in the peer's own buffer if it is mapped here; NULL if the result must be
 * sent. */
static char *store_address(const work *w, const program_op *o, const operand *to)
{
    const work_peer *peer = &w->peers[to->peer];
    if (to->buffer != PLAN_DST || peer->dst_ref == 0)
        return NULL;
    const size_t offset = to->offset +
                          (program_skip(w->program, o, w->step.slice) + w->step.position) *
                              to->width;
    const size_t bytes = (program_count(w->program, o, w->step.slice) - w->step.position) *
                         to->width;
    char *dst = channel_map(w, peer->on, peer->dst_ref, offset + bytes);
    return dst != NULL ? dst + offset : NULL;
}

/* @return the local output with the same content as @p to, from which the result is sent after the
 * fold; NULL if there is no such output and the result is relayed. */
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

static void add_output(fold_pass *pass, const operand *of, void *data, bool relayed, bool on_device)
{
    pass->written[pass->out_count] = of;
    pass->relayed[pass->out_count] = relayed;
    pass->out[pass->out_count++] = (kernel_operand){.data = data,
                                                    .accumulator = of->accumulator,
                                                    .on_device = on_device};
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
        w->wait.last = c; /* for the message, if the link fails */
        const ring_status status = channel_reserve(c, number, &at);
        if (status == RING_IN_PROGRESS)
            return channel_await(w, c, WAIT_ROOM, number);
        RING_TRY(status);
        cover_segment(w, pass);
    }
    add_output(pass, to, at, relayed, false);
    return RING_OK;
}

static ring_status gather_outputs(work *w, fold_pass *pass)
{
    pass->out_count = 0;
    for (int i = 0; i < pass->o->outs; i++) {
        const operand *to = &pass->outs[i];
        if (to->peer == OPERAND_LOCAL)
            add_output(pass, to, operand_address(w, pass->o, to), false,
                       work_memory_of(w, to->buffer) != NULL);
        else
            RING_TRY(add_remote_output(w, pass, to));
    }
    return RING_OK;
}

static ring_status send_relayed(work *w, const fold_pass *pass, size_t elements, size_t total)
{
    for (int i = 0; i < pass->out_count; i++) {
        const operand *to = pass->written[i];
        if (!pass->relayed[i])
            continue;
        const size_t segment = w->program->segment * to->width;
        RING_TRY(channel_send_room(w, to->peer, operand_message(w, to, true), pass->out[i].data,
                                   w->step.position * to->width, elements * to->width, segment,
                                   total * to->width));
    }
    return RING_OK;
}

/* @return the message that sends this result to @p to; the caller sets its data. */
static posted result_for(work *w, const fold_pass *pass, const operand *to)
{
    posted m = operand_posted(w, to, pass->total, to->width);
    m.done = w->peers[to->peer].ahead;
    m.by_value = true;
    return m;
}

/* Sends finished segments of a carried result from the local output while they are still in the
 * CPU's caches. */
static ring_status send_ahead(work *w, const fold_pass *pass)
{
    for (int i = 0; i < pass->o->outs; i++) {
        const operand *to = &pass->outs[i];
        if (to->peer == OPERAND_LOCAL || !channel_copies(w->peers[to->peer].on) ||
            store_address(w, pass->o, to) != NULL)
            continue;
        const operand *twin = local_twin(pass, to);
        if (twin == NULL)
            continue;
        posted message = result_for(w, pass, to);
        message.data = operand_address(w, pass->o, twin) - w->step.position * to->width;
        RING_TRY(channel_send_ahead(&message, w->step.position * to->width));
        w->peers[to->peer].ahead = message.done;
    }
    return RING_OK;
}

/* Binds the message to the local output. If the link reaches both that and the peer's dst, the
 * result is put into dst. */
static void bind_twin(const work *w, const program_op *o, const operand *twin, const operand *to,
                      posted *message)
{
    const work_peer *peer = &w->peers[to->peer];
    message->data = operand_address(w, o, twin);
    message->by = work_memory_of(w, twin->buffer);
    if (to->buffer != PLAN_DST || peer->dst_ref == 0 || message->bytes < REFERENCE_MIN_BYTES ||
        !channel_transfers(peer->on) ||
        channel_ref(w, peer->on, message->data, message->bytes) == 0)
        return;
    message->stored = true;
    message->put_at = peer->dst_ref + to->offset +
                      program_skip(w->program, o, w->step.slice) * to->width;
}

/* Announces a complete result to its peer: sends a notice if the result was stored in the peer's
 * buffer, else the result itself. */
static ring_status announce(work *w, const fold_pass *pass, const operand *to)
{
    const operand *twin = local_twin(pass, to);
    posted message = result_for(w, pass, to);
    w->peers[to->peer].ahead = 0;
    if (store_address(w, pass->o, to) != NULL)
        message.stored = true;
    else if (twin != NULL)
        bind_twin(w, pass->o, twin, to, &message);
    else
        return RING_OK; /* it was relayed */
    return channel_post(&message);
}

static ring_status announce_all(work *w, const fold_pass *pass)
{
    w->step.position = 0; /* the messages are whole chunks */
    for (int i = 0; i < pass->o->outs; i++)
        if (pass->outs[i].peer != OPERAND_LOCAL)
            RING_TRY(announce(w, pass, &pass->outs[i]));
    return RING_OK;
}

/* ---- The pass ----------------------------------------------------------------------- */

/* @param over  the ticket that an accelerator closes at the end; NULL: another fold follows. */
static ring_status fold_operands(work *w, kernel_operand *outs, int count, const fold_pass *pass,
                                 size_t elements, int divisor, ticket *over)
{
    const accelerator *by = w->by;
    if (by != NULL)
        return by->fold(by, outs, count, pass->in, pass->o->ins, elements, w->call.dtype,
                        w->call.op, divisor, over);
    kernel_fold(outs, count, pass->in, pass->o->ins, elements, w->call.dtype, w->call.op, divisor);
    return RING_OK;
}

static int outputs_that(const fold_pass *pass, bool finish, kernel_operand *outs)
{
    int count = 0;
    for (int i = 0; i < pass->out_count; i++)
        if (pass->written[i]->finish == finish)
            outs[count++] = pass->out[i];
    return count;
}

/* An average with both finished and unfinished results takes two kernels. The finished results are
 * written last, because they may overwrite an input. */
static ring_status run_kernels(work *w, fold_pass *pass, size_t elements, bool divide)
{
    kernel_operand sums[KERNEL_MAX_OUTPUTS], results[KERNEL_MAX_OUTPUTS];
    if (!divide)
        return fold_operands(w, pass->out, pass->out_count, pass, elements, 0, &w->step.over);
    const int unfinished = outputs_that(pass, false, sums);
    const int finished = outputs_that(pass, true, results);
    if (unfinished > 0)
        RING_TRY(fold_operands(w, sums, unfinished, pass, elements, 0,
                               finished > 0 ? NULL : &w->step.over));
    return finished > 0
               ? fold_operands(w, results, finished, pass, elements, w->comm->ranks, &w->step.over)
               : RING_OK;
}

/* Folds on the accelerator. @return RING_IN_PROGRESS until the fold is complete. */
RING_RARE static ring_status combine_on_device(work *w, fold_pass *pass, size_t elements,
                                               bool divide)
{
    if (w->step.phase != PHASE_FOLDING) {
        w->step.phase = PHASE_FOLDING; /* even if only the first of two folds could be started */
        w->step.asked = elements;
        RING_TRY(run_kernels(w, pass, elements, divide));
        if (w->comm->ranks == 1 && !w->comm->sleep.by_thread) /* no other thread would advance it */
            work_settle(w);
    }
    w->by->reap(w->by);
    const ring_status status = ticket_status(&w->step.over);
    if (status == RING_IN_PROGRESS)
        return work_hold(w);
    return status == RING_OK ? RING_OK
                             : fail(status, "the accelerator (%s) failed to combine", w->by->name);
}

static ring_status combine(work *w, fold_pass *pass, size_t elements)
{
    const bool divide = w->call.op == RING_AVG && w->comm->ranks > 1;
    const bool changes = divide || kernel_is_logical(w->call.op); /* even a single input */
    const bool is_done = pass->o->ins == 1 && pass->out_count == 1 && !changes &&
                         pass->in[0].data == pass->out[0].data && !pass->in[0].accumulator;
    if (elements == 0 || is_done)
        return RING_OK;
    return w->by != NULL ? combine_on_device(w, pass, elements, divide)
                         : run_kernels(w, pass, elements, divide);
}

/* Limits the pass to the host operands that the accelerator can stage. */
static void limit_staging(const work *w, fold_pass *pass)
{
    size_t width = 0; /* bytes of an element in all host operands */
    for (int i = 0; i < pass->o->ins; i++)
        width += pass->in[i].on_device ? 0 : pass->ins[i].width;
    for (int i = 0; i < pass->out_count; i++)
        width += pass->out[i].on_device ? 0 : pass->written[i]->width;
    if (w->by->staging > 0 && width > 0)
        pass->most = min_size(pass->most, w->by->staging / width);
}

/* A pass that an accelerator folds keeps no thread busy, so it may be long in a short turn, too. */
static ring_status fold_once(work *w, fold_pass *pass)
{
    const size_t bytes = w->by != NULL ? TURN_BYTES : w->comm->turn.most;
    pass->most = bytes / ring_dtype_size(w->call.dtype);
    RING_TRY(gather_inputs(w, pass));
    RING_TRY(gather_outputs(w, pass));
    if (w->by != NULL)
        limit_staging(w, pass);
    const size_t left = pass->total - w->step.position;
    const size_t elements = w->step.phase == PHASE_FOLDING ? w->step.asked
                                                           : min_size(pass->most, left);
    const bool last = elements == left;
    RING_TRY(combine(w, pass, elements));
    w->step.phase = PHASE_NONE;
    release_inputs(w, pass, last);
    RING_TRY(send_relayed(w, pass, elements, pass->total));
    w->step.position += elements;
    comm_count_moved(w->comm, elements * ring_dtype_size(w->call.dtype));
    if (last)
        return announce_all(w, pass);
    RING_TRY(w->by == NULL ? send_ahead(w, pass) : RING_OK);
    return RING_IN_PROGRESS;
}

ring_status fold_run(work *w, const program_op *o, bool *moved)
{
    fold_pass pass; /* not cleared: 6 KiB, and each pass sets the entries that it uses */
    pass.o = o;
    pass.ins = &w->program->operands[o->first];
    pass.outs = pass.ins + o->ins;
    pass.total = program_count(w->program, o, w->step.slice);
    for (;;) {
        const size_t before = w->step.position;
        const ring_status status = fold_once(w, &pass);
        *moved |= status == RING_OK || w->step.position != before;
        if (status != RING_IN_PROGRESS || w->wait.on != NULL || w->step.phase == PHASE_FOLDING)
            return status;
        if (comm_turn_is_over(w->comm))
            return work_hold(w);
    }
}
