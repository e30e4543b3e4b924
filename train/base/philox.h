/* SPDX-License-Identifier: Apache-2.0
 *
 * philox: computes random bits as a pure function of a counter and a key (Philox4x32-10; Salmon,
 * Moraes, Dror and Shaw, 2011). The same counter gives the same bits, on any rank and at any time.
 */
#ifndef TRAIN_PHILOX_H
#define TRAIN_PHILOX_H

#include <stdint.h>

/** Computes random bits. @param[out] bits  four random words, a function of @p counter and @p key.
 */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t bits[4]);

#endif
