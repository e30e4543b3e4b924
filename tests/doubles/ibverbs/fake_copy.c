/* SPDX-License-Identifier: Apache-2.0
 * How the adapter reads and writes memory. A program may look at a word that it waits for while the
 * adapter writes it, so words are stored atomically, and by release: what the adapter wrote before
 * is seen by who has seen the word. */
#include "fake.h"

#include <string.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

/* Longer copies make no releases, slow under the thread sanitizer: no word in them is polled. */
enum { RELEASED = 512, WORD = 8 };

/* The sanitizer knows words by their addresses: one of half the size has another. */
static void tell_halves(void *word, bool stores)
{
#ifdef __SANITIZE_THREAD__
    char *half = (char *)word + WORD / 2;
    if (stores)
        __tsan_release(half);
    else
        __tsan_acquire(half);
#else
#endif
}

#define LOAD(type, from) __atomic_load_n((const type *)(const void *)(from), __ATOMIC_ACQUIRE)
#define STORE(type, to, word) __atomic_store_n((type *)(void *)(to), (type)(word), __ATOMIC_RELEASE)

static uint64_t load(const char *from, size_t bytes)
{
    uint64_t word = 0;
    if ((uintptr_t)from % bytes != 0) {
        memcpy(&word, from, bytes);
    } else if (bytes == 8) {
        word = LOAD(uint64_t, from);
        tell_halves((void *)(uintptr_t)from, false);
    } else if (bytes == 4) {
        const uint32_t w = LOAD(uint32_t, from);
        memcpy(&word, &w, sizeof w);
    } else if (bytes == 2) {
        const uint16_t w = LOAD(uint16_t, from);
        memcpy(&word, &w, sizeof w);
    } else {
        const uint8_t w = LOAD(uint8_t, from);
        memcpy(&word, &w, sizeof w);
    }
    return word;
}

/* The first bytes of the word; @p to is aligned. */
static void store(char *to, uint64_t word, size_t bytes)
{
    uint32_t four;
    uint16_t two;
    uint8_t one;
    memcpy(&four, &word, sizeof four);
    memcpy(&two, &word, sizeof two);
    memcpy(&one, &word, sizeof one);
    if (bytes == 8) {
        tell_halves(to, true);
        STORE(uint64_t, to, word);
    } else if (bytes == 4) {
        STORE(uint32_t, to, four);
    } else if (bytes == 2) {
        STORE(uint16_t, to, two);
    } else {
        STORE(uint8_t, to, one);
    }
}

static size_t step_at(const char *to, size_t bytes)
{
    size_t step = WORD;
    while (step > bytes || (uintptr_t)to % step != 0)
        step /= 2;
    return step;
}

static void copy_small(char *to, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const size_t step = step_at(to, bytes);
        store(to, load(from, step), step);
        to += step;
        from += step;
        bytes -= step;
    }
}

static void copy_large(char *to, const char *from, size_t bytes)
{
    uint64_t *words = (uint64_t *)(void *)to;
    const uint64_t *source = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < bytes / WORD; i++)
        __atomic_store_n(&words[i], __atomic_load_n(&source[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    copy_small(to + bytes / WORD * WORD, from + bytes / WORD * WORD, bytes % WORD);
}

static void copy_run(char *to, const char *from, size_t bytes)
{
    if (bytes > RELEASED && ((uintptr_t)to | (uintptr_t)from) % WORD == 0)
        copy_large(to, from, bytes);
    else
        copy_small(to, from, bytes);
}

/* @return where @p offset lies, and how many bytes follow there. */
static char *find(const fake_spans *spans, size_t offset, size_t *bytes)
{
    int i = 0;
    while (offset >= spans->span[i].bytes)
        offset -= spans->span[i++].bytes;
    *bytes = spans->span[i].bytes - offset;
    return spans->span[i].at + offset;
}

void fake_copy(const fake_spans *to, const fake_spans *from, size_t offset, size_t bytes)
{
    fake_counts.bytes += bytes;
    while (bytes > 0) {
        size_t there, here;
        char *target = find(to, offset, &there);
        const char *source = find(from, offset, &here);
        size_t run = there < here ? there : here;
        run = run < bytes ? run : bytes;
        copy_run(target, source, run);
        offset += run;
        bytes -= run;
    }
}
