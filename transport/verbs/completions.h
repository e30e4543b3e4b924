/* SPDX-License-Identifier: Apache-2.0
 *
 * completions: what is over, told to the queue pair that asked. All queue pairs of a device share
 * its completion queue; a *sink* is the end of one of them here. Requests of a queue pair are
 * numbered from 1 and end in order, so one number says which are over.
 *
 * Whoever sleeps waits on the device's channel and on a descriptor of its own: the first tells
 * that something is over, and whoever polls it then writes the second of those whom it is about.
 */
#ifndef RING_COMPLETIONS_H
#define RING_COMPLETIONS_H

#include "adapter.h"

typedef struct completion_sink {
    _Atomic uint32_t done; /* requests up to this one are over                                */
    _Atomic int failed;    /* enum ibv_wc_status of the first that failed; 0: none            */
    _Atomic bool woken;    /* the peer has sent a wake-up                                     */
    _Atomic bool *armed;   /* somebody sleeps on `wake`                                       */
    int wake;              /* an eventfd                                                      */
} completion_sink;

/** @return what names the sink in requests and to the peer; 0 with fail() called: no memory. */
uint32_t completions_enter(completion_sink *sink);
/** When it returns nobody uses the sink. */
void completions_leave(uint32_t handle);

/** Hands out what is over. Returns at once if another thread does so already. */
void completions_poll(adapter_device *device);

/** Hands out, and destroys a queue pair while nobody else polls or reads events of the device:
 * those of the queue pair are either read and acknowledged, or not read. */
void completions_destroy(adapter_device *device, struct ibv_qp *qp);

/** From now on the device's channel is readable when a wake-up comes, and with @p all, also when
 *  something is over. What is over already was handed out when it returns. */
void completions_arm(adapter_device *device, bool all);
/** Drains the channel, and hands out. */
void completions_disarm(adapter_device *device);

#endif
