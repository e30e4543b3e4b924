/* SPDX-License-Identifier: Apache-2.0
 * mutate: inputs that are nearly right. */
#ifndef TEST_FUZZ_MUTATE_H
#define TEST_FUZZ_MUTATE_H

#include "fuzz.h"

/** Input number @p number of @p target: one of its seeds, as it is or mutated.
 *  @param[out] out  [target->most]. @return its bytes. */
size_t mutate(const fuzz_target *target, const fuzz_seeds *seeds, uint64_t seed, uint64_t number,
              unsigned char *out);

#endif
