/* SPDX-License-Identifier: Apache-2.0
 * Builds the kernels for CPUs with AVX2 and F16C, with vectors of 32 bytes. */
#include <immintrin.h>

#define LEVEL_TABLE kernel_table_avx2
#define LEVEL_BYTES 32
#define LEVEL_STREAM(to, vector) _mm256_stream_si256((__m256i *)(void *)(to), (__m256i)(vector))
#define LEVEL_FENCE() _mm_sfence()
#define LEVEL_U16_WIDEN(x) (words) _mm256_cvtepu16_epi32((__m128i)(x))
#define LEVEL_F16_WIDEN(x) (floats) _mm256_cvtph_ps((__m128i)(x))
#define LEVEL_F16_NARROW(x) (halves) _mm256_cvtps_ph((__m256)(x), _MM_FROUND_TO_NEAREST_INT)
#include "level.h"
