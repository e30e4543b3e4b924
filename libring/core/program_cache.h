/* SPDX-License-Identifier: Apache-2.0
 *
 * program_cache: the programs that a communicator used last, and their plans. The only cache
 * between a call and its ops: so many programs are kept, and so many bytes of them and their plans.
 */
#ifndef RING_CORE_PROGRAM_CACHE_H
#define RING_CORE_PROGRAM_CACHE_H

#include "comm.h"

enum { PROGRAMS_MOST = 256, PROGRAMS_MOST_BYTES = 8 << 20 };

ring_status programs_new(struct program_cache **out);
void programs_free(struct program_cache *cache);
/** @return a program that lives while it has users. Errors as of program_new(). */
ring_status programs_get(ring_comm *comm, const call_signature *call, program **out);
/** Programs lowered so far. */
uint64_t programs_lowered(const struct program_cache *cache);
/** @return the number of kept programs. @param[out] bytes  of them and of their plans. */
int32_t programs_kept(const struct program_cache *cache, size_t *bytes);

#endif
