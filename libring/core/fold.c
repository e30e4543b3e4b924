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

typedef struct fold_input {
    int peer;      /* -1: local */
    size_t width;  /* bytes of an element */
    bool carried;  /* comes in segments */
    const transport_frame *frame;
} fold_input;

typedef struct fold_pass {
    const plan_step *step;
    size_t total;
    bool has_local;    /* one of the outputs is local … */
    const char *local; /* … and starts here; NULL is right for no elements */
    kernel_operand in[KERNEL_MAX_INPUTS], out[KERNEL_MAX_OUTPUTS];
    fold_input info[KERNEL_MAX_INPUTS];
    int outs;          /* written in this pass: local, stored, relayed */
    int relay;         /* peer that the result is relayed to, -1 if none */
    bool by_segment;
} fold_pass;

static bool is_accumulator(plan_loc loc, plan_wire wire)
{
    return loc.buffer == PLAN_WIRE && wire == PLAN_WIRE_ACC;
}

static char *local_address(const ring_work *work, plan_loc loc)
{
    return (char *)work_address(work, loc.buffer, loc.chunk) + work->position * work->element;
}

static ring_status remote_input(ring_work *work, fold_pass *pass, plan_loc loc, int i)
{
    fold_input *info = &pass->info[i];
    const void *payload;
    info->peer = loc.rank;
    info->width = pass->in[i].accumulator ? work->acc : work->element;
    RING_TRY(message_peek(work, loc.rank, pass->total, info->width, &info->frame, &payload));
    info->carried = (info->frame->flags & FRAME_REF) == 0;
    if (info->frame->flags & FRAME_STORED)
        return fail(RING_ERR_INTERNAL, "rank %d stored what is to be folded", loc.rank);
    if (payload == NULL && info->frame->bytes > 0) /* not all here yet */
        return message_await(work, loc.rank);
    const size_t skip = info->carried ? 0 : work->position * info->width;
    pass->in[i].data = (char *)(uintptr_t)payload + skip;
    pass->by_segment |= info->carried;
    return RING_OK;
}

static ring_status gather_inputs(ring_work *work, fold_pass *pass)
{
    for (int i = 0; i < pass->step->ins; i++) {
        const plan_loc loc = plan_input(&work->cursor, pass->step, i);
        pass->in[i].accumulator = is_accumulator(loc, pass->step->wire_in);
        if (loc.rank != work->comm->rank) {
            RING_TRY(remote_input(work, pass, loc, i));
            continue;
        }
        pass->in[i].data = local_address(work, loc);
        pass->info[i] = (fold_input){.peer = -1};
    }
    return RING_OK;
}

/* The peer's own buffer if it can be written from here, else NULL. */
static char *store_address(const ring_work *work, plan_loc loc)
{
    const uint64_t ref = work->peers[loc.rank].dst_ref;
    transport_link *l = work->comm->peers[loc.rank].lanes[work->lane];
    if (loc.buffer != PLAN_DST || ref == 0)
        return NULL;
    char *dst = l->transport->map(l, ref, work->dst_bytes);
    const size_t offset = work_span(work, PLAN_DST, loc.chunk).offset + work->position;
    return dst != NULL ? dst + offset * work->element : NULL;
}

static void find_local_output(const ring_work *work, fold_pass *pass)
{
    pass->has_local = false;
    for (int i = 0; i < pass->step->outs && !pass->has_local; i++) {
        const plan_loc loc = plan_output(&work->cursor, pass->step, i);
        if (loc.rank != work->comm->rank)
            continue;
        pass->has_local = true;
        pass->local = work_address(work, loc.buffer, loc.chunk);
    }
}

static void add_output(fold_pass *pass, void *data, bool accumulator)
{
    pass->out[pass->outs++] = (kernel_operand){.data = data, .accumulator = accumulator};
}

static ring_status add_remote_output(ring_work *work, fold_pass *pass, plan_loc loc)
{
    void *at = store_address(work, loc);
    if (at == NULL && pass->has_local)
        return RING_OK; /* sent from there when the fold is done */
    if (at == NULL) {
        RING_TRY(message_reserve(work, loc.rank, &at));
        pass->relay = loc.rank;
        pass->by_segment = true;
    }
    add_output(pass, at, is_accumulator(loc, pass->step->wire_out));
    return RING_OK;
}

