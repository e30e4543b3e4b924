/* SPDX-License-Identifier: Apache-2.0
 * tcp_failure: breaks a tcp link, and reports the failure again to every later call. */
#ifndef RING_TCP_FAILURE_H
#define RING_TCP_FAILURE_H

#include "tcp.h"

/** Breaks the link with the failure that this thread has just passed to fail(). @return @p status.
 */
ring_status tcp_break(tcp_link *l, ring_status status);
/** @return RING_OK; or, if the link is broken, its status, after passing its text to fail(). */
ring_status tcp_verdict(const tcp_link *l);

#endif
