/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_handover: measures the time from a store of one thread until another thread continues. The
 * other thread either watches the cache line or sleeps on a futex. It also measures a meeting of
 * two threads that push a small message in one cache line to each other. The results are medians,
 * so that short disturbances by other load do not count.
 */
#include "limit.h"
#include "stopwatch.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>

#define SAMPLES 201
#define LINE_ROUNDS 2000   /* meetings per sample, because one is too short for the clock */
#define ASLEEP_AFTER_US 50 /* a thread that has waited so long sleeps in the kernel */

typedef struct exchange {
    limit_meeting meeting;
    _Alignas(128) atomic_uint word;
    double woken_at;
    double times[SAMPLES]; /* of one hand-over */
} exchange;

static void line_side(int side, void *arg)
{
    exchange *e = arg;
    for (int sample = 0; sample < SAMPLES; sample++) {
        limit_meet(&e->meeting, side);
        const double start = stopwatch_us();
        for (int i = 0; i < LINE_ROUNDS; i++)
            limit_meet(&e->meeting, side);
        if (side == 0)
            e->times[sample] = (stopwatch_us() - start) / LINE_ROUNDS;
    }
}

/* Side 1 sleeps on the futex, and side 0 wakes it. */
static void futex_side(int side, void *arg)
{
    exchange *e = arg;
    for (unsigned sample = 0; sample < SAMPLES; sample++) {
        limit_meet(&e->meeting, side);
        if (side == 0) {
            const double begin = stopwatch_us();
            while (stopwatch_us() - begin < ASLEEP_AFTER_US)
                sched_yield();
            e->woken_at = stopwatch_us();
            atomic_store(&e->word, sample + 1);
            syscall(SYS_futex, &e->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        } else {
            while (atomic_load(&e->word) != sample + 1)
                syscall(SYS_futex, &e->word, FUTEX_WAIT_PRIVATE, sample, NULL, NULL, 0);
            e->times[sample] = stopwatch_us() - e->woken_at;
        }
    }
}

/* ---- A small message in one line ---- */

#define PUSH_FLOATS (LIMIT_PUSH_MOST / sizeof(float))

/* A message from one side to the other. `round` is stored last, which publishes the other
 * members. */
typedef struct push_line {
    _Alignas(64) atomic_uint round;
    unsigned unused;
    uint64_t signature;
    float payload[PUSH_FLOATS];
} push_line;

_Static_assert(sizeof(push_line) == 64, "a push is one cache line");

typedef struct push_pair {
    exchange common;
    /* Each side's inbox has two lines, which are used alternately because a side may push again
     * before the other side has read. The inboxes are a page apart, so that the prefetch of a line
     * does not touch the other side's inbox. */
    struct {
        _Alignas(4096) push_line lines[2];
    } inbox[2];
    size_t floats;
    atomic_bool broken;
} push_pair;

/* Both sides compute the signature from the round number. It stands for the signature of a call. */
static uint64_t push_signature(unsigned round)
{
    return round * 0x9e3779b97f4a7c15u;
}

static void push(push_line *line, unsigned round, const float *values, size_t floats)
{
    line->signature = push_signature(round);
    for (size_t i = 0; i < floats; i++)
        line->payload[i] = values[i];
    atomic_store_explicit(&line->round, round, memory_order_release);
}

/* A small all-reduce: both sides contribute the round number, so the sum must be twice that.
 * @return true if the signature and the sums are right. */
static bool push_meeting(push_pair *p, int side, unsigned round)
{
    float values[PUSH_FLOATS];
    const float own = (float)(round & 1023);
    for (size_t i = 0; i < p->floats; i++)
        values[i] = own;
    push(&p->inbox[!side].lines[round & 1], round, values, p->floats);
    push_line *inbox = &p->inbox[side].lines[round & 1];
    limit_wait(&inbox->round, round);
    for (size_t i = 0; i < p->floats; i++)
        values[i] += inbox->payload[i];
    bool right = inbox->signature == push_signature(round);
    for (size_t i = 0; i < p->floats; i++)
        right &= values[i] == 2 * own;
    return right;
}

static void push_side(int side, void *arg)
{
    push_pair *p = arg;
    unsigned round = 0;
    bool right = true;
    for (int sample = 0; sample < SAMPLES; sample++) {
        limit_meet(&p->common.meeting, side);
        const double start = stopwatch_us();
        for (int i = 0; i < LINE_ROUNDS; i++)
            right &= push_meeting(p, side, ++round);
        if (side == 0)
            p->common.times[sample] = (stopwatch_us() - start) / LINE_ROUNDS;
    }
    if (!right)
        atomic_store(&p->broken, true);
}

double limit_push(size_t bytes, limit_cores cores)
{
    static push_pair p;
    p = (push_pair){.floats = bytes / sizeof(float)};
    if (!limit_run_pair(push_side, &p, cores))
        return -1;
    if (p.broken)
        fputs("ringlimit: a pushed line arrived with wrong values\n", stderr);
    return p.broken ? -1 : stopwatch_median(p.common.times, SAMPLES);
}

/* ---- The two hand-overs ---- */

static double median_handover(void (*body)(int side, void *arg), limit_cores cores)
{
    exchange e = {0};
    return limit_run_pair(body, &e, cores) ? stopwatch_median(e.times, SAMPLES) : -1;
}

double limit_line_handover(limit_cores cores)
{
    return median_handover(line_side, cores);
}

double limit_futex_handover(limit_cores cores)
{
    return median_handover(futex_side, cores);
}
