/* SPDX-License-Identifier: Apache-2.0
 *
 * small: declares the functions of a library that small.c measures: blocking calls in place on
 * floats with root 0. small_ring.c and small_mpi.c define them. A failure ends the process.
 */
#ifndef PERF_COMPARE_SMALL_H
#define PERF_COMPARE_SMALL_H

#include <stdbool.h>
#include <stddef.h>

/** Rank and number of ranks, set by small_open(). */
typedef struct small_self {
    int rank, ranks;
} small_self;

/** Joins the ranks that the launcher has started. */
void small_open(int *argc, char ***argv, small_self *self);
void small_close(void);

/** @return the name and version of the library, as a static string. */
const char *small_library(void);

/** @param own  allocate by the library's own function; false: by malloc(). @return NULL if out of
 *  memory. */
float *small_alloc(size_t bytes, bool own);
void small_free(float *buffer, bool own);

void small_all_reduce(const small_self *self, float *buffer, size_t count);
void small_reduce(const small_self *self, float *buffer, size_t count);
void small_broadcast(const small_self *self, float *buffer, size_t count);
/** @param buffer  has a block of @p count elements for each rank. */
void small_all_gather(const small_self *self, float *buffer, size_t count);
void small_barrier(const small_self *self, float *buffer, size_t count);
/** Rank 2k sends the buffer to rank 2k + 1, which sends it back. Without a partner, the last rank
 *  does nothing. */
void small_ping_pong(const small_self *self, float *buffer, size_t count);

#endif
