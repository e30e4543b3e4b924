/* SPDX-License-Identifier: Apache-2.0
 * Creates, binds, ends and recycles works. A work moves from the pool to the list of works in
 * flight, and back to the pool. */
#include "work.h"

#include "automatic.h"
#include "event.h"
#include "handle.h"
#include "lists.h"
#include "numbers.h"
#include "placeholder_link.h"
#include "products.h"
#include "progress_thread.h"
#include "regions.h"
#include "scratch.h"
#include "streams.h"
#include "tagged_traffic.h"

#include <stdlib.h>

static work *take_from_pool(ring_comm *comm)
{
    work *w = comm->works.pool;
    if (w != NULL) {
        comm->works.pool = w->next;
        return w;
    }
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->comm = comm;
    w->sibling = comm->works.all;
    comm->works.all = w;
    return w;
}

void work_recycle(work *w)
{
    if (w->stream.stop != NULL)
        return; /* it holds its stream */
    w->next = w->comm->works.pool;
    w->comm->works.pool = w;
}

static void append(ring_comm *comm, work *w)
{
    w->number = ++comm->works.started;
    w->next = NULL;
    w->link = comm->works.end;
    *comm->works.end = w;
    comm->works.end = &w->next;
}

uint64_t work_take_number(ring_comm *comm, const call_signature *call, uint64_t packed, channel *on)
{
    if (call->collective == PLAN_SEND)
        return on != NULL ? on->sends++ : comm->self_pair.sends++;
    if (call->collective == PLAN_RECV)
        return on != NULL ? on->recvs++ : comm->self_pair.recvs++;
    comm->history.packed[comm->history.calls % HISTORY_CALLS] = packed;
    return comm->history.calls++;
}

static ring_status make_peers(work *w, const program *p)
{
    if (w->peer_cap >= p->peer_count)
        return RING_OK;
    work_peer *peers = realloc(w->peers, (size_t)p->peer_count * sizeof *peers);
    if (peers == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while starting %s",
                    plan_collective_name(p->call.collective));
    w->peers = peers;
    w->peer_cap = p->peer_count;
    return RING_OK;
}

ring_status work_take_messages(work *w)
{
    const program *p = w->program;
    ring_status status = RING_OK;
    const uint64_t runs = (uint64_t)program_runs(p, w->index);
    for (int32_t i = 0; i < p->peer_count; i++) {
        const program_peer *peer = &p->peers[i];
        channel *c = program_channel(p, w->index, i);
        w->peers[i] = (work_peer){.on = c,
                                  .out_base = c->out_given,
                                  .in_base = c->in_given,
                                  .first_ref = UINT64_MAX};
        c->out_given += runs * peer->sends;
        c->in_given += runs * peer->recvs;
        if (!c->dialed && status == RING_OK)
            status = channel_dial(c);
    }
    return status;
}

ring_status work_rebind(work *w, program *p)
{
    RING_TRY(make_peers(w, p));
    w->program->users--;
    w->program = p;
    p->users++;
    return RING_OK;
}

double work_timeout(const ring_comm *comm, const ring_call *options)
{
    const double limit = options->timeout != 0 ? options->timeout : comm->settings.timeout;
    return limit > 0 && limit < NUMBER_NO_LIMIT ? limit : NUMBER_NO_LIMIT;
}

/* Binds all fields except the call number and the held resources. */
static void bind_work(work *w, const call_buffers *buffers, program *p, int32_t index)
{
    w->call = p->call;
    w->signature = p->signature;
    w->lead = w;
    w->parts = p->channels;
    w->index = w->step.slice = index;
    w->buffers = *buffers;
    w->buffers.lists[PLAN_SRC] = w->buffers.lists[PLAN_DST] = NULL; /* replaced by w->bases */
    w->src_region = w->dst_region = 0;
    w->by = w->buffers.dst_by != NULL ? w->buffers.dst_by : w->buffers.src_by;
    w->program = p;
    w->scratch = w->stage = NULL;
    w->bases[PLAN_SRC] = w->bases[PLAN_DST] = NULL;
    w->step.op = w->step.runs = w->step.posted = w->result.waiters = 0;
    w->step.position = 0;
    w->step.phase = PHASE_NONE;
    w->step.relay.asked = false;
    w->wait.on = w->wait.last = NULL;
    w->partner = NULL;
    w->tagged.message = NULL;
    w->tagged.open = w->tagged.met = false;
    w->stream.stop = NULL;
    w->stream.pending = w->stream.queued = w->stream.stated = false;
    w->result.detached = w->lends = w->result.pending = false;
    w->wait.deadline = 0;
    w->result.finished = false;
    w->result.status = RING_IN_PROGRESS;
    p->users++;
}

