/* SPDX-License-Identifier: Apache-2.0
 * The reference level: no instruction beyond what the compiler may always use. */
#define LEVEL_TABLE kernel_table_c
#define LEVEL_BYTES 16
#define LEVEL_STREAM(to, lanes) (*(to) = (lanes))
#define LEVEL_FENCE() ((void)0)
#include "level.h"
