/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared: defines the description of a call, and keeps the descriptions of checked calls that
 * start later. These are calls of an open group, and calls that were prepared to be started
 * repeatedly.
 */
#ifndef RING_CORE_PREPARED_H
#define RING_CORE_PREPARED_H

#include "comm.h"

typedef struct ring_prepared prepared_call;
struct ring_prepared {
    ring_comm *comm;     /* NULL: it has been destroyed, or belongs to the parent process */
    call_signature call; /* a kept call has no shape here */
    program *program;    /* NULL: the call was refused */
    call_buffers buffers;
    ring_call options;
    const accelerator *stream_of; /* the accelerator of options.stream, see streams.h */
    bool captured;                /* the stream is being captured, so a graph keeps the call */
    accelerator_stop *stop;       /* a reference to the call's stop in the stream; NULL: none yet */
    work *stays;                  /* the started work, if it must be waited for */
    uint32_t run;                 /* of the accelerator, if it runs the call */
    struct ring_prepared *partner; /* of a receive from this rank itself: the send, in its group */
    struct ring_prepared *next;    /* in the calls of its group */
    struct ring_prepared *later, **link; /* in the kept calls of the process */
};

/** Copies a call. The copy, its program and its event live until prepared_drop(). The caller holds
 *  the communicator's lock. @return NULL if there is no memory. */
prepared_call *prepared_keep(const prepared_call *call);
/** Frees a copy that prepared_keep() returned. */
void prepared_drop(prepared_call *call);
/** Drops all calls of a list that is linked by `next`. */
void prepared_drop_all(prepared_call *calls);

/** Makes kept calls on a communicator unusable, because it is being destroyed. */
void prepared_forget(const ring_comm *comm);

/** Called around fork(): in the child all kept calls are unusable. */
void prepared_before_fork(void);
void prepared_after_fork(bool in_child);

#endif
