/* SPDX-License-Identifier: Apache-2.0
 *
 * data sockets: opens sockets between two ranks, at any time, for the links of the transports.
 * Either rank of a pair dials, and both pass the socket to their communicator's sink, once for each
 * purpose. If both ranks dial, the higher-numbered rank's socket is used, and it refuses the other
 * one. A peer may dial before this rank has created the communicator or has set its sink; the
 * socket is then held until this rank does so.
 */
#ifndef RING_CONTROL_DATA_SOCKETS_H
#define RING_CONTROL_DATA_SOCKETS_H

#include "membership_state.h"

/** Decides whether to accept a socket that a member of the job has dialed.
 *  @return RING_OK: accept it; RING_ERR_PEER: this rank, which has the higher number, has such a
 *  socket or is dialing it; RING_ERR_ABORTED: the communicator has ended. */
ring_status data_sockets_want(const membership *m, const handshake_hello *hello);
/** Passes @p fd, which a member has dialed with the handshake @p h, to the sink, or holds it. */
void data_sockets_admit(membership *m, const handshake *h, bool local, int fd);
/** Ends the sockets of a communicator that has ended: fails its dials, and closes held sockets. */
void data_sockets_end(group *g);
/** Fails all dials to a rank that has left. */
void data_sockets_left(membership *m, int rank);
/** Closes the sockets that are held for a communicator. */
void data_sockets_forget(membership *m, uint64_t communicator);
/** Closes the sockets that have been held for too long. */
void data_sockets_expire(membership *m, double now);

#endif
