/* SPDX-License-Identifier: Apache-2.0
 *
 * device_proxy: carries the frames of calls that accelerators run to and from ranks on other hosts.
 * The accelerator writes frames to boxes in memory of this host and reads frames and receipts there
 * (device_frames.h). Engine turns pass what is new on over a link for each such rank, and put what
 * arrives into the boxes. None of this calls the accelerator's driver.
 *
 * Frames of a link: bytes of an accelerator's frame, in parts of up to TRANSPORT_SEGMENT bytes, or
 * all at once if the link puts them into the peer's box; the receipts of one lane; or the reference
 * to the box of one lane, if the peer can put into it.
 */
#ifndef RING_CORE_DEVICE_PROXY_H
#define RING_CORE_DEVICE_PROXY_H

#include "comm.h"
#include "device_calls.h"

/** Creates the proxy of a connected seat, if ranks are on several hosts. Links are opened when they
 *  are first used. */
ring_status device_proxy_new(ring_comm *comm, struct device_calls *d);
void device_proxy_free(struct device_calls *d);

/** Passes frames and receipts on while device calls are in flight, or may be replayed, or the
 *  communicator ends.
 *  @return an error if a link has failed that a call needs; the communicator has failed then. */
ring_status device_proxy_turn(ring_comm *comm, bool *moved);
/** @return a channel whose link has not passed on all that the accelerator has written, or, after
 *  device_proxy_end(), whose peer has not taken it; NULL if there is none. */
const channel *device_proxy_busy(const ring_comm *comm);
/** Keeps the proxy at work, because a graph may replay calls. The caller does not hold the lock. */
void device_proxy_stay(ring_comm *comm);
/** Keeps the proxy at work while the communicator ends. A rank must not close its links before its
 *  peers have taken its frames: their receipts would reset the connection, and frames on their way
 *  would be lost. */
void device_proxy_end(ring_comm *comm);

#endif
