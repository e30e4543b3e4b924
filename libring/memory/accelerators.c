/* SPDX-License-Identifier: Apache-2.0
 * Keeps the accelerators of the process in a table. Entries are only added, so readers take no
 * lock. */
#include "accelerators.h"

#include "base.h"

static struct {
    pthread_mutex_t lock;
    _Atomic int count;
    const accelerator *of[ACCELERATORS_MOST];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

ring_status accelerators_add(const accelerator *a)
{
    pthread_mutex_lock(&process.lock);
    const int count = atomic_load(&process.count);
    int place = 0;
    while (place < count && process.of[place] != a)
        place++;
    if (place == count && count < ACCELERATORS_MOST) {
        process.of[count] = a;
        atomic_store(&process.count, count + 1);
    }
    pthread_mutex_unlock(&process.lock);
    return place < ACCELERATORS_MOST
               ? RING_OK
               : fail(RING_ERR_MEMORY, "cannot use %s: a process can use at most %d accelerators",
                      a->name, (int)ACCELERATORS_MOST);
}

bool accelerators_are_there(void)
{
    return atomic_load_explicit(&process.count, memory_order_relaxed) > 0;
}

ring_status accelerators_of_stream(void *stream, const accelerator **of)
{
    *of = NULL;
    for (int i = 0; i < atomic_load(&process.count) && *of == NULL; i++) {
        const accelerator *a = process.of[i];
        bool yes = false;
        if (a->owns_stream != NULL)
            RING_TRY(a->owns_stream(a, stream, &yes));
        *of = yes ? a : NULL;
    }
    return RING_OK;
}

ring_status accelerators_of_memory(const void *at, size_t bytes, accelerator_allocation *out,
                                   const accelerator **of)
{
    const accelerator *first = *of;
    *of = NULL;
    *out = (accelerator_allocation){0};
    for (int i = first != NULL ? -1 : 0; i < atomic_load(&process.count) && *of == NULL; i++) {
        const accelerator *a = i < 0 ? first : process.of[i];
        if (a->owns != NULL && (i < 0 || a != first))
            RING_TRY(a->owns(a, at, bytes, out));
        *of = out->bytes > 0 ? a : NULL;
    }
    return RING_OK;
}

static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    atomic_store(&process.count, 0);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}
