/* SPDX-License-Identifier: Apache-2.0
 * The thread that prints waits for a semaphore, which the signal's handler posts. It queries
 * streams last, and one by one, since the driver may block it. */
#include "places.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

typedef struct place {
    const char *_Atomic step;
    _Atomic int call;
    CUstream _Atomic streams[PLACES_STREAMS];
} place;

static place places[PLACES_RANKS];
static sem_t asked;
static const cuda_table *driver;

static void ask(int number)
{
    sem_post(&asked);
}

static void print_streams(int rank)
{
    for (int i = 0; i < PLACES_STREAMS; i++) {
        const CUstream stream = atomic_load(&places[rank].streams[i]);
        if (stream == NULL)
            continue;
        printf("rank %d, stream %d: cuStreamQuery is called\n", rank, i);
        fflush(stdout);
        const CUresult result = driver->stream_query(stream);
        printf("rank %d, stream %d %s\n", rank, i,
               result == CUDA_ERROR_NOT_READY ? "has work that has not ended"
               : result == CUDA_SUCCESS       ? "is idle"
                                              : "reports an error");
        fflush(stdout);
    }
}

static void *print_places(void *unused)
{
    CUcontext context;
    if (driver->primary_retain(&context, 0) == CUDA_SUCCESS)
        driver->set_current(context);
    for (;;) {
        if (sem_wait(&asked) != 0)
            continue;
        for (int i = 0; i < PLACES_RANKS; i++)
            if (atomic_load(&places[i].step) != NULL)
                printf("rank %d: call %d, at %s\n", i, atomic_load(&places[i].call),
                       atomic_load(&places[i].step));
        fflush(stdout);
        for (int i = 0; i < PLACES_RANKS; i++)
            print_streams(i);
    }
    return NULL;
}

static void start(void)
{
    pthread_t thread;
    sem_init(&asked, 0, 0);
    if (pthread_create(&thread, NULL, print_places, NULL) != 0)
        return;
    pthread_detach(thread);
    signal(SIGUSR1, ask);
}

void places_watch(const cuda_table *cu)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    driver = cu;
    pthread_once(&once, start);
}

void places_at(int rank, const char *step, int call)
{
    if (rank >= PLACES_RANKS)
        return;
    atomic_store(&places[rank].call, call);
    atomic_store(&places[rank].step, step);
}

void places_stream(int rank, int index, CUstream stream)
{
    if (rank < PLACES_RANKS && index < PLACES_STREAMS)
        atomic_store(&places[rank].streams[index], stream);
}
