/* SPDX-License-Identifier: Apache-2.0
 * Keeps the group that a thread has opened with ring_group_start(), in thread-local memory. Calls
 * made meanwhile are added to it instead of being started. */
#include "call_group.h"

#include "prepared.h"

static _Thread_local call_group mine;

static pthread_key_t at_end; /* runs end_thread() in threads that have opened a group */

/* ---- The thread's group --------------------------------------------------------------------- */

bool call_group_is_open(void)
{
    return mine.depth > 0;
}

bool call_group_is_paused(void)
{
    return mine.paused;
}

void call_group_keep_error(call_group *group, ring_status status)
{
    if (status == RING_OK || group->status != RING_OK)
        return;
    group->status = status;
    text_format(group->text, sizeof group->text, "%s", fail_text());
}

ring_status call_group_note(ring_status status)
{
    if (mine.depth > 0)
        call_group_keep_error(&mine, status);
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
    if (c == NULL)
        return fail(RING_ERR_MEMORY, "keeping a call until ring_group_end()");
    if (c->options.work != NULL)
        *c->options.work = NULL;
    *mine.end = c;
    mine.end = &c->next;
    return status;
}

static void clear(void)
{
    mine = (call_group){.end = &mine.first, .paused = mine.paused};
}

void call_group_pause(call_group *kept)
{
    *kept = mine;
    mine.paused = true;
    clear();
}

void call_group_resume(const call_group *kept)
{
    prepared_drop_all(mine.first);
    mine = *kept;
}

bool call_group_close(call_group *ended)
{
    if (--mine.depth > 0)
        return false;
    *ended = mine;
    clear();
    return true;
}

static void end_thread(void *context)
{
    (void)context;
    if (mine.first != NULL)
        log_warn("a thread ended between ring_group_start() and ring_group_end(); its calls were "
                 "not started");
    prepared_drop_all(mine.first);
    clear();
}

ring_status ring_group_start(void)
{
    if (mine.depth == 0) {
        clear();
        if (pthread_setspecific(at_end, &mine) != 0)
            return fail(RING_ERR_MEMORY, "ring_group_start: registering the thread's group");
    }
    mine.depth++;
    return RING_OK;
}

ring_status ring_group_drop(void)
{
    if (!call_group_is_open())
        return fail(RING_ERR_USAGE, "ring_group_drop: no group is open in this thread");
    prepared_drop_all(mine.first);
    clear();
    return RING_OK;
}

/* ---- Set-up of the process ------------------------------------------------------------------ */

static void in_parent(void)
{
    prepared_after_fork(false);
}

/* A forked child starts without an open group. */
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
