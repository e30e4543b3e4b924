/* SPDX-License-Identifier: Apache-2.0
 * The life of a work: from the pool, through the list of those under way, back to the pool. */
#include "work.h"

#include "automatic.h"
#include "event.h"
#include "handle.h"
#include "lists.h"
#include "products.h"
#include "progress_thread.h"
#include "regions.h"
#include "scratch.h"
#include "streams.h"
#include "tagged_traffic.h"
#include "unopened.h"

#include <stdlib.h>

static work *take_from_pool(ring_comm *comm)
{
    work *w = comm->pool;
    if (w != NULL) {
        comm->pool = w->next;
        return w;
    }
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->comm = comm;
    w->sibling = comm->works;
    comm->works = w;
    return w;
}

void work_recycle(work *w)
{
    w->next = w->comm->pool;
    w->comm->pool = w;
}

static void append(ring_comm *comm, work *w)
{
    w->next = NULL;
    w->link = comm->end;
    *comm->end = w;
    comm->end = &w->next;
}

uint64_t work_take_number(ring_comm *comm, const call_signature *call, uint64_t packed, channel *on)
{
    if (call->collective == PLAN_SEND)
        return on != NULL ? on->sends++ : comm->self_pair.sends++;
    if (call->collective == PLAN_RECV)
        return on != NULL ? on->recvs++ : comm->self_pair.recvs++;
    comm->history[comm->calls % HISTORY_CALLS] = packed;
    return comm->calls++;
}

static ring_status make_peers(work *w, const program *p)
{
    if (w->peer_cap >= p->peer_count)
        return RING_OK;
    work_peer *peers = realloc(w->peers, (size_t)p->peer_count * sizeof *peers);
    if (peers == NULL)
        return fail(RING_ERR_MEMORY, "starting %s", plan_collective_name(p->call.collective));
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
            status = unopened_dial(c);
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
    return options->timeout > 0 ? options->timeout : comm->settings.timeout;
}

static void bind_options(work *w, const ring_call *options)
{
    w->timeout = work_timeout(w->comm, options);
    w->gate = options->after != NULL ? event_hold(options->after) : NULL;
    w->gated = w->gate != NULL || w->late;
    w->on_done = options->on_done;
    w->context = options->context;
}

/* Binds all fields except the call number and the held resources. */
static void bind_work(work *w, const call_buffers *buffers, program *p, int32_t index)
{
    w->call = p->call;
    w->signature = p->signature;
    w->lead = w;
    w->parts = p->channels;
    w->index = w->slice = index;
    w->src = buffers->src;
    w->dst = buffers->dst;
    w->src_bytes = buffers->src_bytes;
    w->dst_bytes = buffers->dst_bytes;
    w->src_region = w->dst_region = 0;
    w->src_by = buffers->src_by;
    w->dst_by = buffers->dst_by;
    w->by = w->dst_by != NULL ? w->dst_by : w->src_by;
    w->program = p;
    w->scratch = w->stage = NULL;
    w->products.missing = false;
    w->products.memory = NULL;
    w->lists[PLAN_SRC] = w->lists[PLAN_DST] = NULL;
    w->op = w->runs = w->posted = w->waiters = 0;
    w->position = 0;
    w->phase = PHASE_NONE;
    w->relay.asked = false;
    w->awaits = w->suspect = NULL;
    w->partner = NULL;
    w->message = NULL;
    w->tag_open = w->tag_met = false;
    w->stop = NULL;
    w->stopped = false;
    w->detached = w->lends = w->done_pending = false;
    w->deadline = 0;
    w->finished = false;
    w->status = RING_IN_PROGRESS;
    p->users++;
}

/* The allocations of a work; nothing is counted yet. */
static ring_status prepare(work *w, const program *p, const ring_call *options)
{
    w->handle = 0;
    RING_TRY(make_peers(w, p));
    return options->work != NULL ? handle_new(w->comm, w, &w->handle, options->work) : RING_OK;
}

static uint64_t hold_side(work *w, int side, const void *at, size_t bytes, const accelerator *by)
{
    const bool automatic = w->comm->links.registers && by == NULL;
    uint64_t (*const hold)(const void *, size_t) = automatic ? automatic_hold : region_hold;
    if (w->lists[side] != NULL)
        return lists_hold(w, side, hold);
    return bytes > 0 ? hold(at, bytes) : 0;
}

