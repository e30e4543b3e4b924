/* SPDX-License-Identifier: Apache-2.0
 * sample_kernels: kernels for tests of the double itself, of one thread a block. */
#ifndef TEST_DOUBLES_SAMPLE_KERNELS_H
#define TEST_DOUBLES_SAMPLE_KERNELS_H

#include <stdint.h>

/** "sample_add": each block adds @c value to @c words[0 .. count - 1], atomically. */
typedef struct sample_add {
    uint32_t *words, count, value;
} sample_add;

/** "sample_meet": each block adds one to @c here, and waits until @c there is at least @c wanted.
 */
typedef struct sample_meet {
    uint32_t *here;
    const uint32_t *there;
    uint32_t wanted;
} sample_meet;

/** "sample_touch": stores one at @c at; if @c is_checked, past fake_cuda_check(). */
typedef struct sample_touch {
    uint32_t *at, is_checked;
} sample_touch;

/** "sample_trap" fails. */
typedef struct sample_trap {
    uint32_t unused;
} sample_trap;

#endif
