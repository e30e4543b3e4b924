/* SPDX-License-Identifier: Apache-2.0
 *
 * far: memory that only an accelerator reaches. Its addresses are reserved without access, so that
 * any load or store of the host faults; the accelerator is a thread that sees the same pages
 * elsewhere. It does what it is asked in order, and late.
 */
#ifndef TEST_DOUBLES_FAR_H
#define TEST_DOUBLES_FAR_H

#include <stddef.h>

#define FAR_API __attribute__((visibility("default")))

/** Registered with the library. Ends the process if there is none. */
FAR_API void *far_alloc(size_t bytes);
/** Of another accelerator. */
FAR_API void *far_alloc_elsewhere(size_t bytes);
FAR_API void far_free(void *memory);
/** What lies there, for tests. */
FAR_API void far_write(void *memory, const void *from, size_t bytes);
FAR_API void far_read(void *to, const void *memory, size_t bytes);

/** From now on every fold comes so much later. */
FAR_API void far_delay(double seconds);

#endif
