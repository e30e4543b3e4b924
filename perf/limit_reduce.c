/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_reduce: measures the fastest possible all-reduce of two ranks on shared buffers: each
 * thread adds its half of both buffers and writes the sum to both, and the threads meet once.
 *
 * The buffers are an odd number of pages apart. If their distance is a power of two (`aliased`),
 * they alias in the caches of some CPUs, and the same loop is several times slower.
 */
#include "limit.h"
#include "stopwatch.h"

#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096

typedef struct reduction {
    limit_meeting meeting;
    float *buffers[2];
    double *times[2];
    size_t count;
    int iters, warmup;
    bool gate;
} reduction;

/* ---- The sum ---- */

#define ADD_LOOP \
    for (size_t i = 0; i < count; i++) { \
        const float sum = a[i] + b[i]; \
        a[i] = sum; \
        b[i] = sum; \
    }

static void add_plain(float *restrict a, float *restrict b, size_t count)
{
    ADD_LOOP
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(float *restrict a, float *restrict b,
                                                     size_t count)
{
    ADD_LOOP
}

#if defined(__clang__) /* uses the widest vectors by default */
#define AVX512 "avx512f"
#else
#define AVX512 "avx512f,prefer-vector-width=512"
#endif

__attribute__((target(AVX512))) static void add_avx512(float *restrict a, float *restrict b,
                                                       size_t count)
{
    ADD_LOOP
}
#endif

static void add_both(float *a, float *b, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        add_avx512(a, b, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(a, b, count);
        return;
    }
#endif
    add_plain(a, b, count);
}

/* ---- The two threads ---- */

/* The halves meet at the end of a cache line (16 floats), so that no line is written by both
 * sides. */
static void reduce_side(int side, void *arg)
{
    reduction *r = arg;
    const size_t half = (r->count / 2 + 15) / 16 * 16, split = half < r->count ? half : r->count;
    const size_t from = side == 0 ? 0 : split, to = side == 0 ? split : r->count;
    for (int i = -r->warmup; i < r->iters; i++) {
        stopwatch_rewrite(r->buffers[side], r->count, (unsigned)(i + side));
        limit_meet(&r->meeting, side);
        if (r->gate)
            stopwatch_gate();
        const double start = stopwatch_us();
        add_both(r->buffers[0] + from, r->buffers[1] + from, to - from);
        limit_meet(&r->meeting, side);
        if (i >= 0)
            r->times[side][i] = stopwatch_us() - start;
    }
}

/* @return the distance of the buffers in bytes. CPUs guess the cache way from a hash of the lower
 * bits of an address. A distance of 2^28 or a larger power of two leaves all these bits equal. */
static size_t distance(size_t bytes, bool aliased)
{
    size_t power = (size_t)1 << 28;
    while (power < bytes)
        power *= 2;
    return aliased ? power : power + PAGE;
}

static bool open_reduction(reduction *r, size_t apart, size_t total)
{
    char *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    r->times[0] = calloc((size_t)r->iters, sizeof(double));
    r->times[1] = calloc((size_t)r->iters, sizeof(double));
    r->buffers[0] = base == MAP_FAILED ? NULL : (void *)base;
    r->buffers[1] = base == MAP_FAILED ? NULL : (void *)(base + apart);
    return r->buffers[0] && r->times[0] && r->times[1];
}

double limit_all_reduce(size_t bytes, int iters, int warmup, bool aliased, limit_cores cores)
{
    const size_t apart = distance(bytes, aliased), total = apart + bytes + PAGE;
    reduction r = {.count = bytes / sizeof(float),
                   .iters = iters,
                   .warmup = warmup,
                   .gate = cores.first != cores.second};
    double us = -1;
    if (!open_reduction(&r, apart, total)) {
        fprintf(stderr, "ringlimit: not enough memory for two buffers of %zu bytes\n", bytes);
    } else if (limit_run_pair(reduce_side, &r, cores)) {
        for (int i = 0; i < iters; i++) /* the slower side's time counts */
            if (r.times[1][i] > r.times[0][i])
                r.times[0][i] = r.times[1][i];
        us = stopwatch_median(r.times[0], (size_t)iters);
    }
    if (r.buffers[0])
        munmap(r.buffers[0], total);
    free(r.times[0]);
    free(r.times[1]);
    return us;
}
