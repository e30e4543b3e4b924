/* SPDX-License-Identifier: Apache-2.0
 * Ends a group of calls. If every call of the group is valid they all start together, else all of
 * them are refused. */
#include "call_group.h"
#include "call_reports.h"
#include "calls.h"
#include "device_calls.h"
#include "device_pairs.h"
#include "nvtx.h"
#include "prepared.h"
#include "program_cache.h"
#include "streams.h"

/* Refused calls take their numbers, so that ranks that did make them learn the reason. */
static void refuse_all(const call_group *g)
{
    for (const prepared_call *c = g->first; c != NULL; c = c->next) {
        if (c->comm == NULL || !comm_is_fine(c->comm))
            continue;
        comm_lock(c->comm);
        fail(g->status, "a call of its group was refused: %s", g->text);
        reports_refuse(c->comm, &c->call);
        comm_unlock(c->comm);
    }
}

/* Fails the communicators of which accelerators run calls of the group already. */
static void fail_started(const call_group *g)
{
    for (const prepared_call *c = g->first; c != NULL; c = c->next) {
        if (c->comm == NULL || c->run == 0 || !comm_is_fine(c->comm))
            continue;
        comm_lock(c->comm);
        fail(g->status, "another call of its group has failed: %s", g->text);
        (void)call_cannot_start(c->comm, g->status);
        comm_unlock(c->comm);
    }
}

/* Calls of the group on one stream share a stop, so that none of them waits for another to end.
 * @return true if an earlier call of the group has such a stop. */
static bool share_stop(const prepared_call *calls, prepared_call *c)
{
    while (calls != c &&
           (calls->stop == NULL || calls->program->call.on_device ||
            calls->stop->by != stream_orders(c) || calls->options.stream != c->options.stream))
        calls = calls->next;
    if (calls != c)
        c->stop = stop_hold(calls->stop);
    return calls != c;
}

/* Replaces the program of a call that accelerators cannot run after all. */
static ring_status drive_by_host(prepared_call *c)
{
    call_signature call = c->program->call;
    program *p;
    if (c->captured)
        return device_call_refuse_capture(c);
    call.on_device = false;
    comm_lock(c->comm);
    const ring_status status = programs_get(c->comm, &call, &p);
    if (status == RING_OK) {
        atomic_fetch_sub(&c->program->kept, 1);
        atomic_fetch_add(&p->kept, 1);
        c->program = p;
    }
    comm_unlock(c->comm);
    return status;
}

/* @return true if the call is to this rank itself and has no partner yet. */
static bool is_alone(const prepared_call *c, const ring_comm *comm, plan_collective collective)
{
    return c->comm == comm && c->program != NULL && c->program->to_self && !c->call.tagged &&
           c->call.collective == collective && c->partner == NULL;
}

/* @return true if the host drives earlier calls that wait for a match. */
static bool has_unmatched(ring_comm *comm)
{
    comm_lock(comm);
    const bool some = comm->self_pair.sends != comm->self_pair.recvs;
    comm_unlock(comm);
    return some;
}

/* Matches the sends of the group to this rank itself with receives, in their order, as long as both
 * are in memory of an accelerator; the receives then copy from the buffers of the sends. The host
 * drives the others, and all if it drives earlier calls that wait for a match. */
static ring_status match_own(prepared_call *calls)
{
    for (prepared_call *c = calls; c != NULL; c = c->next) {
        prepared_call *sender = calls;
        if (!is_alone(c, c->comm, PLAN_RECV))
            continue;
        while (sender != NULL && !is_alone(sender, c->comm, PLAN_SEND))
            sender = sender->next;
        if (sender == NULL || has_unmatched(c->comm) || !c->program->call.on_device ||
            !sender->program->call.on_device ||
            sender->program->signature != c->program->signature ||
            sender->buffers.src_bytes != c->buffers.dst_bytes)
            break;
        c->partner = sender;
        sender->partner = c;
    }
    for (prepared_call *c = calls; c != NULL; c = c->next)
        if ((is_alone(c, c->comm, PLAN_SEND) || is_alone(c, c->comm, PLAN_RECV)) &&
            c->program->call.on_device)
            RING_TRY(drive_by_host(c));
    return RING_OK;
}

