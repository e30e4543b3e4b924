/* SPDX-License-Identifier: Apache-2.0
 *
 * emulated_device: the other half of kernels/cuda/device.h, for a C++ compiler. */
#ifndef TEST_DOUBLES_EMULATED_DEVICE_H
#define TEST_DOUBLES_EMULATED_DEVICE_H

#include "emulated_kernel.h"

#define DEVICE static inline
#define SHARED static thread_local /* a block is a thread of the system */
#define UNROLL
#define NO_UNROLL

#define KERNEL(name, type) \
    static void name(const type &args); \
    static void name##_body(const void *args) \
    { \
        name(*static_cast<const type *>(args)); \
    } \
    static emulated_kernel name##_entry = {#name, name##_body, sizeof(type), 0, nullptr}; \
    __attribute__((constructor)) static void name##_enter() \
    { \
        emulated_kernel_register(&name##_entry); \
    } \
    static void name(const type &args)
#define KERNEL_BOUND(name, type, threads, blocks) KERNEL(name, type)

DEVICE unsigned thread_index(void)
{
    return fiber_thread_index();
}

DEVICE unsigned thread_count(void)
{
    return fiber_thread_count();
}

DEVICE unsigned block_index(void)
{
    return fiber_block_index();
}

DEVICE unsigned block_count(void)
{
    return fiber_block_count();
}

DEVICE void block_barrier(void)
{
    fiber_barrier();
}

DEVICE bool block_any(bool mine)
{
    return fiber_any(mine);
}

DEVICE void device_pause(void)
{
    fiber_pause();
}

DEVICE void device_trap(void)
{
    emulated_trap();
}

DEVICE uint64_t device_nanoseconds(void)
{
    return fiber_nanoseconds();
}

DEVICE uint64_t load_acquire(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* A test weakens it, to see that it is missed. */
#ifdef EMULATED_RELEASE_IS_RELAXED
#define EMULATED_RELEASE __ATOMIC_RELAXED
#else
#define EMULATED_RELEASE __ATOMIC_RELEASE
#endif

DEVICE void store_release(uint64_t *word, uint64_t value)
{
    fiber_delay();
    fiber_count_release();
    __atomic_store_n(word, value, EMULATED_RELEASE);
}

DEVICE void store_release(uint32_t *word, uint32_t value)
{
    fiber_delay();
    fiber_count_release();
    __atomic_store_n(word, value, EMULATED_RELEASE);
}

DEVICE uint64_t load_relaxed(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

DEVICE void store_relaxed(uint64_t *word, uint64_t value)
{
    fiber_delay();
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

DEVICE uint64_t add_release(uint64_t *word, uint64_t value)
{
    fiber_count_release();
    return __atomic_fetch_add(word, value, EMULATED_RELEASE);
}

template <class Type> DEVICE Type *assume_global(Type *at)
{
    emulated_check_aligned(at, alignof(Type));
    return at;
}

DEVICE device_16 load_16(const void *at)
{
    device_16 v;
    emulated_check_aligned(at, sizeof v);
    memcpy(&v, at, sizeof v);
    return v;
}

DEVICE void store_16(void *at, device_16 v)
{
    emulated_check_aligned(at, sizeof v);
    memcpy(at, &v, sizeof v);
}

/* Plain C: emulated_half.cpp, compiled for what every processor has. */
DEVICE float device_from_half(uint16_t bits)
{
    return emulated_from_half(bits);
}

DEVICE uint16_t device_to_half(float value)
{
    return emulated_to_half(value);
}

#endif
