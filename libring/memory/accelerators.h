/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerators: lists the accelerators of this process, and finds the one that a stream or memory
 * belongs to, whether the memory is registered or not. All functions are thread-safe. A forked
 * child begins with an empty list.
 */
#ifndef RING_ACCELERATORS_H
#define RING_ACCELERATORS_H

#include "accelerator.h"

enum { ACCELERATORS_MOST = 64 };

/** Adds an accelerator, unless it has been added before. @param a  must stay valid until the
 * process ends. @return RING_OK; RING_ERR_MEMORY: the list is full. */
ring_status accelerators_add(const accelerator *a);
/** @return true if the list has an accelerator. Cost: one load. */
bool accelerators_are_there(void);
/** @param[out] of  the stream's accelerator; NULL if there is none. @return RING_OK, or the error
 * of an accelerator. */
ring_status accelerators_of_stream(void *stream, const accelerator **of);
/** @param[out] out  as of accelerator.owns().
 *  @param[out] of  the accelerator that owns the byte at @p at; NULL if there is none. @return
 *  RING_OK, or the error of an accelerator. */
ring_status accelerators_of_memory(const void *at, size_t bytes, accelerator_allocation *out,
                                   const accelerator **of);

#endif
