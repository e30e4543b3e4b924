/* SPDX-License-Identifier: Apache-2.0
 *
 * program_cache: keeps the programs that a communicator used last, and their plans, up to a number
 * of programs and of bytes. It is the only cache between a call and its ops.
 */
#ifndef RING_CORE_PROGRAM_CACHE_H
#define RING_CORE_PROGRAM_CACHE_H

#include "comm.h"

enum { PROGRAMS_MOST = 256, PROGRAMS_MOST_BYTES = 8 << 20 };

ring_status programs_new(struct program_cache **out);
void programs_free(struct program_cache *cache);
/** Finds the program of a call, and creates it if there is none. The program lives at least while
 *  it has users. @return the errors of program_new(). */
ring_status programs_get(ring_comm *comm, const call_signature *call, program **out);
/** @return the number of programs lowered so far. */
uint64_t programs_lowered(const struct program_cache *cache);
/** @return the number of kept programs. @param[out] bytes  their size and that of their plans. */
int32_t programs_kept(const struct program_cache *cache, size_t *bytes);

#endif