static uint64_t hold_side(work *w, int side, const void *at, size_t bytes, const accelerator *by)
{
    const bool automatic = w->comm->links.registers && by == NULL;
    uint64_t (*const hold)(const void *, size_t) = automatic ? automatic_hold : region_hold;
    if (w->bases[side] != NULL)
        return lists_hold(w, side, hold);
    return bytes > 0 ? hold(at, bytes) : 0;
}

bool work_may_lend(const work *w, const char *at)
{
    if (w->buffers.dst != NULL && (size_t)(at - w->buffers.dst) < w->buffers.dst_bytes)
        return w->lead->dst_region != 0;
    if (w->buffers.src != NULL && (size_t)(at - w->buffers.src) < w->buffers.src_bytes)
        return w->lead->src_region != 0;
    /* Links may use a list in place only if the call holds the regions of all its blocks. */
    const bool may_lend_lists = (w->bases[PLAN_SRC] == NULL || w->lead->src_region != 0) &&
                                (w->bases[PLAN_DST] == NULL || w->lead->dst_region != 0);
    return may_lend_lists ||
           (w->scratch != NULL && (size_t)(at - w->scratch) < w->program->scratch) ||
           (w->stage != NULL && (size_t)(at - w->stage) < STAGE_BYTES);
}

static uint64_t next_number(const work *w)
{
    const program *p = w->program;
    return work_take_number(w->comm, &p->call, p->signature, p->facts->pairwise ? p->on[0] : NULL);
}

static void bind_lead(work *w, const call_buffers *buffers, program *p, const ring_call *options)
{
    bind_work(w, buffers, p, 0);
    lists_bind(w, buffers);
    w->seq = p->call.tagged ? 0 : next_number(w);
    if (w->comm->links.reaches || regions_are_registered()) {
        const call_buffers *b = &w->buffers;
        w->src_region = hold_side(w, PLAN_SRC, b->src, b->src_bytes, b->src_by);
        w->dst_region = hold_side(w, PLAN_DST, b->dst, b->dst_bytes, b->dst_by);
    }
    w->wait.timeout = work_timeout(w->comm, options);
    w->gate.event = options->after != NULL ? event_hold(options->after) : NULL;
    w->gate.closed = w->gate.event != NULL;
    w->result.on_done = options->on_done;
    w->result.context = options->context;
}

/* Binds another part of the call of @p lead. The lead holds the call's resources and reports the
 * end of the call. */
static void bind_part(work *w, const work *lead, const call_buffers *buffers, int32_t index)
{
    bind_work(w, buffers, lead->program, index);
    w->buffers.products = (work_products){.scale = 1}; /* the lead computes them */
    w->lead = (work *)(uintptr_t)lead;
    w->seq = lead->seq;
    w->bases[PLAN_SRC] = lead->bases[PLAN_SRC];
    w->bases[PLAN_DST] = lead->bases[PLAN_DST];
    w->wait.timeout = lead->wait.timeout;
    w->gate.event = lead->gate.event != NULL ? event_hold(lead->gate.event) : NULL;
    w->gate.closed = lead->gate.closed;
    w->result.on_done = NULL;
    w->result.handle = 0;
    w->result.detached = true;
}

/* Binds the parts of a call over several channels, except its lead, and adds them to the works in
 * flight. */
RING_RARE static ring_status start_parts(work *lead, work *parts, const call_buffers *buffers)
{
    ring_status status = RING_OK;
    work *next;
    for (int32_t index = 1; parts != NULL; parts = next, index++) {
        next = parts->wait.next;
        bind_part(parts, lead, buffers, index);
        append(lead->comm, parts);
        if (status == RING_OK)
            status = work_take_messages(parts);
    }
    return status;
}

/* @param[out] parts  @p count works, linked by wait.next, with room for the program's peers. */
RING_RARE static ring_status take_parts(ring_comm *comm, const program *p, int32_t count,
                                        work **parts)
{
    for (; count > 0; count--) {
        work *part = take_from_pool(comm);
        if (part == NULL || make_peers(part, p) != RING_OK) {
            if (part != NULL)
                work_recycle(part);
            return fail(RING_ERR_MEMORY, "out of memory while starting %s", p->facts->name);
        }
        part->wait.next = *parts;
        *parts = part;
    }
    return RING_OK;
}

