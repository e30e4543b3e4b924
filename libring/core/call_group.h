/* SPDX-License-Identifier: Apache-2.0
 *
 * call_group: collects the calls that a thread makes between ring_group_start() and
 * ring_group_end(). Each call is checked when it is made; all of them start together at the end, in
 * the order in which they were made.
 */
#ifndef RING_CORE_CALL_GROUP_H
#define RING_CORE_CALL_GROUP_H

#include "prepared.h"

/** @return true if this thread has a group open, so that its calls are kept until the end. */
bool call_group_is_open(void);
/** @return true in an on_done function. */
bool call_group_is_paused(void);
/** Adds a copy of a call to the open group. The caller holds the lock of its communicator.
 *  @param status  RING_OK, or the reason why the call was refused.
 *  @return @p status, or RING_ERR_MEMORY. */
ring_status call_group_add(prepared_call *call, ring_status status);
/** Records @p status and fail_text() as the error of the open group, if it is the first one.
 *  @return @p status. */
ring_status call_group_note(ring_status status);
/** @param call  its name, for the message. @return RING_ERR_USAGE if a group is open. */
ring_status call_group_refuse(const char *call);

/** A thread's open group. comm_unlock() suspends it while a caller's on_done runs. */
typedef struct call_group {
    int depth;
    ring_status status; /* the first error */
    char text[480];
    prepared_call *first, **end;
    bool paused; /* the thread is in an on_done */
} call_group;
/** Closes one nesting level. @param[out] ended  the group, if the outermost level was closed.
 *  @return true if the outermost level was closed. */
bool call_group_close(call_group *ended);
/** Records @p status and fail_text() as the group's error, if it is the first one. */
void call_group_keep_error(call_group *group, ring_status status);
void call_group_pause(call_group *kept);
void call_group_resume(const call_group *kept);

#endif
