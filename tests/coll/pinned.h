/* SPDX-License-Identifier: Apache-2.0
 * Questions of tests to the double of libibverbs about registered memory. Over other transports it
 * is not loaded. */
#ifndef RING_TEST_PINNED_H
#define RING_TEST_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** fake_ibverbs_pages_go(), where the double is loaded: to be called before memory goes. */
void pinned_pages_go(const void *memory, size_t bytes);

typedef struct pinned_counts {
    uint64_t made;                 /* registrations, since the process began */
    uint64_t registrations, bytes; /* now */
    uint64_t reads;                /* of peers' memory */
} pinned_counts;
/** Zero where the double is not loaded. */
pinned_counts pinned_count(void);

/** @return false: libring cannot notice the end of memory here; prints why. */
bool pinned_is_watched(void);

#endif