ring_status work_new(ring_comm *comm, program *p, const call_buffers *given,
                     const ring_call *options, work **out)
{
    const call_buffers *buffers = given;
    call_buffers placed; /* the same with products as src */
    work *w = take_from_pool(comm);
    if (w == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while starting %s", p->facts->name);
    /* All allocations are made before anything is counted. */
    ring_status status = RING_OK;
    w->wait.next = NULL;
    w->result.handle = 0;
    if (p->channels > 1)
        status = take_parts(comm, p, p->channels - 1, &w->wait.next);
    if (status == RING_OK && given->products.scale != 1 && !p->call.on_device) {
        placed = *given;
        buffers = &placed;
        status = products_place(comm, p, &placed);
    }
    if (status == RING_OK)
        status = make_peers(w, p);
    if (status == RING_OK && options->work != NULL)
        status = handle_new(comm, w, &w->result.handle, options->work);
    if (status == RING_OK && has_list(given))
        status = lists_make_room(w);
    if (status != RING_OK) {
        for (work *next; w != NULL; w = next) {
            next = w->wait.next;
            work_recycle(w);
        }
        return status;
    }
    bind_lead(w, buffers, p, options);
    append(comm, w);
    if (!p->facts->pairwise) {
        comm->info.algorithm = p->algorithm;
        comm->info.latest = p->call;
        comm->info.longest = p->longest;
        comm->stall.moves++;
    }
    *out = w;
    if (p->call.tagged)
        return RING_OK;
    RING_TRY(work_take_messages(w));
    return w->wait.next != NULL ? start_parts(w, w->wait.next, buffers) : RING_OK;
}

void work_stop(work *lead, accelerator_stop *stop)
{
    work *w = lead;
    for (int32_t parts = lead->parts; parts > 0; parts--, w = w->next) {
        w->stream.stop = stop_hold(stop);
        w->stream.pending = w->gate.closed = true;
        w->comm->streams.stops++;
    }
    progress_serve(lead->comm);
}

void work_pass_stop(work *w)
{
    w->comm->streams.stops -= w->stream.pending;
    w->stream.pending = false;
}

bool work_awaits_event(const work *w)
{
    return w->gate.event != NULL && event_status(w->gate.event) == RING_IN_PROGRESS;
}

bool work_awaits_stream(const work *w)
{
    return w->stream.pending && ticket_status(w->stream.stop->reached) == RING_IN_PROGRESS;
}

ring_status work_hold(work *w)
{
    w->wait.next = NULL;
    *w->comm->works.held_end = w;
    w->comm->works.held_end = &w->wait.next;
    return RING_IN_PROGRESS;
}

void work_set_orphan(work *w, bool orphan)
{
    if (w->result.orphan == orphan)
        return;
    w->result.orphan = orphan;
    orphans_count(w->comm, orphan ? 1 : -1);
}

void work_settle(work *w)
{
    if (w->by != NULL && (w->step.phase == PHASE_FOLDING || w->step.relay.asked))
        w->by->settle(w->by);
}

/* ---- The end ---------------------------------------------------------------------------- */

void work_part_done(work *w)
{
    work *lead = w->lead;
    if (w->partner != NULL)
        work_finish(w->partner, RING_OK);
    if (w != lead)
        work_finish(w, RING_OK);
    if (--lead->parts == 0)
        work_finish(lead, RING_OK);
}

void work_finish(work *w, ring_status status)
{
    ring_comm *comm = w->comm;
    *w->link = w->next;
    *(w->next != NULL ? &w->next->link : &comm->works.end) = w->link;
    w->program->users--;
    if (w->scratch != NULL)
        scratch_give_back(comm, w->scratch);
    if (w->stage != NULL)
        scratch_give_back(comm, w->stage);
    if (w->buffers.products.memory != NULL)
        scratch_give_back(comm, w->buffers.products.memory);
    if (w->gate.event != NULL)
        event_drop(w->gate.event);
    w->gate.event = NULL;
    if (w->tagged.message != NULL)
        tagged_forget(w);
    if ((w->src_region | w->dst_region) != 0) {
        region_release(w->src_region);
        region_release(w->dst_region);
    }
    if (w->list_room != NULL)
        lists_release(w);
    if (w->stream.stop != NULL) {
        work_pass_stop(w);
        if (status == RING_OK || w->stream.stop->is_mark || !streams_stay(comm))
            stop_drop(&w->stream.stop);
    }
    w->result.status = status;
    w->result.finished = true;
    work_set_orphan(w, false);
    if (w->result.on_done != NULL) {
        w->result.pending = true;
        w->result.next = NULL;
        *comm->works.done_end = w;
        comm->works.done_end = &w->result.next;
    } else if (w->result.detached) {
        work_recycle(w);
    }
}

void works_release_streams(ring_comm *comm)
{
    for (work *w = comm->works.all; w != NULL; w = w->sibling)
        if (w->result.finished)
            stop_drop(&w->stream.stop);
}

void works_free(ring_comm *comm)
{
    work *next;
    for (work *w = comm->works.all; w != NULL; w = next) {
        next = w->sibling;
        if (w->result.handle != 0)
            handle_orphan(w->result.handle,
                          w->result.finished ? w->result.status : RING_ERR_ABORTED);
        free(w->peers);
        free(w->list_room);
        free(w);
    }
    while (comm->memory.posts != NULL) {
        posted *p = comm->memory.posts;
        comm->memory.posts = p->next;
        free(p);
    }
}
