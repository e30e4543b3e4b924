/* SPDX-License-Identifier: Apache-2.0
 *
 * device: defines the language in which GPU kernels are written. nvcc compiles them for GPUs, and a
 * C++ compiler compiles the same source for an emulation in tests, where a block is a thread of the
 * operating system and the threads of a block are fibers.
 *
 * A kernel has one parameter, a struct. Grids and blocks have one dimension. Types may be punned
 * only by memcpy().
 */
#ifndef RING_CUDA_DEVICE_H
#define RING_CUDA_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** 16 bytes, the widest access of a thread. */
struct alignas(16) device_16 {
    uint32_t words[4];
};

#ifdef __CUDACC__

#define DEVICE static __device__ __forceinline__
/** Declares memory that the threads of a block share, inside a function. */
#define SHARED __shared__
/** Unroll all rounds, or none, of the next loop. */
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
/** KERNEL(name, type of the arguments) { body } defines a kernel, whose arguments are `args`. */
#define KERNEL(name, type) extern "C" __global__ void name(const __grid_constant__ type args)
/** Defines a kernel for blocks of at most @p threads threads, of which a multiprocessor must be
 * able to run at least @p blocks at once. */
#define KERNEL_BOUND(name, type, threads, blocks) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) \
        name(const __grid_constant__ type args)

DEVICE unsigned thread_index(void)
{
    return threadIdx.x;
}

DEVICE unsigned thread_count(void)
{
    return blockDim.x;
}

DEVICE unsigned block_index(void)
{
    return blockIdx.x;
}

DEVICE unsigned block_count(void)
{
    return gridDim.x;
}

/** Waits for all threads of the block; their earlier writes are visible afterwards. */
DEVICE void block_barrier(void)
{
    __syncthreads();
}

/** The same. @return true in all threads if @p mine is true in one of them. */
DEVICE bool block_any(bool mine)
{
    return __syncthreads_or(mine);
}

/** Lets other threads run while this one polls a word. */
DEVICE void device_pause(void)
{
    __nanosleep(40);
}

/** Ends the kernel with a failure. */
DEVICE void device_trap(void)
{
    __trap();
}

DEVICE uint64_t device_nanoseconds(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/** Access a word that other blocks, other GPUs and the host may access at the same time. */
DEVICE uint64_t load_acquire(const uint64_t *word)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

DEVICE void store_release(uint64_t *word, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

DEVICE void store_release(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

DEVICE uint64_t load_relaxed(const uint64_t *word)
{
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

DEVICE void store_relaxed(uint64_t *word, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

DEVICE uint64_t add_release(uint64_t *word, uint64_t value)
{
    uint64_t before;
    asm volatile("atom.add.release.sys.global.u64 %0, [%1], %2;"
                 : "=l"(before)
                 : "l"(word), "l"(value)
                 : "memory");
    return before;
}

/** Promises the compiler that @p at points to global memory, which it cannot know of a pointer that
 *  was loaded from memory. @p at must be aligned to its type. */
template <class Pointer> DEVICE Pointer assume_global(Pointer at)
{
    __builtin_assume(__isGlobal(at));
    return at;
}

/** @p at must point to global memory and be aligned to 16 bytes. */
DEVICE device_16 load_16(const void *at)
{
    const uint4 v = *(const uint4 *)assume_global(at);
    return device_16{{v.x, v.y, v.z, v.w}};
}

/* Written in assembly, because the compiler may split a plain store whose parts it can see. */
DEVICE void store_16(void *at, device_16 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(at)), "r"(v.words[0]), "r"(v.words[1]),
                   "r"(v.words[2]), "r"(v.words[3])
                 : "memory");
}

/** Convert between float and the bits of a float16, rounded to nearest even. */
DEVICE float device_from_half(uint16_t bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

DEVICE uint16_t device_to_half(float value)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

#else
#include "emulated_device.h"
#endif

/** All threads of a block of THREADS threads, a power of two, call this. @return the sum of their
 *  values, to each of them. In each round, thread t adds the sum of thread t + reach, and the reach
 *  is halved. */
template <unsigned THREADS, class Number> DEVICE Number block_sum(Number mine)
{
    SHARED Number sums[THREADS];
    const unsigned t = thread_index();
    sums[t] = mine;
    block_barrier();
    for (unsigned reach = THREADS / 2; reach > 0; reach /= 2) {
        if (t < reach)
            sums[t] += sums[t + reach];
        block_barrier();
    }
    const Number sum = sums[0];
    block_barrier(); /* before the next call writes to sums */
    return sum;
}

/** All threads of a block of THREADS threads call this. @return the sum of @p values [count], to
 * each of them: thread t adds up the values t, t + THREADS, …, and then the threads are added. */
template <unsigned THREADS> DEVICE double block_sum_of(const double *values, uint64_t count)
{
    double mine = 0;
    for (uint64_t i = thread_index(); i < count; i += THREADS)
        mine += values[i];
    return block_sum<THREADS>(mine);
}

/** @return the value of another type of the same size that has the same bits. */
template <class To, class From> DEVICE To device_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "of the same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

#endif
