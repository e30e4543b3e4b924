/* SPDX-License-Identifier: Apache-2.0
 * Groups of calls, one a thread. */
#include "call_group.h"

#include "device_calls.h"
#include "streams.h"

#include <stdlib.h>

static _Thread_local call_group mine;

static pthread_key_t at_end; /* of a thread that has opened a group */

/* ---- The thread's group --------------------------------------------------------------------- */

bool call_group_is_open(void)
{
    return mine.depth > 0;
}

/* The first error is the group's. */
static void note(ring_status status)
{
    if (status == RING_OK || mine.status != RING_OK)
        return;
    mine.status = status;
    text_format(mine.text, sizeof mine.text, "%s", fail_text());
}

ring_status call_group_note(ring_status status)
{
    if (mine.depth > 0)
        note(status);
    return status;
}

ring_status call_group_refuse(const char *call)
{
    return mine.depth == 0 ? RING_OK
                           : fail(RING_ERR_USAGE,
                                  "ring_%s: a group is open in this thread; call ring_group_end() "
                                  "first",
                                  call);
}

ring_status call_group_add(prepared_call *call, ring_status status)
{
    if (status != RING_OK) {
        call->program = NULL;
        call->options = (ring_call)RING_CALL_INIT;
    }
    prepared_call *c = prepared_keep(call);
    if (c == NULL) {
        static const char why[] = "keeping a call until ring_group_end()";
        comm_fail(call->comm, NULL, fail(RING_ERR_MEMORY, why));
        failure_await(call->comm);
        return fail(RING_ERR_MEMORY, why);
    }
    if (c->options.work != NULL)
        *c->options.work = NULL;
    *mine.end = c;
    mine.end = &c->next;
    return status;
}

static void clear(void)
{
    mine = (call_group){.end = &mine.first};
}

void call_group_pause(call_group *kept)
{
    *kept = mine;
    clear();
}

void call_group_resume(const call_group *kept)
{
    prepared_drop_all(mine.first);
    mine = *kept;
}

static void end_thread(void *context)
{
    (void)context;
    if (mine.first != NULL)
        log_warn("a thread ended between ring_group_start() and ring_group_end(): its calls are "
                 "not made");
    prepared_drop_all(mine.first);
    clear();
}

/* ---- The end of a group ---------------------------------------------------------------------- */

static void check_communicators(const prepared_call *calls)
{
    for (const prepared_call *c = calls; c != NULL; c = c->next)
        if (c->comm == NULL)
            note(fail(RING_ERR_USAGE, "ring_group_end: a communicator of the group was destroyed "
                                      "before its end"));
}

/* All calls take their numbers, so that ranks that did make them learn the reason. */
static void refuse_all(const prepared_call *calls)
{
    for (const prepared_call *c = calls; c != NULL; c = c->next) {
        if (c->comm == NULL || !comm_is_fine(c->comm))
            continue;
        comm_lock(c->comm);
        fail(mine.status, "a call of its group was refused: %s", mine.text);
        statements_refuse(c->comm, &c->call);
        comm_unlock(c->comm);
    }
}

/* Calls behind one stream share a stop: none of them waits for another's end. */
static bool share_stop(const prepared_call *calls, prepared_call *c)
{
    while (calls != c && (calls->stop == NULL || calls->options.stream != c->options.stream))
        calls = calls->next;
    if (calls != c)
        c->stop = stop_hold(calls->stop);
    return calls != c;
}

/* Takes the calls behind a stream out of the list, in their order. */
static prepared_call *take_behind(prepared_call **list, const void *stream)
{
    prepared_call *taken, **end = &taken;
    while (*list != NULL) {
        prepared_call *c = *list;
        if (c->options.stream != stream || c->program->device != NULL) {
            list = &c->next;
            continue;
        }
        *list = c->next;
        *end = c;
        end = &c->next;
    }
    *end = NULL;
    return taken;
}

/* Starts a device program. @return true: a graph runs it, and it leaves the list. */
static bool start_run(prepared_call **at)
{
    prepared_call *c = *at;
    bool captured = false;
    note(device_call_start(c, &captured));
    if (!captured)
        return false;
    *at = c->next;
    prepared_drop(c);
    return true;
}

/* Calls that a graph is to start leave the list, and take no number now. */
static void stop_streams(prepared_call **calls)
{
    for (prepared_call **at = calls; *at != NULL && mine.status == RING_OK;) {
        prepared_call *c = *at;
        bool captured = false;
        if (c->program != NULL && c->program->device != NULL) {
            at = start_run(at) ? at : &c->next;
            continue;
        }
        if (c->options.stream != NULL && !share_stop(*calls, c))
            note(stream_stop(c, &captured));
        if (captured)
            note(stream_capture(take_behind(at, c->options.stream)));
        else
            at = &c->next;
    }
}

static bool are_of_one(const prepared_call *calls)
{
    const prepared_call *c = calls;
    while (c != NULL && c->comm == calls->comm)
        c = c->next;
    return c == NULL;
}

/* Waits for each started call. Meanwhile this thread moves the others, those of other communicators
 * as orphans.
 */
static void run_all(prepared_call *calls)
{
    const bool beside = !are_of_one(calls);
    for (prepared_call *c = calls; c != NULL; c = c->next) {
        comm_lock(c->comm);
        const ring_status status = call_launch(c, beside, &c->stays);
        comm_unlock(c->comm);
        stop_drop(&c->stop);
        note(status);
    }
    for (prepared_call *c = calls; c != NULL; c = c->next) {
        if (c->stays == NULL)
            continue;
        comm_lock(c->comm);
        const ring_status status = call_await(c->stays);
        comm_unlock(c->comm);
        note(status);
    }
}

ring_status ring_group_start(void)
{
    if (mine.depth == 0) {
        clear();
        if (pthread_setspecific(at_end, &mine) != 0)
            return fail(RING_ERR_MEMORY, "ring_group_start: no room to note a thread's group");
    }
    mine.depth++;
    return RING_OK;
}

ring_status ring_group_end(void)
{
    if (mine.depth == 0)
        return fail(RING_ERR_USAGE, "ring_group_end: no group is open in this thread");
    if (--mine.depth > 0)
        return RING_OK;
    prepared_call *calls = mine.first;
    mine.first = NULL;
    mine.end = &mine.first;
    check_communicators(calls);
    if (mine.status == RING_OK)
        stop_streams(&calls);
    if (mine.status == RING_OK)
        run_all(calls);
    else
        refuse_all(calls);
    prepared_drop_all(calls);
    return mine.status == RING_OK ? RING_OK : fail(mine.status, "%s", mine.text);
}

/* ---- Once a process ------------------------------------------------------------------------- */

static void in_parent(void)
{
    prepared_after_fork(false);
}

/* A child has no open group. */
static void in_child(void)
{
    prepared_after_fork(true);
    prepared_drop_all(mine.first);
    clear();
}

__attribute__((constructor)) static void set_up(void)
{
    pthread_key_create(&at_end, end_thread);
    pthread_atfork(prepared_before_fork, in_parent, in_child);
}
