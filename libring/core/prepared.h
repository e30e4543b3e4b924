/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared: calls that were checked and are not started: those of an open group, and those that
 * callers start repeatedly.
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
    const accelerator *stream_of; /* the accelerator of options.stream, see streams.h */
    bool captured;                /* a graph captures the stream: each replay makes the call */
    accelerator_stop *stop;       /* its stop in the stream, held; NULL: none yet */
    work *stays;                  /* once started, to be waited for */
    uint32_t run;                 /* of a device program, its run */
    struct ring_prepared *next;   /* of the group */
    struct ring_prepared *later, **link; /* of the process */
};

/** @return a copy that lives until prepared_drop(), and its program and event as long; NULL: no
 *  memory. The caller holds the communicator's lock. */
prepared_call *prepared_keep(const prepared_call *call);
void prepared_drop(prepared_call *call);
/** The same for calls that are linked by `next`. */
void prepared_drop_all(prepared_call *calls);
/** @param[out] copy  of the call, whose communicator is held until members_let_go().
 *  @return false: that was destroyed. */
bool prepared_hold(const prepared_call *call, prepared_call *copy);

/** The communicator is destroyed: kept calls on it cannot start any more. */
void prepared_forget(const ring_comm *comm);

/** Around fork(), whose child has no communicators. */
void prepared_before_fork(void);
void prepared_after_fork(bool in_child);

#endif
