/* SPDX-License-Identifier: Apache-2.0
 * planted: the argument of kernels with mistakes. C and C++. */
#ifndef TEST_PLANTED_H
#define TEST_PLANTED_H

#include <stdint.h>

enum { PLANTED_THREADS = 32 };

typedef struct planted_args {
    uint32_t *words; /* [count] */
    uint32_t count;
} planted_args;

#endif
