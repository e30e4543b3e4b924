/* SPDX-License-Identifier: Apache-2.0
 *
 * small: the functions that the harness of small messages needs of a library: blocking calls in
 * place on floats, root 0. small_ring.c and small_mpi.c define them; small.c measures them. A
 * failure ends the process.
 */
#ifndef PERF_COMPARE_SMALL_H
#define PERF_COMPARE_SMALL_H

#include <stdbool.h>
#include <stddef.h>

/** Rank and number of ranks, set by small_open(). */
typedef struct small_self {
    int rank, ranks;
} small_self;

void small_open(int *argc, char ***argv, small_self *self);
void small_close(void);

/** @return name and version of the library, static. */
const char *small_library(void);

/** The library's own allocator if @p own, else malloc's. */
float *small_alloc(size_t bytes, bool own);
void small_free(float *buffer, bool own);

void small_all_reduce(const small_self *self, float *buffer, size_t count);
void small_reduce(const small_self *self, float *buffer, size_t count);
void small_broadcast(const small_self *self, float *buffer, size_t count);
/** @p buffer has a block of @p count a rank. */
void small_all_gather(const small_self *self, float *buffer, size_t count);
void small_barrier(const small_self *self, float *buffer, size_t count);
/** Ranks 2k and 2k+1 send the buffer there and back; a last odd rank does nothing. */
void small_ping_pong(const small_self *self, float *buffer, size_t count);

#endif
