/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the casts of one level between float32 and the floats of 16 and 8 bits. They work on
 * whole vectors; a single element is cast as the first element of a vector. The float16 casts
 * return exactly the bits of the F16C instructions: a NaN becomes quiet, and keeps its sign and
 * leading payload bits. */

#define VECTOR_OF(type, bytes) \
    type __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias))
typedef VECTOR_OF(float, LEVEL_BYTES) floats;
typedef VECTOR_OF(int32_t, LEVEL_BYTES) words;
typedef VECTOR_OF(uint32_t, LEVEL_BYTES) unsigned_words;
typedef VECTOR_OF(uint16_t, LEVEL_BYTES / 2) halves;
typedef VECTOR_OF(uint8_t, LEVEL_BYTES / 4) quarters;

enum { FLOATS = LEVEL_BYTES / sizeof(float) };

static ALWAYS_INLINE words pick_words(words mask, words a, words b)
{
    return (mask & a) | (~mask & b);
}

static ALWAYS_INLINE words widen_bits(halves x)
{
#ifdef LEVEL_U16_WIDEN
    return LEVEL_U16_WIDEN(x);
#else
    return __builtin_convertvector(x, words);
#endif
}

static ALWAYS_INLINE floats f16_widen(halves x)
{
#ifdef LEVEL_F16_WIDEN
    return LEVEL_F16_WIDEN(x);
#else
    const words bits = widen_bits(x), magnitude = bits & 0x7fff;
    const words normal = (magnitude << 13) + (112 << 23); /* 112: exponent biases, 127 - 15 */
    const words subnormal = (words)(__builtin_convertvector(magnitude, floats) * 0x1p-24f);
    const words special = 0x7f800000 | magnitude << 13 | ((magnitude > 0x7c00) & 0x400000);
    const words finite = pick_words(magnitude < 0x400, subnormal, normal);
    return (floats)(pick_words(magnitude < 0x7c00, finite, special) | (bits & 0x8000) << 16);
#endif
}

static ALWAYS_INLINE halves f16_narrow(floats x)
{
#ifdef LEVEL_F16_NARROW
    return LEVEL_F16_NARROW(x);
#else
    const words bits = (words)x, magnitude = bits & 0x7fffffff;
    const words infinite = (words){0} + 0x47800000; /* 2^16 */
    const words bounded = pick_words(magnitude < infinite, magnitude, infinite);
    const words normal = (bounded - (112 << 23) + 0xfff + (bounded >> 13 & 1)) >> 13;
    /* Below 2^-14, adding 0.5 rounds to a multiple of 2^-24. */
    const words subnormal = (words)((floats)magnitude + 0.5f) - 0x3f000000;
    const words nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    const words finite = pick_words(magnitude < 0x38800000, subnormal, normal);
    const words half = pick_words(magnitude > 0x7f800000, nan, finite) | (bits >> 16 & 0x8000);
    return __builtin_convertvector(half, halves);
#endif
}

/* Keeps a signalling NaN; quiet() makes it quiet. */
static ALWAYS_INLINE floats bf16_widen(halves x)
{
    return (floats)(widen_bits(x) << 16);
}

static ALWAYS_INLINE floats quiet(floats x)
{
    return (floats)((words)x | ((x != x) & 0x400000));
}

/* Sets all bits of a NaN, which costs only one operation. */
static ALWAYS_INLINE halves bf16_narrow(floats x)
{
    const unsigned_words bits = (unsigned_words)x;
    const unsigned_words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return __builtin_convertvector((words)rounded | (x != x), halves);
}

/* ---- The 8-bit formats of the Open Compute Project ---- */

/* E4M3 has 4 bits of exponent, of which -6 is the smallest, and 3 bits of mantissa. It has no
 * infinity, and one NaN of each sign. */
static ALWAYS_INLINE floats e4m3_widen(quarters x)
{
    const words bits = __builtin_convertvector(x, words), magnitude = bits & 0x7f;
    const words normal = (magnitude << 20) + (120 << 23); /* 120: exponent biases, 127 - 7 */
    const words subnormal = (words)(__builtin_convertvector(magnitude, floats) * 0x1p-9f);
    const words finite = pick_words(magnitude < 8, subnormal, normal);
    return (floats)(pick_words(magnitude == 0x7f, (words){0} + 0x7fc00000, finite) | (bits & 0x80)
                                                                                         << 24);
}

