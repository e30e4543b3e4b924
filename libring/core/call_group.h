/* SPDX-License-Identifier: Apache-2.0
 *
 * call_group: the calls of a thread between ring_group_start() and ring_group_end(). They are
 * checked where they are made and start together, in the order in which they were made.
 */
#ifndef RING_CORE_CALL_GROUP_H
#define RING_CORE_CALL_GROUP_H

#include "prepared.h"

/** @return true if calls of this thread are kept for the end of a group. */
bool call_group_is_open(void);
/** Keeps a copy of a call. The caller holds its communicator's lock.
 *  @param status  RING_OK, or why it was refused. @return the same, or RING_ERR_MEMORY. */
ring_status call_group_add(prepared_call *call, ring_status status);
/** Keeps the first error of an open group, with fail_text(). @return @p status. */
ring_status call_group_note(ring_status status);
/** RING_ERR_USAGE in an open group. @param call  for the text. */
ring_status call_group_refuse(const char *call);

/** A thread's open group. comm_unlock() sets it aside while a caller's on_done runs. */
typedef struct call_group {
    int depth;
    ring_status status; /* the first error */
    char text[480];
    prepared_call *first, **end;
} call_group;
/** Ends a level. @param[out] ended  the group, once the outermost level has ended.
 *  @return true then. */
bool call_group_close(call_group *ended);
/** Keeps the group's first error, with fail_text(). */
void call_group_keep_error(call_group *group, ring_status status);
void call_group_pause(call_group *kept);
void call_group_resume(const call_group *kept);

#endif
