/* SPDX-License-Identifier: Apache-2.0
 *
 * data sockets: opened at any time between two ranks, for the links of the rooms above. The higher
 * rank of a pair dials; both hand what they get to their sink.
 */
#ifndef RING_CONTROL_DATA_SOCKETS_H
#define RING_CONTROL_DATA_SOCKETS_H

#include "membership.h"

/** A member has brought one: @p fd is for the sink. */
void data_sockets_admit(membership *m, const handshake_hello *hello, bool local, int fd);

#endif