static ALWAYS_INLINE quarters e4m3_narrow(floats x)
{
    const words bits = (words)x, magnitude = bits & 0x7fffffff;
    const words largest = (words){0} + 0x43e00000; /* 448 */
    const words bounded = pick_words(magnitude < largest, magnitude, largest);
    const words normal = (bounded - (120 << 23) + 0x7ffff + (bounded >> 20 & 1)) >> 20;
    /* Below 2^-6, adding 2^14 rounds to a multiple of 2^-9. */
    const words subnormal = (words)((floats)magnitude + 0x1p14f) - 0x46800000;
    const words finite = pick_words(magnitude < 0x3c800000, subnormal, normal);
    const words quarter = pick_words(magnitude > 0x7f800000, (words){0} + 0x7f, finite);
    return __builtin_convertvector(quarter | (bits >> 24 & 0x80), quarters);
}

/* E5M2 is the upper byte of a float16. */
static ALWAYS_INLINE floats e5m2_widen(quarters x)
{
    return f16_widen(__builtin_convertvector(x, halves) << 8);
}

static ALWAYS_INLINE quarters e5m2_narrow(floats x)
{
    const words bits = (words)x, magnitude = bits & 0x7fffffff;
    const words largest = (words){0} + 0x47600000; /* 57344 */
    const words bounded = pick_words(magnitude < largest, magnitude, largest);
    const words normal = (bounded - (112 << 23) + 0xfffff + (bounded >> 21 & 1)) >> 21;
    /* Below 2^-14, adding 2^7 rounds to a multiple of 2^-16. */
    const words subnormal = (words)((floats)magnitude + 0x1p7f) - 0x43000000;
    const words finite = pick_words(magnitude < 0x38800000, subnormal, normal);
    const words quarter = pick_words(magnitude > 0x7f800000, (words){0} + 0x7f, finite);
    return __builtin_convertvector(quarter | (bits >> 24 & 0x80), quarters);
}

/* ---- Arrays: dst (count) = src (count), in whole vectors, then the rest one by one ---- */

static void f16_to_f32(float *dst, const uint16_t *src, size_t count)
{
    size_t i = 0;
    for (; count - i >= FLOATS; i += FLOATS)
        *(floats *)(dst + i) = f16_widen(*(const halves *)(src + i));
    for (; i < count; i++)
        dst[i] = f16_widen((halves){src[i]})[0];
}

static void f32_to_f16(uint16_t *dst, const float *src, size_t count)
{
    size_t i = 0;
    for (; count - i >= FLOATS; i += FLOATS)
        *(halves *)(dst + i) = f16_narrow(*(const floats *)(src + i));
    for (; i < count; i++)
        dst[i] = f16_narrow((floats){src[i]})[0];
}

static void bf16_to_f32(float *dst, const uint16_t *src, size_t count)
{
    size_t i = 0;
    for (; count - i >= FLOATS; i += FLOATS)
        *(floats *)(dst + i) = quiet(bf16_widen(*(const halves *)(src + i)));
    for (; i < count; i++)
        dst[i] = quiet(bf16_widen((halves){src[i]}))[0];
}

static void f32_to_bf16(uint16_t *dst, const float *src, size_t count)
{
    size_t i = 0;
    for (; count - i >= FLOATS; i += FLOATS)
        *(halves *)(dst + i) = bf16_narrow(*(const floats *)(src + i));
    for (; i < count; i++)
        dst[i] = bf16_narrow((floats){src[i]})[0];
}

/* Multiplies by 1/255, which is split into two parts. The product with the first part is exact, and
 * the product with the second is far below the last bit of the sum. So the sum is the quotient,
 * rounded once, without a division. */
static void bytes_to_unit(float *restrict dst, const uint8_t *restrict src, size_t count)
{
    const float high = 257.0f / 65536, low = (float)(257.0 / 65536 / 65535);
    for (size_t i = 0; i < count; i++) {
        const float x = src[i];
        dst[i] = x * high + x * low;
    }
}
