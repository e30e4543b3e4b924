/* SPDX-License-Identifier: Apache-2.0
 * Allocates far memory, and makes the views of it. */
#include "far_parts.h"

#include "base.h"
#include "regions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_UNKNOWN = 256 };

struct far_views far_views;

static struct {
    pthread_mutex_t lock;
    size_t used;
    uint64_t ids;
    accelerator_allocation unknown[MOST_UNKNOWN]; /* that nobody registered; bytes 0: none */
} far = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Views -------------------------------------------------------------------------- */

static bool lies_in(const char *at, const char *view)
{
    return at >= view && at < view + FAR_MOST_BYTES;
}

bool far_has(const void *at)
{
    return lies_in(at, far_views.seen);
}

size_t far_offset(const void *at)
{
    return (size_t)((const char *)at - far_views.seen);
}

void *far_real(const void *at)
{
    return far_has(at) ? far_views.real + far_offset(at) : (void *)(uintptr_t)at;
}

void far_show(const void *real, size_t bytes)
{
    const char *from = real;
    if (lies_in(from, far_views.real))
        memcpy(far_views.bus + (from - far_views.real), from, bytes);
}

static char *map_far(int protection, int flags, int file)
{
    void *at = mmap(NULL, FAR_MOST_BYTES, protection, flags | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static void set_up(void)
{
    struct far_views *v = &far_views;
    v->file = memfd_create("far", MFD_CLOEXEC);
    if (v->file < 0 || ftruncate(v->file, FAR_MOST_BYTES) != 0)
        abort();
    v->seen = map_far(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    v->real = map_far(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    v->bus = map_far(PROT_READ | PROT_WRITE, MAP_SHARED, v->file);
    far_start();
}

void far_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
}

/* ---- Allocations -------------------------------------------------------------------- */

/* Addresses are not given twice: what was freed may be named by a late mistake. When they are used
 * up they start again. */
static char *take_addresses(size_t whole)
{
    far_prepare();
    pthread_mutex_lock(&far.lock);
    far.used = far.used + whole > FAR_MOST_BYTES ? 0 : far.used;
    char *at = far_views.seen + far.used;
    far.used += whole;
    pthread_mutex_unlock(&far.lock);
    return at;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4096) / 4096 * 4096;
}

static void *allocate(size_t bytes, const accelerator *by)
{
    const size_t whole = whole_pages(bytes);
    char *at = take_addresses(whole);
    if (region_add_device(at, whole, by) != RING_OK)
        abort();
    return at;
}

void *far_alloc(size_t bytes)
{
    return allocate(bytes, &far_here);
}

void *far_alloc_elsewhere(size_t bytes)
{
    return allocate(bytes, &far_elsewhere);
}

void far_free(void *memory)
{
    if (region_remove(memory) != RING_OK)
        abort();
}

/* Locked. @return the allocation that has the byte; NULL: none. */
static accelerator_allocation *unknown_around(const void *at)
{
    for (int i = 0; i < MOST_UNKNOWN; i++)
        if ((size_t)((const char *)at - (char *)far.unknown[i].base) < far.unknown[i].bytes)
            return &far.unknown[i];
    return NULL;
}

void *far_alloc_unknown(size_t bytes, void *at)
{
    accelerator_allocation *free_one = NULL;
    char *base = at != NULL ? at : take_addresses(whole_pages(bytes));
    pthread_mutex_lock(&far.lock);
    for (int i = 0; i < MOST_UNKNOWN && free_one == NULL; i++)
        free_one = far.unknown[i].bytes == 0 ? &far.unknown[i] : NULL;
    if (free_one == NULL || unknown_around(base) != NULL)
        abort();
    *free_one = (accelerator_allocation){base, whole_pages(bytes), ++far.ids};
    pthread_mutex_unlock(&far.lock);
    return base;
}

void far_free_unknown(void *memory)
{
    pthread_mutex_lock(&far.lock);
    accelerator_allocation *a = unknown_around(memory);
    if (a == NULL || a->base != memory)
        abort();
    a->bytes = 0;
    pthread_mutex_unlock(&far.lock);
}

ring_status far_owns(const accelerator *a, const void *at, size_t bytes,
                     accelerator_allocation *out)
{
    pthread_mutex_lock(&far.lock);
    const accelerator_allocation *of = unknown_around(at);
    *out = of != NULL ? *of : (accelerator_allocation){0};
    pthread_mutex_unlock(&far.lock);
    return RING_OK;
}

/* ---- Contents ------------------------------------------------------------------------- */

void far_write(void *memory, const void *from, size_t bytes)
{
    memcpy(far_real(memory), from, bytes);
    far_show(far_real(memory), bytes);
}

void far_read(void *to, const void *memory, size_t bytes)
{
    memcpy(to, far_real(memory), bytes);
}

void *far_at_adapters(void *memory)
{
    return far_views.bus + far_offset(memory);
}
