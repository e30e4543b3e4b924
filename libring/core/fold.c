/* SPDX-License-Identifier: Apache-2.0
 *
 * The fold: combines chunks of several ranks, left to right, and puts the result to several
 * places in one pass. Inputs and outputs are local, mapped (by reference, by store) or
 * carried by segments; if all are local or mapped the whole chunk is one pass, else each
 * pass covers one segment.
 */
#include "comm.h"

#include "kernels.h"

typedef struct fold_operand {
    int peer;      /* -1: local */
    size_t width;  /* bytes of an element */
    bool carried;  /* comes or goes in segments */
    const transport_frame *frame; /* inputs from peers */
} fold_operand;

typedef struct fold_pass {
    const plan_step *step;
    size_t total;
    kernel_operand in[KERNEL_MAX_INPUTS], out[KERNEL_MAX_OUTPUTS];
    fold_operand in_info[KERNEL_MAX_INPUTS], out_info[KERNEL_MAX_OUTPUTS];
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
    fold_operand *info = &pass->in_info[i];
    const void *payload;
    info->peer = loc.rank;
    info->width = pass->in[i].accumulator ? work->acc : work->element;
    RING_TRY(message_peek(work, loc.rank, pass->total, info->width, &info->frame, &payload));
    info->carried = (info->frame->flags & FRAME_REF) == 0;
    if (info->frame->flags & FRAME_STORED)
        return fail(RING_ERR_INTERNAL, "rank %d stored what is to be folded", loc.rank);
    if (payload == NULL && info->frame->bytes > 0) { /* not all here yet */
        work->comm->peers[loc.rank].wants_recv[work->lane] = true;
        work->waits_for = loc.rank;
        return RING_IN_PROGRESS;
    }
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
        pass->in_info[i] = (fold_operand){.peer = -1};
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
    const plan_span span = plan_span_of(&work->layout, PLAN_DST, loc.chunk);
    return dst != NULL ? dst + (span.offset + work->position) * work->element : NULL;
}

static ring_status remote_output(ring_work *work, fold_pass *pass, plan_loc loc, int i)
{
    char *store = store_address(work, loc);
    void *room = store;
    if (store == NULL) {
        RING_TRY(message_reserve(work, loc.rank, &room));
        pass->by_segment = true;
    }
    pass->out[i].data = room;
    pass->out_info[i] = (fold_operand){
        .peer = loc.rank,
        .width = pass->out[i].accumulator ? work->acc : work->element,
        .carried = store == NULL,
    };
    return RING_OK;
}

static ring_status gather_outputs(ring_work *work, fold_pass *pass)
{
    for (int i = 0; i < pass->step->outs; i++) {
        const plan_loc loc = plan_output(&work->cursor, pass->step, i);
        pass->out[i].accumulator = is_accumulator(loc, pass->step->wire_out);
        if (loc.rank != work->comm->rank) {
            RING_TRY(remote_output(work, pass, loc, i));
            continue;
        }
        pass->out[i].data = local_address(work, loc);
        pass->out_info[i] = (fold_operand){.peer = -1};
    }
    return RING_OK;
}

static void release_inputs(ring_work *work, const fold_pass *pass, bool last)
{
    for (int i = 0; i < pass->step->ins; i++) {
        const fold_operand *info = &pass->in_info[i];
        if (info->peer >= 0 && (info->carried || last))
            message_consume(work, info->peer, info->frame, last);
    }
}

static ring_status deliver_outputs(ring_work *work, const fold_pass *pass, size_t elements,
                                   bool last)
{
    for (int i = 0; i < pass->step->outs; i++) {
        const fold_operand *info = &pass->out_info[i];
        if (info->peer < 0)
            continue;
        if (info->carried)
            RING_TRY(message_send_reserved(work, info->peer, pass->out[i].data, elements,
                                           info->width, last));
        else if (last)
            RING_TRY(message_post(work, &(work_out){.peer = info->peer, .flags = FRAME_STORED,
                                                    .bytes = pass->total * info->width}));
    }
    return RING_OK;
}

static ring_status fold_once(ring_work *work, fold_pass *pass)
{
    RING_TRY(gather_inputs(work, pass));
    RING_TRY(gather_outputs(work, pass));
    const size_t left = pass->total - work->position;
    const size_t elements = pass->by_segment ? min_size(work->segment, left) : left;
    const bool last = elements == left;
    const bool divide = pass->step->finish && work->call.op == RING_AVG;
    kernel_fold(pass->out, pass->step->outs, pass->in, pass->step->ins, elements,
                work->call.dtype, work->call.op, divide ? work->comm->ranks : 0);
    release_inputs(work, pass, last);
    RING_TRY(deliver_outputs(work, pass, elements, last));
    work->position += elements;
    return last ? RING_OK : RING_IN_PROGRESS;
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
    for (;;) {
        const size_t before = work->position;
        pass.by_segment = false;
        const ring_status status = fold_once(work, &pass);
        *moved |= status == RING_OK || work->position != before;
        if (status != RING_IN_PROGRESS || work->position == before)
            return status;
    }
}
