/* SPDX-License-Identifier: Apache-2.0
 *
 * completions: records for each queue pair which of its requests are complete. All queue pairs of a
 * device share its completion queue; a *sink* receives the completions of one queue pair. Its
 * requests are numbered from 1 and complete in order, so the number of the last complete one says
 * which are complete.
 *
 * A sleeping thread waits on the device's channel and on its link's eventfd: the channel signals
 * that there is a completion, and the thread that polls it writes the eventfds of the sinks that
 * have received completions.
 */
#ifndef RING_COMPLETIONS_H
#define RING_COMPLETIONS_H

#include "adapter.h"

typedef struct completion_sink {
    _Atomic uint32_t done; /* requests up to this one are complete */
    _Atomic int failed;    /* enum ibv_wc_status of the first failure, or 0 */
    _Atomic bool woken;    /* a wake-up from the peer has arrived */
    _Atomic bool *armed;   /* true: a thread sleeps on `wake` */
    int wake;              /* an eventfd */
} completion_sink;

/** Registers a sink. @return its handle, which this end puts into its requests, and the peer into
 *  its wake-ups. 0, with the reason passed to fail(), if there is no memory. */
uint32_t completions_enter(completion_sink *sink);
/** Removes a sink. Afterwards no thread uses it. 0 is allowed. */
void completions_leave(uint32_t handle);

/** Polls the device and delivers completions to their sinks. Returns at once if another thread is
 *  doing so. */
void completions_poll(adapter_device *device);

/** Delivers completions, and destroys a queue pair while no other thread polls the device or reads
 *  its events. So no event of the queue pair is unacknowledged, which would block its
 *  destruction. */
void completions_destroy(adapter_device *device, struct ibv_qp *qp);

/** Makes the device's channel readable at the next wake-up or, with @p all, at any completion.
 *  Delivers earlier completions before it returns. */
void completions_arm(adapter_device *device, bool all);
/** Drains the channel, and delivers completions. */
void completions_disarm(adapter_device *device);

#endif
