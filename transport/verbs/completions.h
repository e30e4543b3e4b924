/* SPDX-License-Identifier: Apache-2.0
 *
 * completions: lets each queue pair know which of its requests are complete. All queue pairs of a
 * device share its completion queue; a *sink* receives the completions of one queue pair. Its
 * requests are numbered from 1 and complete in order, so one number tells which are complete.
 *
 * A sleeping thread waits on the device's channel and on its link's eventfd: the channel signals a
 * completion, and the thread that polls it then writes the eventfds of the affected sinks.
 */
#ifndef RING_COMPLETIONS_H
#define RING_COMPLETIONS_H

#include "adapter.h"

typedef struct completion_sink {
    _Atomic uint32_t done; /* requests up to this one are complete */
    _Atomic int failed;    /* enum ibv_wc_status of the first failure, or 0 */
    _Atomic bool woken;    /* a wake-up from the peer has arrived */
    _Atomic bool *armed;   /* a thread sleeps on `wake` */
    int wake;              /* an eventfd                                                      */
} completion_sink;

/** Registers a sink. @return its handle, for requests and for the peer; 0 with fail() called if
 *  there is no memory. */
uint32_t completions_enter(completion_sink *sink);
/** Removes a sink, which is no longer used when this returns. */
void completions_leave(uint32_t handle);

/** Hands out completions. Returns at once if another thread is doing so. */
void completions_poll(adapter_device *device);

/** Hands out completions, and destroys a queue pair while no other thread polls the device or reads
 *  its events: so no event of the queue pair is read but not yet acknowledged. */
void completions_destroy(adapter_device *device, struct ibv_qp *qp);

/** Makes the device's channel readable at the next wake-up or, with @p all, at any completion.
 *  Hands out earlier completions before it returns. */
void completions_arm(adapter_device *device, bool all);
/** Drains the channel, and hands out completions. */
void completions_disarm(adapter_device *device);

#endif
