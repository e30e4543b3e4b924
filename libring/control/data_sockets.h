/* SPDX-License-Identifier: Apache-2.0
 *
 * data sockets: opens sockets between two ranks, at any time, for the links of the rooms above.
 * Either rank of a pair dials, and both give the socket to their communicator's sink, once for each
 * purpose. If both dial, the socket of the higher rank is used and the other one is refused.
 * Sockets that a peer dials before this rank has created the communicator, or has set its sink, are
 * held until it does.
 */
#ifndef RING_CONTROL_DATA_SOCKETS_H
#define RING_CONTROL_DATA_SOCKETS_H

#include "membership_state.h"

/** Decides whether to accept a socket that a member dials.
 *  @return RING_OK; RING_ERR_PEER: the socket exists already, or this rank, the higher one, is
 *  dialing it; RING_ERR_ABORTED: the communicator has ended. */
ring_status data_sockets_want(const membership *m, const handshake_hello *hello);
/** Gives @p fd, which a member has dialed with handshake @p h, to the sink, or holds it. */
void data_sockets_admit(membership *m, const handshake *h, bool local, int fd);
/** Reports a failure to the sink of an ended communicator for each dial in progress. */
void data_sockets_end(group *g);
/** Fails all dials to a rank that has left. */
void data_sockets_left(membership *m, int rank);
/** Closes the sockets that are held for a communicator. */
void data_sockets_forget(membership *m, uint64_t communicator);
/** Closes the sockets that have been held for too long. */
void data_sockets_expire(membership *m, double now);

#endif
