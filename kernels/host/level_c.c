/* SPDX-License-Identifier: Apache-2.0
 * Builds the reference level, with only the instructions that every CPU of the target
 * architecture has. */
#define LEVEL_TABLE kernel_table_c
#define LEVEL_BYTES 16
#define LEVEL_STREAM(to, vector) (*(to) = (vector))
#define LEVEL_FENCE() ((void)0)
#include "level.h"
