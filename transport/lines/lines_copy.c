/* SPDX-License-Identifier: Apache-2.0
 * Copies payloads either with plain stores or with stores that bypass the caches, and times some of
 * the plain copies to choose between the two. */
#include "lines_copy.h"

#include "base.h"

#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
    TIMED_OF = 4,        /* one of this many plain copies is timed                               */
    SLOW_IN_A_ROW = 3,   /* slow copies before streaming; a single one may have been interrupted */
    STREAMED_LEAST = 64, /* streamed copies before a plain one is timed again                    */
    STORE_BUFFERS = 2048 /* bytes that may still be in the core's store buffers when a timed copy
                            ends; they are not counted */
};
/* A plain copy below this rate is slow. Measured on Zen 4: 2.5e9 between cores that share no cache,
 * 7e9 and more between others. */
static const double slow_bytes_per_s = 4e9;
/* Least time in seconds between two timed plain copies of a producer that streams: each takes as
 * long as ten streamed copies. */
static const double try_again_after = 0.02;

#if defined(__x86_64__)
enum { CAN_STREAM = 1 };

/* Copies with stores that bypass the caches. @param bytes  a multiple of the line size. */
static void stream(void *to, const void *from, size_t bytes)
{
    __m128i *out = to;
    const __m128i *in = from, *const end = in + bytes / sizeof *in;
    for (; in < end; in += 4, out += 4) {
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence(); /* orders these stores before the header that publishes them */
}
#else
enum { CAN_STREAM = 0 };

static void stream(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

void lines_copier_note(lines_copier *c, size_t bytes, double seconds, double now)
{
    const bool slow = (double)(bytes - STORE_BUFFERS) < slow_bytes_per_s * seconds;
    c->slow = slow ? c->slow + 1 : 0;
    c->streams = c->slow >= SLOW_IN_A_ROW || (slow && c->streams);
    c->count = 0;
    c->tried = now;
}

/* Called for each copy of a producer that streams. @return true if it must time a plain copy. */
static bool tries_again(lines_copier *c)
{
    if (++c->count < STREAMED_LEAST)
        return false;
    c->count = 0;
    return clock_now() - c->tried >= try_again_after;
}

void lines_copy(lines_copier *c, void *to, const void *from, size_t bytes)
{
    const size_t whole = bytes & ~(size_t)(RING_CACHE_LINE - 1);
    if (!CAN_STREAM || bytes < LINES_STREAM_LEAST) {
        memcpy(to, from, bytes);
    } else if (c->streams && !tries_again(c)) {
        stream(to, from, whole);
        memcpy((char *)to + whole, (const char *)from + whole, bytes - whole);
    } else if (c->streams || c->slow > 0 || ++c->count >= TIMED_OF) {
        const double start = clock_now();
        memcpy(to, from, bytes);
        const double end = clock_now();
        lines_copier_note(c, bytes, end - start, end);
    } else {
        memcpy(to, from, bytes);
    }
}
