/* SPDX-License-Identifier: Apache-2.0
 *
 * try: defines RING_TRY() for this folder, which does not include the library's internal headers.
 */
#ifndef PERF_TRY_H
#define PERF_TRY_H

#include <ring/ring.h>

/** Returns the status of @p expr to the caller unless it is RING_OK. */
#define RING_TRY(expr) \
    do { \
        const ring_status try_status = (expr); \
        if (try_status != RING_OK) \
            return try_status; \
    } while (0)

#endif
