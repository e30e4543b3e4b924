/* SPDX-License-Identifier: Apache-2.0
 *
 * data sockets: opened at any time between two ranks, for the links of the rooms above. Either rank
 * of a pair dials; both give the socket to their communicator's sink, once for each purpose: if
 * both dial, the socket of the higher rank is used, and the other is not welcomed. Sockets that a
 * peer dials before this rank has made the communicator, or set its sink, are held meanwhile.
 */
#ifndef RING_CONTROL_DATA_SOCKETS_H
#define RING_CONTROL_DATA_SOCKETS_H

#include "membership_state.h"

/** @return RING_OK; RING_ERR_PEER: there is such a socket, or this rank, the higher one, dials it;
 *  RING_ERR_ABORTED: the communicator is over. */
ring_status data_sockets_want(const membership *m, const handshake_hello *hello);
/** Gives @p fd, which a member has dialed by handshake @p h, to the sink, or holds it. */
void data_sockets_admit(membership *m, const handshake *h, bool local, int fd);
/** The communicator is over: its sink gets a failure for each dial under way. */
void data_sockets_end(group *g);
/** A rank has left: dials to it fail. */
void data_sockets_left(membership *m, int rank);
/** Closes sockets that are held for a communicator. */
void data_sockets_forget(membership *m, uint64_t communicator);
/** Closes sockets that were held too long. */
void data_sockets_expire(membership *m, double now);

#endif
