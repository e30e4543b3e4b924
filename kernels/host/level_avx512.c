/* SPDX-License-Identifier: Apache-2.0
 * Builds the kernels for CPUs with AVX-512 (F, BW, DQ, VL) and F16C, with vectors of 64 bytes. */
#include <immintrin.h>

#define LEVEL_TABLE kernel_table_avx512
#define LEVEL_BYTES 64
#define LEVEL_STREAM(to, vector) _mm512_stream_si512((__m512i *)(void *)(to), (__m512i)(vector))
#define LEVEL_FENCE() _mm_sfence()
#define LEVEL_U16_WIDEN(x) (words) _mm512_cvtepu16_epi32((__m256i)(x))
#define LEVEL_F16_WIDEN(x) (floats) _mm512_cvtph_ps((__m256i)(x))
#define LEVEL_F16_NARROW(x) (halves) _mm512_cvtps_ph((__m512)(x), _MM_FROUND_TO_NEAREST_INT)
#include "level.h"
