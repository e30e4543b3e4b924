/* SPDX-License-Identifier: Apache-2.0
 * draw: samples for the short forms of long tests, from a seed that moves from day to day. */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/** @return true if RING_TEST_LONG asks for the whole test. */
static inline bool test_is_long(void)
{
    return getenv("RING_TEST_LONG") != NULL;
}

static uint64_t draw_seed;

static inline void draw_read_seed(void)
{
    const char *text = getenv("RING_TEST_SEED");
    char *end = NULL;
    draw_seed = text != NULL ? strtoull(text, &end, 10) : (uint64_t)time(NULL) / 86400;
    if (text != NULL && (end == text || *end != '\0')) {
        fprintf(stderr, "RING_TEST_SEED is a number, not \"%s\"\n", text);
        exit(2);
    }
    printf("seed %llu (RING_TEST_SEED=%llu replays)\n", (unsigned long long)draw_seed,
           (unsigned long long)draw_seed);
    fflush(stdout);
}

/** @return RING_TEST_SEED, else the number of the day. Says once which one it is. Any thread. */
static inline uint64_t test_seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_read_seed);
    return draw_seed;
}

/** Draws the next number below @p below. @p state begins as test_seed(). */
static inline uint32_t test_draw(uint64_t *state, uint32_t below)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((x >> 32) * below >> 32);
}

#endif