static ring_status gather_outputs(ring_work *work, fold_pass *pass)
{
    pass->outs = 0;
    pass->relay = -1;
    for (int i = 0; i < pass->step->outs; i++) {
        const plan_loc loc = plan_output(&work->cursor, pass->step, i);
        if (loc.rank == work->comm->rank)
            add_output(pass, local_address(work, loc), false);
        else
            RING_TRY(add_remote_output(work, pass, loc));
    }
    return RING_OK;
}

static void release_inputs(ring_work *work, const fold_pass *pass, bool last)
{
    for (int i = 0; i < pass->step->ins; i++) {
        const fold_input *info = &pass->info[i];
        if (info->peer >= 0 && (info->carried || last))
            message_consume(work, info->peer, info->frame, last);
    }
}

/* The result is complete: tells peers that it is in their buffer, or posts it to them. */
static ring_status announce_outputs(ring_work *work, const fold_pass *pass)
{
    for (int i = 0; i < pass->step->outs && pass->relay < 0; i++) {
        const plan_loc loc = plan_output(&work->cursor, pass->step, i);
        if (loc.rank == work->comm->rank)
            continue;
        work_out out = {.peer = loc.rank, .data = pass->local, .elements = pass->total,
                        .by_value = true};
        if (store_address(work, loc) != NULL)
            out = (work_out){.peer = loc.rank, .flags = FRAME_STORED,
                             .bytes = pass->total * work->element};
        RING_TRY(message_post(work, &out));
    }
    return RING_OK;
}

static ring_status relay_output(ring_work *work, const fold_pass *pass, size_t elements,
                                bool last)
{
    const kernel_operand *out = &pass->out[pass->outs - 1];
    const size_t width = out->accumulator ? work->acc : work->element;
    return message_send_reserved(work, pass->relay, out->data, elements, width, last);
}

/* One rank alone, in place: the result is there already. */
static bool nothing_to_do(const fold_pass *pass, bool divide)
{
    return pass->step->ins == 1 && pass->outs == 1 && !divide &&
           pass->in[0].data == pass->out[0].data && !pass->in[0].accumulator;
}

static ring_status fold_once(ring_work *work, fold_pass *pass)
{
    RING_TRY(gather_inputs(work, pass));
    RING_TRY(gather_outputs(work, pass));
    const size_t left = pass->total - work->position;
    const size_t most = pass->by_segment ? work->segment : TURN_BYTES / work->element;
    const size_t elements = min_size(most, left);
    const bool last = elements == left;
    const bool divide = pass->step->finish && work->call.op == RING_AVG && work->comm->ranks > 1;
    if (!nothing_to_do(pass, divide))
        kernel_fold(pass->out, pass->outs, pass->in, pass->step->ins, elements,
                    work->call.dtype, work->call.op, divide ? work->comm->ranks : 0);
    release_inputs(work, pass, last);
    if (pass->relay >= 0)
        RING_TRY(relay_output(work, pass, elements, last));
    work->position += elements;
    comm_count_moved(work->comm, elements * work->element);
    return last ? announce_outputs(work, pass) : RING_IN_PROGRESS;
}

/* The operand that every fold has in the buffers gives the chunk's size; a fold from wire to
 * wire always has this rank's own chunk among its inputs. */
static size_t fold_total(const ring_work *work, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        const plan_loc loc = plan_input(&work->cursor, step, i);
        if (loc.rank == work->comm->rank)
            return work_chunk_count(work, loc.buffer, loc.chunk);
    }
    const plan_loc loc = plan_output(&work->cursor, step, 0);
    return work_chunk_count(work, loc.buffer, loc.chunk);
}

ring_status fold_step(ring_work *work, const plan_step *step, bool *moved)
{
    fold_pass pass; /* filled operand by operand; 2.6 KiB, too much to clear each time */
    pass.step = step;
    pass.total = fold_total(work, step);
    find_local_output(work, &pass);
    for (;;) {
        const size_t before = work->position;
        pass.by_segment = false;
        const ring_status status = fold_once(work, &pass);
        *moved |= status == RING_OK || work->position != before;
        if (status != RING_IN_PROGRESS || work->position == before ||
            comm_turn_is_over(work->comm))
            return status;
    }
}