static void hold_regions(work *w)
{
    w->src_region = hold_side(w, PLAN_SRC, w->src, w->src_bytes, w->src_by);
    w->dst_region = hold_side(w, PLAN_DST, w->dst, w->dst_bytes, w->dst_by);
}

/* A list is lent only if all its blocks are held. */
static bool may_lend_lists(const work *w)
{
    const work *lead = w->lead;
    return (w->lists[PLAN_SRC] == NULL || lead->src_region != 0) &&
           (w->lists[PLAN_DST] == NULL || lead->dst_region != 0);
}

static bool is_scratch(const work *w, const char *at)
{
    return (w->scratch != NULL && (size_t)(at - w->scratch) < w->program->scratch) ||
           (w->stage != NULL && (size_t)(at - w->stage) < STAGE_BYTES);
}

bool work_may_lend(const work *w, const char *at)
{
    if (w->dst != NULL && (size_t)(at - w->dst) < w->dst_bytes)
        return w->lead->dst_region != 0;
    if (w->src != NULL && (size_t)(at - w->src) < w->src_bytes)
        return w->lead->src_region != 0;
    return may_lend_lists(w) || is_scratch(w, at);
}

static uint64_t next_number(const work *w)
{
    const program *p = w->program;
    return work_take_number(w->comm, &p->call, p->signature, p->facts->pairwise ? p->on[0] : NULL);
}

static void bind_lead(work *w, const call_buffers *buffers, program *p, const ring_call *options)
{
    bind_work(w, buffers, p, 0);
    if (buffers->products.scale != 1)
        w->products = buffers->products;
    lists_bind(w, buffers);
    w->late = options->stream != NULL && w->comm->late && !p->call.tagged && p->device == NULL;
    w->seq = p->call.tagged || w->late ? 0 : next_number(w);
    if (w->comm->links.reaches || regions_are_registered())
        hold_regions(w);
    bind_options(w, options);
}

/* A part: its lead holds the call's resources, and reports its end. */
static void bind_part(work *w, const work *lead, const call_buffers *buffers, int32_t index)
{
    bind_work(w, buffers, lead->program, index);
    w->lead = (work *)(uintptr_t)lead;
    w->seq = lead->seq;
    w->late = lead->late;
    w->lists[PLAN_SRC] = lead->lists[PLAN_SRC];
    w->lists[PLAN_DST] = lead->lists[PLAN_DST];
    w->timeout = lead->timeout;
    w->gate = lead->gate != NULL ? event_hold(lead->gate) : NULL;
    w->gated = lead->gated;
    w->on_done = NULL;
    w->handle = 0;
    w->detached = true;
}

/* Starts the other parts of a call over several channels. */
RING_RARE static ring_status start_parts(work *lead, work *parts, const call_buffers *buffers)
{
    ring_status status = RING_OK;
    work *next;
    for (int32_t index = 1; parts != NULL; parts = next, index++) {
        next = parts->behind;
        bind_part(parts, lead, buffers, index);
        append(lead->comm, parts);
        if (status == RING_OK && !lead->late)
            status = work_take_messages(parts);
    }
    return status;
}

ring_status work_take_place(work *w)
{
    for (const work *e = w->comm->first; e != w; e = e->next)
        if (e->late && e->stop == w->stop)
            return RING_IN_PROGRESS;
    w->late = false;
    w->seq = w == w->lead ? next_number(w) : w->lead->seq;
    return work_take_messages(w);
}

/* @param[out] parts  so many, linked by `behind`, with room for the program's peers. */
RING_RARE static ring_status take_parts(ring_comm *comm, const program *p, int32_t count,
                                        work **parts)
{
    for (; count > 0; count--) {
        work *part = take_from_pool(comm);
        if (part == NULL || make_peers(part, p) != RING_OK) {
            if (part != NULL)
                work_recycle(part);
            return fail(RING_ERR_MEMORY, "starting %s", p->facts->name);
        }
        part->behind = *parts;
        *parts = part;
    }
    return RING_OK;
}

static void give_back(work *w)
{
    for (work *next; w != NULL; w = next) {
        next = w->behind;
        work_recycle(w);
    }
}

