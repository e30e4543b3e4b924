/* SPDX-License-Identifier: Apache-2.0
 * tcp_failure: the end of a link by a failure. */
#ifndef RING_TCP_FAILURE_H
#define RING_TCP_FAILURE_H

#include "tcp.h"

/** Breaks the link by a failure of this thread that was just told by fail(). */
ring_status tcp_break(tcp_link *l, ring_status status);
/** @return RING_OK, or tells again what broke the link. */
ring_status tcp_verdict(const tcp_link *l);

#endif
