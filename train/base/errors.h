/* SPDX-License-Identifier: Apache-2.0
 *
 * errors: keeps the trainer's error text, one for each thread. The function that detects a failure
 * calls train_fail() with one line that states what failed, where and why, and what to do. Its
 * callers pass the status on.
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

/** Bytes of the longest error text, including the final zero. */
#define TRAIN_ERROR_MAX 4096

/** Sets this thread's error text and returns @p status. */
ring_status train_fail(ring_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Fails because the folder @p path could not be opened, for the reason in errno. */
ring_status train_folder_fail(const char *path);

/** Returns the result of a libring call on @p comm; if it failed, sets its error text. */
ring_status train_ring(const ring_comm *comm, ring_status status);

/** @return this thread's latest error text; "" if there was no error. */
const char *train_error(void);

/** Marks this thread's latest error text as shared: all ranks have it, so that only one of them
 * needs to print it. The next train_fail() clears the mark. */
void train_error_share(void);
bool train_error_is_shared(void);

/** A failure that is kept until it can be reported to all ranks. */
typedef struct train_failure {
    ring_status status; /* RING_OK: there was no failure */
    char text[TRAIN_ERROR_MAX];
} train_failure;

/** Keeps @p status and this thread's error text, if @p status is the first failure. */
void train_failure_keep(train_failure *failure, ring_status status);

/** Sets this thread's error text to that of the failure, if there was one.
 *  @return the status of the failure. */
ring_status train_failure_tell(const train_failure *failure);

/** Allocates @p bytes (rounded up) of zeroed memory that is aligned for SIMD, to be free()d.
 *  @param what  names the data in messages. @return RING_OK or RING_ERR_MEMORY. */
ring_status train_alloc(void **out, size_t bytes, const char *what);

#endif
