/* SPDX-License-Identifier: Apache-2.0
 * Calls of ring/train.h that go well, or are refused with a text. */
#ifndef TESTS_TRAIN_LIBRARY_CALLS_H
#define TESTS_TRAIN_LIBRARY_CALLS_H

#include <ring/train.h>
#include <string.h>

#include "check.h"

#define must(call) \
    do { \
        if ((call) != RING_OK) \
            fail_msg("%s: %s", #call, ring_train_error()); \
    } while (0)

/* Refused, with that text. */
#define refused(call, status, text) \
    do { \
        assert_int_equal(call, status); \
        if (strstr(ring_train_error(), text) == NULL) \
            fail_msg("%s: no \"%s\" in: %s", #call, text, ring_train_error()); \
    } while (0)

static inline ring_train_info info_of(const ring_train *engine)
{
    ring_train_info info = {.size = sizeof info};
    ring_train_get_info(engine, &info);
    return info;
}

#endif
