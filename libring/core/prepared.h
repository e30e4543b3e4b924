/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared: calls that were checked and are not started: those of an open group, and those that
 * their caller makes again and again.
 */
#ifndef RING_CORE_PREPARED_H
#define RING_CORE_PREPARED_H

#include "comm.h"

typedef struct ring_prepared prepared_call;
struct ring_prepared {
    ring_comm *comm;     /* NULL: it was destroyed meanwhile, or is of the process before a fork */
    call_signature call; /* without its shape */
    program *program;    /* NULL: the call was refused */
    call_buffers buffers;
    ring_call options;
    work *stays;                         /* started, and to be waited for */
    struct ring_prepared *next;          /* of the group */
    struct ring_prepared *later, **link; /* of the process */
};

/** @return a copy that lives until prepared_drop(), and its program and event as long; NULL: no
 *  memory. The caller holds the communicator's lock. */
prepared_call *prepared_keep(const prepared_call *call);
void prepared_drop(prepared_call *call);

/** The communicator goes: kept calls on it cannot start any more. */
void prepared_forget(const ring_comm *comm);

/** Around fork(), whose child has no communicators. */
void prepared_before_fork(void);
void prepared_after_fork(bool in_child);

/* ---- calls.c ---- */

/** Starts a call. The caller holds the lock. @param beside  calls of other communicators start
 *  with it. @param[out] stays  the work if it is to be waited for, else NULL. */
ring_status call_launch(const prepared_call *call, bool beside, work **stays);
/** Waits for such a work, and gives it back. The caller holds the lock. */
ring_status call_await(work *w);

#endif