ring_status work_new(ring_comm *comm, program *p, const call_buffers *given,
                     const ring_call *options, work **out)
{
    const call_buffers *buffers = given;
    call_buffers placed; /* with products as src */
    work *w = take_from_pool(comm);
    if (w == NULL)
        return fail(RING_ERR_MEMORY, "starting %s", p->facts->name);
    ring_status status = RING_OK;
    w->behind = NULL;
    if (p->channels > 1)
        status = take_parts(comm, p, p->channels - 1, &w->behind);
    if (status == RING_OK && given->products.scale != 1) {
        placed = *given;
        buffers = &placed;
        status = products_place(comm, p, &placed);
    }
    if (status == RING_OK)
        status = prepare(w, p, options);
    if (status == RING_OK && (given->lists[PLAN_SRC] != NULL || given->lists[PLAN_DST] != NULL))
        status = lists_make_room(w);
    if (status != RING_OK) {
        give_back(w);
        return status;
    }
    bind_lead(w, buffers, p, options);
    append(comm, w);
    if (!p->facts->pairwise) {
        comm->algorithm = p->algorithm;
        comm->latest = p->call;
        comm->latest_longest = p->longest;
        comm->stall.moves++;
    }
    *out = w;
    if (p->call.tagged)
        return RING_OK;
    RING_TRY(w->late ? RING_OK : work_take_messages(w));
    return w->behind != NULL ? start_parts(w, w->behind, buffers) : RING_OK;
}

void work_stop(work *lead, accelerator_stop *stop)
{
    work *w = lead;
    for (int32_t parts = lead->parts; parts > 0; parts--, w = w->next) {
        w->stop = stop_hold(stop);
        w->stopped = w->gated = true;
        w->comm->stops++;
    }
    progress_serve(lead->comm);
}

void work_pass_stop(work *w)
{
    w->comm->stops -= w->stopped;
    w->stopped = false;
}

bool work_is_gated(const work *w)
{
    return (w->gate != NULL && event_status(w->gate) == RING_IN_PROGRESS) ||
           (w->stopped && ticket_status(w->stop->reached) == RING_IN_PROGRESS);
}

ring_status work_hold(work *w)
{
    w->behind = NULL;
    *w->comm->held_end = w;
    w->comm->held_end = &w->behind;
    return RING_IN_PROGRESS;
}

void work_set_orphan(work *w, bool orphan)
{
    if (w->orphan == orphan)
        return;
    w->orphan = orphan;
    orphans_count(w->comm, orphan ? 1 : -1);
}

void work_settle(work *w)
{
    if (w->by != NULL && (w->phase == PHASE_FOLDING || w->relay.asked))
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
    *(w->next != NULL ? &w->next->link : &comm->end) = w->link;
    w->program->users--;
    if (w->scratch != NULL)
        scratch_give_back(comm, w->scratch);
    if (w->stage != NULL)
        scratch_give_back(comm, w->stage);
    if (w->products.memory != NULL)
        scratch_give_back(comm, w->products.memory);
    if (w->gate != NULL)
        event_drop(w->gate);
    w->gate = NULL;
    if (w->message != NULL)
        tagged_forget(w);
    if ((w->src_region | w->dst_region) != 0) {
        region_release(w->src_region);
        region_release(w->dst_region);
    }
    if (w->list_room != NULL)
        lists_release(w);
    if (w->stop != NULL) {
        work_pass_stop(w);
        stop_drop(&w->stop);
    }
    w->status = status;
    w->finished = true;
    work_set_orphan(w, false);
    if (w->on_done != NULL) {
        w->done_pending = true;
        w->done_next = NULL;
        *comm->done_end = w;
        comm->done_end = &w->done_next;
    } else if (w->detached) {
        work_recycle(w);
    }
}

/* Frees all works. Handles that callers hold keep the status for ring_wait(). */
void works_free(ring_comm *comm)
{
    work *next;
    for (work *w = comm->works; w != NULL; w = next) {
        next = w->sibling;
        if (w->handle != 0)
            handle_orphan(w->handle, w->finished ? w->status : RING_ERR_ABORTED);
        free(w->peers);
        free(w->list_room);
        free(w);
    }
    while (comm->spare_posts != NULL) {
        posted *p = comm->spare_posts;
        comm->spare_posts = p->next;
        free(p);
    }
}
