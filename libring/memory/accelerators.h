/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerators: those of this process, found by their streams and by their memory, registered or
 * not. Thread-safe. Forked children have none.
 */
#ifndef RING_ACCELERATORS_H
#define RING_ACCELERATORS_H

#include "accelerator.h"

enum { ACCELERATORS_MOST = 64 };

/** @param a  stays for good; may be there already. @return RING_OK; RING_ERR_MEMORY: there are too
 *  many. */
ring_status accelerators_add(const accelerator *a);
/** @return false: there are none. One load. */
bool accelerators_are_there(void);
/** @param[out] of  the stream's accelerator; NULL: none. @return RING_OK, or why it cannot be
 *  found. */
ring_status accelerators_of_stream(void *stream, const accelerator **of);
/** @param[out] of  the accelerator whose memory the byte at @p at is, as accelerator.owns() says;
 *  NULL: none. @return RING_OK, or why it cannot be found. */
ring_status accelerators_of_memory(const void *at, size_t bytes, accelerator_allocation *out,
                                   const accelerator **of);

#endif
