/* SPDX-License-Identifier: Apache-2.0
 * Makes the lists of messages of calls that accelerators run without a program. Both ends of a
 * message compute its signature and lanes from the same facts. */
#include "device_pairs.h"

#include "call_reports.h"
#include "channel_table.h"
#include "device_calls.h"
#include "device_proxy.h"
#include "mismatch.h"
#include "shape.h"
#include "streams.h"

#include <stdlib.h>

bool device_pairs_run(const ring_comm *comm)
{
    const struct device_calls *d = comm->device_calls;
    return d != NULL && d->terms.captures;
}

ring_status device_pairs_keep(ring_comm *comm, program *p)
{
    p->channels = p->slices = 1;
    p->slice = SIZE_MAX;
    p->memory = sizeof *p + sizeof *p->on + shape_bytes(p, comm->ranks);
    p->on = calloc(1, sizeof(channel *));
    if (p->on == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while starting %s", p->facts->name);
    return p->facts->pairwise && !p->to_self
               ? channel_get(comm, TRAFFIC_PAIR, 0, p->call.root, &p->on[0])
               : RING_OK;
}

/* ---- Lists -------------------------------------------------------------------------------- */

/* The messages of a run, and the places of its calls in streams. */
typedef struct pair_list {
    accelerator_pair *of;
    accelerator_place *places;
    size_t count, place_count;
    double timeout;
} pair_list;

static void add_pair(pair_list *list, const prepared_call *c, int kind, int peer, const void *src,
                     void *dst, size_t bytes)
{
    const size_t lanes = (size_t)c->comm->device_calls->terms.shape.lanes;
    list->of[list->count++] =
        (accelerator_pair){.kind = kind,
                           .src = src,
                           .dst = dst,
                           .bytes = bytes,
                           .signature = c->program->signature,
                           .peer = peer,
                           .lanes = (int32_t)max_size(min_size(bytes / LANE_BYTES, lanes), 1)};
}

/* @return the elements of the block for, or of, a rank in a v-form. Ranks other than the root have
 * one block, which is for or of the root. */
static size_t block_count(const program *p, int side, int rank)
{
    const bool here = side == PLAN_SRC ? p->src_here : p->dst_here;
    const size_t *counts = p->shape.counts[side];
    if (!here)
        return 0;
    return counts != NULL ? counts[rank] : rank == p->call.root ? p->shape.own : 0;
}

static char *block_at(const prepared_call *c, int side, int rank)
{
    const program *p = c->program;
    const call_buffers *b = &c->buffers;
    char *whole = side == PLAN_SRC ? (char *)(uintptr_t)b->src : b->dst;
    if (b->lists[side] != NULL)
        return (char *)(uintptr_t)b->lists[side][rank];
    const size_t *displs = p->shape.displs[side];
    return whole + (displs != NULL ? displs[rank] * ring_dtype_size(p->call.dtype) : 0);
}

static void add_blocks(pair_list *list, const prepared_call *c)
{
    const program *p = c->program;
    const size_t size = ring_dtype_size(p->call.dtype);
    for (int i = 0; i < c->comm->ranks; i++) {
        const int to = (c->comm->rank + i) % c->comm->ranks;
        const size_t given = block_count(p, PLAN_SRC, to), taken = block_count(p, PLAN_DST, to);
        const char *src = given > 0 ? block_at(c, PLAN_SRC, to) : NULL;
        char *dst = taken > 0 ? block_at(c, PLAN_DST, to) : NULL;
        if (i == 0 && given > 0 && src != dst)
            add_pair(list, c, OP_COPY, to, src, dst, given * size);
        if (i > 0 && given > 0)
            add_pair(list, c, OP_SEND, to, src, NULL, given * size);
        if (i > 0 && taken > 0)
            add_pair(list, c, OP_RECV, to, NULL, dst, taken * size);
    }
}

/* Adds a send or receive. A receive from this rank itself copies from its partner's buffer. */
static void add_message(pair_list *list, const prepared_call *c)
{
    const program *p = c->program;
    const bool sends = p->call.collective == PLAN_SEND;
    if (p->to_self && !sends)
        add_pair(list, c, OP_COPY, p->call.root, c->partner->buffers.src, c->buffers.dst,
                 p->dst_bytes);
    else if (!p->to_self)
        add_pair(list, c, sends ? OP_SEND : OP_RECV, p->call.root, c->buffers.src, c->buffers.dst,
                 sends ? p->src_bytes : p->dst_bytes);
}

static ring_status add_call(pair_list *list, prepared_call *c, bool captured)
{
    const ring_call *o = &c->options;
    const size_t bytes = c->buffers.src_bytes + c->buffers.dst_bytes;
    if (c->captured != captured)
        return fail(RING_ERR_UNSUPPORTED,
                    "ring_%s: the streams of only some calls of this group are captured into a "
                    "graph; capture all of them or none",
                    c->program->facts->name);
    RING_TRY(stream_check_capture(c));
    if (c->program->facts->pairwise)
        add_message(list, c);
    else
        add_blocks(list, c);
    list->places[list->place_count++] = (accelerator_place){.stream = o->stream,
                                                            .after_default = o->stream == NULL &&
                                                                             bytes > 0,
                                                            .gate = o->after != NULL ? &c->stop
                                                                                     : NULL};
    const double timeout = work_timeout(c->comm, o);
    list->timeout = list->place_count == 1 || timeout < list->timeout ? timeout : list->timeout;
    return RING_OK;
}

/* ---- Start -------------------------------------------------------------------------------- */

/* @return the first call from @p c to before @p end that starts with @p first, or NULL. */
static prepared_call *next_of(const prepared_call *first, prepared_call *c,
                              const prepared_call *end)
{
    while (c != end &&
           (c->comm != first->comm || c->program == NULL || !c->program->call.on_device ||
            c->program->facts->pairwise != first->program->facts->pairwise))
        c = c->next;
    return c == end ? NULL : c;
}

static ring_status start_list(prepared_call *first, const prepared_call *end, pair_list *list,
                              uint32_t *run)
{
    const struct device_calls *d = first->comm->device_calls;
    for (prepared_call *c = first; c != NULL; c = next_of(first, c->next, end))
        RING_TRY(add_call(list, c, first->captured));
    const accelerator_pairs pairs = {.of = list->of,
                                     .count = list->count,
                                     .places = list->places,
                                     .place_count = list->place_count,
                                     .holds = first->comm->settings.hold_streams,
                                     .timeout = list->timeout};
    return d->by->programs->start_pairs(d->seat, &pairs, first->captured, run);
}

ring_status device_pairs_start(prepared_call *first, const prepared_call *end)
{
    const bool pairwise = first->program->facts->pairwise;
    const char *name = first->program->facts->name;
    size_t calls = 0;
    uint32_t run = 0;
    for (prepared_call *c = first; c != NULL; c = next_of(first, c->next, end))
        calls++;
    const size_t most = pairwise ? calls : 2 * (size_t)first->comm->ranks;
    accelerator_pair *pairs = malloc(most * sizeof *pairs);
    accelerator_place *places = malloc(calls * sizeof *places);
    pair_list list = {.of = pairs, .places = places};
    ring_status status = pairs != NULL && places != NULL
                             ? start_list(first, end, &list, &run)
                             : fail(RING_ERR_MEMORY, "out of memory while starting a call");
    free(pairs);
    free(places);
    if (status == RING_OK && first->captured)
        device_proxy_stay(first->comm);
    for (prepared_call *c = first; c != NULL; c = next_of(first, c->next, end)) {
        c->run = run;
        if (c->stop != NULL)
            stop_begin(c->stop, first->comm->device_calls->by, false);
        if (status != RING_OK)
            stop_drop(&c->stop);
    }
    return status == RING_OK || status == RING_ERR_ABORTED
               ? status
               : fail(status, "ring_%s: %s", name, fail_text());
}

/* ---- Differences -------------------------------------------------------------------------- */

bool device_pairs_differ(const work *w, const accelerator_verdict *v)
{
    return w->call.collective == PLAN_RECV && w->call.root == v->peer &&
           (w->signature != v->their_signature || w->buffers.dst_bytes != v->their_bytes);
}

size_t device_pairs_count(const work *w, int rank)
{
    return block_count(w->program, PLAN_DST, rank);
}

ring_status device_pairs_check_stalled(const ring_comm *comm)
{
    for (work *w = comm->works.first; w != NULL; w = w->next) {
        const channel *c = w->call.on_device && w->program->facts->pairwise ? w->program->on[0]
                                                                            : NULL;
        const transport_frame *frame;
        const void *payload;
        if (c == NULL || work_is_gated(w))
            continue;
        reports_wait(w);
        if (w->call.collective == PLAN_SEND || c->waiting[WAIT_FRAME] != NULL ||
            c->link->transport->peek(c->link, &frame, &payload) != RING_OK ||
            frame->call != (uint16_t)w->seq) /* of a later send to memory of the host */
            continue;
        const call_signature theirs = signature_of_frame(frame);
        return mismatch_differ(comm, &w->call, w->seq, c->rank, &theirs, w->seq);
    }
    return RING_OK;
}
