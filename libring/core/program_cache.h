/* SPDX-License-Identifier: Apache-2.0
 *
 * program_cache: keeps the programs that a communicator used last, and their plans, so that a call
 * with the same signature is lowered only once. The number and the bytes of programs are limited.
 */
#ifndef RING_CORE_PROGRAM_CACHE_H
#define RING_CORE_PROGRAM_CACHE_H

#include "comm.h"

enum { PROGRAMS_MOST = 256, PROGRAMS_MOST_BYTES = 8 << 20 };

ring_status programs_new(struct program_cache **out);
/** Frees the cache and its programs. NULL is allowed. */
void programs_free(struct program_cache *cache);
/** Finds the program of a call, and creates it if it is not in the cache. The program is not
 *  evicted while it has users or is kept. @return the errors of program_new(). */
ring_status programs_get(ring_comm *comm, const call_signature *call, program **out);
/** @return the number of programs lowered so far. */
uint64_t programs_lowered(const struct program_cache *cache);
/** @return the number of kept programs. @param[out] bytes  their size and that of their plans. */
int32_t programs_kept(const struct program_cache *cache, size_t *bytes);

#endif
