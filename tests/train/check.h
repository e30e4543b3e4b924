/* SPDX-License-Identifier: Apache-2.0
 * cmocka, and comparing numbers with PyTorch's. */
#ifndef TESTS_TRAIN_CHECK_H
#define TESTS_TRAIN_CHECK_H

#include <math.h>

#include "unit_test.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* |got - want| <= relative * |want| + absolute; NaN is never near. */
#define assert_near(got, want, relative, absolute) \
    do { \
        const double near_got = (double)(got), near_want = (double)(want); \
        if (!(fabs(near_got - near_want) <= (relative)*fabs(near_want) + (absolute))) \
            fail_msg("%s: got %.9g, want %.9g", #got, near_got, near_want); \
    } while (0)

static inline uint64_t fnv1a(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3U;
    return hash;
}

#endif