static bool is_on_device(const prepared_call *c, bool pairwise)
{
    return c->program != NULL && c->program->call.on_device &&
           c->program->facts->pairwise == pairwise;
}

/* Starts the sends and receives that accelerators run, in one run for each communicator. */
static void start_pairs(call_group *g)
{
    for (prepared_call *c = g->first; c != NULL && g->status == RING_OK; c = c->next) {
        const prepared_call *first = g->first;
        while (first != c && (first->comm != c->comm || !is_on_device(first, true)))
            first = first->next;
        if (first == c && is_on_device(c, true))
            call_group_keep_error(g, device_pairs_start(c, NULL));
    }
}

/* Starts the calls of the group that accelerators run, then makes the streams stop for the others.
 * All ranks do so in this order, whatever the order in the group: collectives, sends and receives,
 * calls that the host drives. Otherwise two ranks could wait for each other. All collectives have
 * started before a stream waits for one of them, because one thread may make the calls of several
 * ranks that share a launch. Calls that a graph has captured are removed from the list, and take no
 * number now. */
static void enter_streams(call_group *g)
{
    call_group_keep_error(g, match_own(g->first));
    for (prepared_call *c = g->first; c != NULL && g->status == RING_OK; c = c->next)
        if (is_on_device(c, false))
            call_group_keep_error(g, device_call_start(c, -1));
    const double until = device_call_patience();
    for (const prepared_call *c = g->first; c != NULL; c = c->next)
        call_group_keep_error(g, device_call_settle(c, until));
    start_pairs(g);
    for (prepared_call *c = g->first; c != NULL && g->status == RING_OK; c = c->next)
        if (!is_on_device(c, false) && !is_on_device(c, true) && stream_orders(c) != NULL &&
            !share_stop(g->first, c))
            call_group_keep_error(g, stream_stop(c));
    for (prepared_call **at = &g->first, *c; (c = *at) != NULL;) {
        if (!c->captured || c->program == NULL || !c->program->call.on_device) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        prepared_drop(c);
    }
}

/* Starts all calls, then waits for each. While it waits, this thread advances all of them: those of
 * other communicators as orphans. */
static void run_all(call_group *g)
{
    bool beside = false;
    const bool marked = g->first != NULL && g->first->comm->settings.nvtx;
    for (const prepared_call *c = g->first; c != NULL; c = c->next)
        beside |= c->comm != g->first->comm;
    if (marked)
        nvtx_begin("ring_group_end");
    for (prepared_call *c = g->first; c != NULL; c = c->next) {
        comm_lock(c->comm);
        const ring_status status = call_launch(c, beside, &c->stays);
        comm_unlock(c->comm);
        stop_drop(&c->stop);
        call_group_keep_error(g, status);
    }
    for (prepared_call *c = g->first; c != NULL; c = c->next) {
        if (c->stays == NULL)
            continue;
        comm_lock(c->comm);
        const ring_status status = call_await(c->stays);
        comm_unlock(c->comm);
        call_group_keep_error(g, status);
    }
    if (marked)
        nvtx_end();
}

ring_status ring_group_end(void)
{
    call_group g;
    if (!call_group_is_open())
        return fail(RING_ERR_USAGE, "ring_group_end: no group is open in this thread");
    if (!call_group_close(&g))
        return RING_OK;
    for (const prepared_call *c = g.first; c != NULL; c = c->next)
        if (c->comm == NULL)
            call_group_keep_error(&g, fail(RING_ERR_USAGE,
                                           "ring_group_end: a communicator of the group was "
                                           "destroyed before its end"));
    if (g.status == RING_OK)
        enter_streams(&g);
    if (g.status == RING_OK) {
        run_all(&g);
    } else {
        fail_started(&g);
        refuse_all(&g);
    }
    prepared_drop_all(g.first);
    return g.status == RING_OK ? RING_OK : fail(g.status, "%s", g.text);
}
