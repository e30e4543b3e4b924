/* SPDX-License-Identifier: Apache-2.0
 * Ends a group of calls. If every call of the group is valid they all start together, else all of
 * them are refused. */
#include "call_group.h"
#include "call_reports.h"
#include "calls.h"
#include "device_calls.h"
#include "nvtx.h"
#include "prepared.h"
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

/* Calls of the group on one stream share a stop, so that none of them waits for another to end.
 * @return true if an earlier call of the group has such a stop. */
static bool share_stop(const prepared_call *calls, prepared_call *c)
{
    while (calls != c && (calls->stop == NULL || calls->stop->by != stream_orders(c) ||
                          calls->options.stream != c->options.stream))
        calls = calls->next;
    if (calls != c)
        c->stop = stop_hold(calls->stop);
    return calls != c;
}

/* Starts a device program. @return true if a graph captured the call, which is then removed from
 * the list. */
static bool start_run(call_group *g, prepared_call **at)
{
    prepared_call *c = *at;
    call_group_keep_error(g, device_call_start(c, -1));
    if (!c->captured)
        return false;
    *at = c->next;
    prepared_drop(c);
    return true;
}

/* Makes the streams stop for the calls of the group. Calls that a graph captured are removed from
 * the list, and take no number now. All device programs have started before a stream waits for one
 * of them, since one thread may make the calls of ranks that share a launch. */
static void stop_streams(call_group *g)
{
    for (prepared_call **at = &g->first; *at != NULL && g->status == RING_OK;) {
        prepared_call *c = *at;
        if (c->program != NULL && c->program->device != NULL) {
            at = start_run(g, at) ? at : &c->next;
            continue;
        }
        if (stream_orders(c) != NULL && !share_stop(g->first, c))
            call_group_keep_error(g, stream_stop(c));
        at = &c->next;
    }
    const double until = device_call_patience();
    for (const prepared_call *c = g->first; c != NULL; c = c->next)
        call_group_keep_error(g, device_call_settle(c, until));
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
        stop_streams(&g);
    if (g.status == RING_OK)
        run_all(&g);
    else
        refuse_all(&g);
    prepared_drop_all(g.first);
    return g.status == RING_OK ? RING_OK : fail(g.status, "%s", g.text);
}
