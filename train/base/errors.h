/* SPDX-License-Identifier: Apache-2.0
 *
 * errors: keeps the trainer's error text, one for each thread. The function that detects a failure
 * writes one line with train_fail() (what, where, why, what to do); callers only pass the status
 * on.
 */
#ifndef TRAIN_ERRORS_H
#define TRAIN_ERRORS_H

#include "words.h"

#include <ring/ring.h>
#include <stdbool.h>

/** Returns the status of @p expr to the caller unless it is RING_OK. */
#define RING_TRY(expr) \
    do { \
        const ring_status try_status = (expr); \
        if (try_status != RING_OK) \
            return try_status; \
    } while (0)

/** Longest error text, its end included. */
#define TRAIN_ERROR_MAX 4096

/** Sets this thread's error text and returns @p status. */
ring_status train_fail(ring_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** train_fail() for the folder @p path, which could not be opened; errno says why. */
ring_status train_folder_fail(const char *path);

/** Passes on the result of a libring call on @p comm, and its text if it failed. */
ring_status train_ring(const ring_comm *comm, ring_status status);

/** @return this thread's latest error text; "" if there was none. */
const char *train_error(void);

/** Marks this thread's latest error text as one that every rank has, so that it is enough if one
 *  rank prints it. The next train_fail() clears the mark. */
void train_error_share(void);
bool train_error_is_shared(void);

/** A failure that is kept until all ranks can be told of it. */
typedef struct train_failure {
    ring_status status; /* RING_OK: there was none */
    char text[TRAIN_ERROR_MAX];
} train_failure;

/** Keeps @p status with this thread's error text if it is the first that is not RING_OK. */
void train_failure_keep(train_failure *failure, ring_status status);

/** @return the failure's status, with its text as this thread's error. */
ring_status train_failure_tell(const train_failure *failure);

/** Allocates @p bytes (rounded up) of zeroed memory aligned for SIMD, to be free()d.
 *  @return RING_OK or RING_ERR_MEMORY, which names @p what. */
ring_status train_alloc(void **out, size_t bytes, const char *what);

#endif
