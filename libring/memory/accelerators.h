/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerators: lists the accelerators of this process, and finds the accelerator to which a stream
 * or memory belongs, whether the memory is registered or not. All functions are thread-safe. A
 * forked child begins with an empty list.
 */
#ifndef RING_ACCELERATORS_H
#define RING_ACCELERATORS_H

#include "accelerator.h"

/** The most accelerators of a process. */
enum { ACCELERATORS_MOST = 64 };

/** Adds an accelerator, unless it has been added before. @param a  must stay valid until the
 * process ends. @return RING_OK; RING_ERR_MEMORY: the list is full. */
ring_status accelerators_add(const accelerator *a);
/** @return true if the list is not empty. Cost: one load. */
bool accelerators_are_there(void);
/** Finds the accelerator of a stream.
 *  @param[out] of  NULL if no accelerator in the list owns the stream.
 *  @return RING_OK, or the error of an accelerator. */
ring_status accelerators_of_stream(void *stream, const accelerator **of);
/** Finds the accelerator that owns the byte at @p at.
 *  @param[out] out  the allocation, as accelerator.owns() describes it.
 *  @param[in,out] of  the accelerator to ask first, or NULL; receives NULL if no accelerator in the
 *                     list owns the byte.
 *  @return RING_OK, or the error of an accelerator. */
ring_status accelerators_of_memory(const void *at, size_t bytes, accelerator_allocation *out,
                                   const accelerator **of);

#endif
