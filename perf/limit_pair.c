/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_pair: runs a function in two threads, each bound to a core, and has the barrier by which
 * the threads wait for each other.
 */
#include "limit.h"
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define SPINS 2000 /* before a side yields its core, which the other side may share */

limit_cores limit_find_cores(void)
{
    limit_cores found = {-1, -1};
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return (limit_cores){0, 0};
    for (int cpu = 0; cpu < CPU_SETSIZE && found.second < 0; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            *(found.first < 0 ? &found.first : &found.second) = cpu;
    if (found.second < 0)
        found.second = found.first;
    return found;
}

typedef struct half {
    void (*body)(int side, void *arg);
    void *arg;
    int side, core;
} half;

static void run_half(void *arg)
{
    const half *self = arg;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET((size_t)self->core, &core);
    pthread_setaffinity_np(pthread_self(), sizeof core, &core); /* if it fails, measures unbound */
    self->body(self->side, self->arg);
}

bool limit_run_pair(void (*body)(int side, void *arg), void *arg, limit_cores cores)
{
    half halves[2] = {{body, arg, 0, cores.first}, {body, arg, 1, cores.second}};
    const bool ran = threads_run(run_half, halves, sizeof *halves, 2) == 2;
    if (!ran)
        fputs("ringlimit: cannot start two threads; is there a limit on processes?\n", stderr);
    return ran;
}

void limit_wait(atomic_uint *word, unsigned value)
{
    for (int spins = 0; atomic_load_explicit(word, memory_order_acquire) - value > 1u << 31;) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (++spins > SPINS) {
            sched_yield();
            spins = 0;
        }
    }
}

void limit_meet(limit_meeting *meeting, int side)
{
    atomic_uint *mine = side == 0 ? &meeting->first : &meeting->second;
    atomic_uint *other = side == 0 ? &meeting->second : &meeting->first;
    const unsigned round = atomic_load_explicit(mine, memory_order_relaxed) + 1;
    atomic_store_explicit(mine, round, memory_order_release);
    limit_wait(other, round);
}
