/* SPDX-License-Identifier: Apache-2.0
 * Their bodies. */
#include "sample_kernels.h"

#include "emulated_kernel.h"
#include "fake_cuda.h"

static void add(const void *args)
{
    const sample_add *a = args;
    for (uint32_t i = 0; i < a->count; i++)
        __atomic_fetch_add(&a->words[i], a->value, __ATOMIC_SEQ_CST);
}

static void meet(const void *args)
{
    const sample_meet *a = args;
    __atomic_fetch_add(a->here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(a->there, __ATOMIC_SEQ_CST) < a->wanted)
        fiber_pause();
}

static void touch(const void *args)
{
    const sample_touch *a = args;
    if (a->is_checked != 0)
        fake_cuda_check(a->at, sizeof *a->at);
    *(volatile uint32_t *)a->at = 1;
}

static void trap(const void *args)
{
    emulated_trap();
}

__attribute__((constructor)) static void register_all(void)
{
    static emulated_kernel kernels[] = {
        {.name = "sample_add", .body = add, .args_bytes = sizeof(sample_add)},
        {.name = "sample_meet", .body = meet, .args_bytes = sizeof(sample_meet)},
        {.name = "sample_touch", .body = touch, .args_bytes = sizeof(sample_touch)},
        {.name = "sample_trap", .body = trap, .args_bytes = sizeof(sample_trap)}};
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++)
        emulated_kernel_register(&kernels[i]);
}
