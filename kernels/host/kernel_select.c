/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the SIMD levels of this build, and chooses one of them. The choice is one atomic pointer,
 * so any thread may make or read it. */
#include "kernel_table.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef KERNELS_X86
#include <cpuid.h>
#endif

typedef struct simd_level {
    const char *name;
    const kernel_table *table;
    bool (*present)(void);
} simd_level;

static bool always(void)
{
    return true;
}

#ifdef KERNELS_X86

/* Uses the CPUID instruction for F16C, because Clang's __builtin_cpu_supports() does not accept
 * "f16c". */
static bool has_avx2(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

/* All levels, from the best to the reference. */
static const simd_level levels[] = {
#ifdef KERNELS_X86
    {"avx512", &kernel_table_avx512, has_avx512},
    {"avx2", &kernel_table_avx2, has_avx2},
#endif
    {"c", &kernel_table_c, always},
};

static _Atomic(const simd_level *) chosen;

static const simd_level *find_level(const char *name)
{
    const bool any = strcmp(name, "auto") == 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if ((any || strcmp(name, levels[i].name) == 0) && levels[i].present())
            return &levels[i];
    return NULL;
}

/* Chooses the level at the first use of a kernel. The kernel cannot return an error to its caller,
 * so an unusable RING_SIMD is reported on stderr. */
static const simd_level *choose_first(void)
{
    const char *set = getenv("RING_SIMD"), *name = set && *set ? set : NULL;
    const simd_level *wanted = name ? find_level(name) : NULL;
    const simd_level *level = wanted ? wanted : find_level("auto"), *before = NULL;
    if (!atomic_compare_exchange_strong(&chosen, &before, level))
        return before;
    if (name && !wanted)
        fprintf(stderr,
                "[ring] RING_SIMD=%s is unknown or not supported by this CPU; using %s instead\n",
                name, level->name);
    return level;
}

static const simd_level *level_in_use(void)
{
    const simd_level *level = atomic_load_explicit(&chosen, memory_order_acquire);
    return level ? level : choose_first();
}

bool kernels_select(const char *level)
{
    const simd_level *found = find_level(level);
    if (found)
        atomic_store(&chosen, found);
    return found != NULL;
}

const char *kernels_level(void)
{
    return level_in_use()->name;
}

const kernel_table *kernel_table_in_use(void)
{
    return level_in_use()->table;
}
