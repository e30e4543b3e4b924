/* SPDX-License-Identifier: Apache-2.0
 * Entering a call, calls that fail because a test wants it, handles, counters. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_OBJECTS = 1 << 14 };

typedef struct object {
    object_kind kind;
    uint32_t generation;
    void *body;
} object;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *failing, *failed, *nth_of; /* NULL: of all functions, and of the program, too */
static int failure, nth_result;
static uint64_t nth;
static _Atomic bool initialized;
static object objects[MOST_OBJECTS];
static uint64_t alive[OBJECT_KINDS];

fake_cuda_counts call_counts;
_Thread_local bool in_host_function;

/* ---- Calls ---- */

void fake_cuda_fail(const char *function, int result)
{
    pthread_mutex_lock(&lock);
    failing = result != 0 ? function : NULL;
    failure = result;
    pthread_mutex_unlock(&lock);
}

void fake_cuda_fail_nth(uint64_t n, int result)
{
    fake_cuda_fail_nth_of(NULL, n, result);
}

void fake_cuda_fail_nth_of(const char *function, uint64_t n, int result)
{
    pthread_mutex_lock(&lock);
    nth = n;
    nth_of = function;
    nth_result = result;
    failed = NULL;
    pthread_mutex_unlock(&lock);
}

const char *fake_cuda_last_failed(void)
{
    pthread_mutex_lock(&lock);
    const char *last = failed;
    pthread_mutex_unlock(&lock);
    return last;
}

void call_count(uint64_t *counter, uint64_t by)
{
    pthread_mutex_lock(&lock);
    *counter += by;
    pthread_mutex_unlock(&lock);
}

/* @return what a test wants; 0: nothing. */
static int wanted(const char *function, const void *caller)
{
    pthread_mutex_lock(&lock);
    int result = failing != NULL && strcmp(failing, function) == 0 ? failure : 0;
    call_counts.calls++;
    const bool counts = nth > 0 && (nth_of == NULL ||
                                    (strcmp(nth_of, function) == 0 && call_is_of_library(caller)));
    if (counts && --nth == 0) {
        result = nth_result;
        failed = function;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult call_enter(const char *function, const void *caller)
{
    call_name = function;
    census_count(function, caller);
    rule_check(function, caller);
    if (in_host_function) {
        fprintf(stderr, "fake_cuda: %s() in a host function\n", function);
        misuse("no call of CUDA is permitted there (CUDA_ERROR_NOT_PERMITTED)");
    }
    if (gpu != NULL && getpid() != gpu_is.owner)
        return CUDA_ERROR_NOT_INITIALIZED; /* a child of the process that has the GPU */
    const int result = wanted(function, caller);
    if (result != 0)
        return result;
    if (strcmp(function, "cuInit") == 0)
        initialized = true;
    if (!initialized)
        return CUDA_ERROR_NOT_INITIALIZED;
    return gpu != NULL ? __atomic_load_n(&gpu->error, __ATOMIC_SEQ_CST) : 0;
}

/* ---- Handles: kind, generation and place ---- */

static void *handle_of(const object *o)
{
    return (void *)((uintptr_t)o->kind << 48 | (uintptr_t)o->generation << 16 |
                    (uintptr_t)(o - objects + 16));
}

void *object_add(object_kind kind, void *body)
{
    pthread_mutex_lock(&lock);
    object *o = objects;
    while (o < objects + MOST_OBJECTS && o->kind != OBJECT_NONE)
        o++;
    if (o == objects + MOST_OBJECTS)
        misuse("too many handles");
    *o = (object){kind, o->generation + 1, body};
    alive[kind]++;
    void *handle = handle_of(o);
    pthread_mutex_unlock(&lock);
    return handle;
}

/* @return under the lock. */
static object *find(object_kind kind, const void *handle)
{
    object *o = objects + ((uintptr_t)handle & 0xffff) - 16;
    const bool is_one = o >= objects && o < objects + MOST_OBJECTS && o->kind == kind;
    return is_one && handle_of(o) == handle ? o : NULL;
}

void *object_get(object_kind kind, const void *handle)
{
    pthread_mutex_lock(&lock);
    const object *o = find(kind, handle);
    void *body = o != NULL ? o->body : NULL;
    pthread_mutex_unlock(&lock);
    return body;
}

void *object_take(object_kind kind, const void *handle)
{
    pthread_mutex_lock(&lock);
    object *o = find(kind, handle);
    void *body = o != NULL ? o->body : NULL;
    if (o != NULL) {
        o->kind = OBJECT_NONE;
        alive[kind]--;
    }
    pthread_mutex_unlock(&lock);
    return body;
}

/* ---- Counters ---- */

static void count_gpu(fake_cuda_counts *out)
{
    gpu_lock();
    for (int i = 0; i < gpu->allocation_count; i++) {
        const memory_kind kind = gpu->allocations[i].kind;
        out->device_bytes += kind == MEMORY_DEVICE ? gpu->allocations[i].bytes : 0;
        out->allocations += kind == MEMORY_DEVICE || kind == MEMORY_MAPPED ||
                            kind == MEMORY_IMPORTED;
        out->pinned += kind == MEMORY_PINNED || kind == MEMORY_MANAGED || kind == MEMORY_REGISTERED;
    }
    for (int i = 0; i < MOST_DEVICES; i++)
        out->blocks += (uint64_t)gpu->devices[i].resident;
    out->launches_started = gpu->launches_started;
    out->launches_done = gpu->launches_done;
    out->ops_done = gpu->ops_done;
    gpu_unlock();
}

void fake_cuda_counters(fake_cuda_counts *out)
{
    pthread_mutex_lock(&lock);
    *out = call_counts;
    out->streams = alive[OBJECT_STREAM];
    out->events = alive[OBJECT_EVENT];
    out->modules = alive[OBJECT_MODULE];
    out->graphs = alive[OBJECT_GRAPH] + alive[OBJECT_EXEC];
    out->user_objects = alive[OBJECT_USER];
    out->physical = alive[OBJECT_PHYSICAL];
    pthread_mutex_unlock(&lock);
    out->contexts = contexts_alive();
    out->contexts_left = contexts_pushed();
    if (gpu != NULL)
        count_gpu(out);
}
