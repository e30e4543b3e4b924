/* SPDX-License-Identifier: Apache-2.0
 *
 * completions: hands completions to the queue pairs that posted the requests. All queue pairs of a
 * device share its completion queue; a *sink* receives the completions of one queue pair. Its
 * requests are numbered from 1 and complete in order, so one number says which are complete.
 *
 * A sleeper waits on the device's channel and on its own eventfd: the channel signals a completion,
 * and the thread that polls it then writes the eventfds of the sinks concerned.
 */
#ifndef RING_COMPLETIONS_H
#define RING_COMPLETIONS_H

#include "adapter.h"

typedef struct completion_sink {
    _Atomic uint32_t done; /* requests up to this one are complete */
    _Atomic int failed;    /* enum ibv_wc_status of the first failure; 0: none */
    _Atomic bool woken;    /* a wake-up of the peer has arrived */
    _Atomic bool *armed;   /* a thread sleeps on `wake` */
    int wake;              /* an eventfd                                                      */
} completion_sink;

/** @return the sink's handle, for requests and the peer; 0 with fail() called: no memory. */
uint32_t completions_enter(completion_sink *sink);
/** The sink is no longer used when this returns. */
void completions_leave(uint32_t handle);

/** Hands out completions. Returns at once if another thread does so already. */
void completions_poll(adapter_device *device);

/** Hands out completions, and destroys a queue pair while no other thread polls or reads events of
 *  the device: its events are either read and acknowledged, or unread. */
void completions_destroy(adapter_device *device, struct ibv_qp *qp);

/** Makes the device's channel readable at the next wake-up, and with @p all, at any completion.
 *  Earlier completions are handed out before it returns. */
void completions_arm(adapter_device *device, bool all);
/** Drains the channel, and hands out completions. */
void completions_disarm(adapter_device *device);

#endif
