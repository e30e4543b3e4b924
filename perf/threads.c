/* SPDX-License-Identifier: Apache-2.0
 *
 * threads: starts threads that all run or do not run at all. The caller holds a lock until it knows
 * whether all threads have started, and each thread takes the lock before it runs its body. A core
 * is identified by the smallest number of its logical CPUs.
 */
#include "threads.h"
#include "sysfs.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

typedef struct crew {
    void (*body)(void *element);
    pthread_mutex_t starting;
    bool complete;
} crew;

typedef struct member {
    crew *crew;
    void *element;
    pthread_t thread;
} member;

static void *member_main(void *arg)
{
    const member *self = arg;
    pthread_mutex_lock(&self->crew->starting);
    const bool complete = self->crew->complete;
    pthread_mutex_unlock(&self->crew->starting);
    if (complete)
        self->crew->body(self->element);
    return NULL;
}

/* @return the number of threads that were started. */
static int start(crew *c, member *members, char *array, size_t size, int count)
{
    int started = 0;
    pthread_mutex_lock(&c->starting);
    for (; started < count; started++) {
        member *m = &members[started];
        *m = (member){.crew = c, .element = array + (size_t)started * size};
        if (pthread_create(&m->thread, NULL, member_main, m) != 0)
            break;
    }
    c->complete = started == count;
    pthread_mutex_unlock(&c->starting);
    return started;
}

int threads_run(void (*body)(void *element), void *array, size_t size, int count)
{
    crew c = {.body = body, .starting = PTHREAD_MUTEX_INITIALIZER};
    member *members = calloc((size_t)count, sizeof *members);
    const int started = members ? start(&c, members, array, size, count) : 0;
    for (int i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    free(members);
    return started;
}

bool threads_take_cores(int k, int count)
{
    cpu_set_t allowed, mine;
    int core[CPU_SETSIZE], number[CPU_SETSIZE] = {0}, cores = 0; /* a core's number, from 1 */
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        const double first =
            sysfs_number(cpu, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        core[cpu] = first >= 0 && first < CPU_SETSIZE ? (int)first : cpu;
        if (number[core[cpu]] == 0)
            number[core[cpu]] = ++cores;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && count <= cores; cpu++)
        if (CPU_ISSET(cpu, &allowed) && (number[core[cpu]] - 1) / (cores / count) == k)
            CPU_SET(cpu, &mine);
    return count <= cores && sched_setaffinity(0, sizeof mine, &mine) == 0;
}
