/* SPDX-License-Identifier: Apache-2.0
 * Allocates scratch memory. If possible, it is allocated from the heap that the ranks of the host
 * share, so that they read partial sums in place. */
#include "scratch.h"

#include "heap.h"

#include <stdlib.h>

/* Finds an unused piece of at least @p bytes. @param[out] held  the bytes of all pieces in the list
 * before it. @return NULL if there is none. */
static scratch *find(scratch *first, size_t bytes, size_t *held)
{
    *held = 0;
    for (scratch *s = first; s != NULL; s = s->next) {
        if (!s->used && s->bytes >= bytes)
            return s;
        *held += s->bytes;
    }
    return NULL;
}

/* Frees the pieces that are not in use. @return the bytes of the pieces in use. */
static size_t drop_idle(scratch **first)
{
    size_t left = 0;
    for (scratch **at = first; *at != NULL;) {
        scratch *s = *at;
        if (s->used) {
            left += s->bytes;
            at = &s->next;
            continue;
        }
        *at = s->next;
        if (s->shared)
            heap_free(s->data);
        else
            free(s->data);
        free(s);
    }
    return left;
}

static ring_status add(scratch **first, size_t bytes, scratch **out)
{
    scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "no memory for partial sums");
    s->shared = heap_alloc(&s->data, bytes) == RING_OK;
    if (!s->shared)
        s->data = aligned_alloc(RING_CACHE_LINE,
                                (bytes + RING_CACHE_LINE - 1) & ~(size_t)(RING_CACHE_LINE - 1));
    if (s->data == NULL) {
        free(s);
        return fail(RING_ERR_MEMORY, "no memory for partial sums (%zu bytes)", bytes);
    }
    s->bytes = bytes;
    s->next = *first;
    *first = *out = s;
    return RING_OK;
}

/* Calls take scratch memory in call order. Otherwise a gated call could wait for memory that later
 * calls hold, while these wait for it. @param[out] oldest  true if no earlier call uses any. */
static bool is_next(const work *w, bool *oldest)
{
    *oldest = true;
    for (const work *e = w->comm->works.first; e != w; e = e->next) {
        if (e->program->scratch == 0)
            continue;
        if (e->scratch == NULL)
            return false;
        if (e->lead != w->lead)
            *oldest = false;
    }
    return true;
}

/* Marks a piece as used. @param[in,out] s  an idle piece; if it is NULL, a new one is created. */
static ring_status use(scratch **first, size_t bytes, scratch **s)
{
    if (*s == NULL)
        RING_TRY(add(first, bytes, s));
    (*s)->used = true;
    return RING_OK;
}

/* The works of the oldest call may exceed SCRATCH_MOST, so that they do not wait for each other. */
ring_status scratch_take(work *w)
{
    ring_comm *comm = w->comm;
    const size_t bytes = w->program->scratch;
    size_t held;
    bool oldest;
    if (!is_next(w, &oldest))
        return RING_IN_PROGRESS;
    scratch *s = find(comm->memory.scratches, bytes, &held);
    if (s == NULL && held + bytes > SCRATCH_MOST) {
        held = drop_idle(&comm->memory.scratches);
        if (held > 0 && held + bytes > SCRATCH_MOST && !oldest)
            return RING_IN_PROGRESS;
    }
    RING_TRY(use(&comm->memory.scratches, bytes, &s));
    w->scratch = s->data;
    return RING_OK;
}

ring_status scratch_take_stage(work *w)
{
    size_t held;
    scratch *s = find(w->comm->memory.scratches, STAGE_BYTES, &held);
    RING_TRY(use(&w->comm->memory.scratches, STAGE_BYTES, &s));
    w->stage = s->data;
    return s->shared ? RING_OK
                     : fail(RING_ERR_MEMORY, "cannot stage a message: the shared heap is full, and "
                                             "the adapter cannot access the call's buffer");
}

/* If no idle piece is long enough, all idle pieces are freed, so that the list never has more
 * pieces than calls used at the same time. */
ring_status scratch_take_products(ring_comm *comm, size_t bytes, char **data)
{
    size_t held;
    scratch *s = find(comm->memory.products, bytes, &held);
    if (s == NULL)
        drop_idle(&comm->memory.products);
    RING_TRY(use(&comm->memory.products, bytes, &s));
    *data = s->data;
    return RING_OK;
}

static void give_back(scratch *first, const char *data)
{
    for (scratch *s = first; s != NULL; s = s->next)
        if (s->data == data)
            s->used = false;
}

void scratch_give_back(ring_comm *comm, const char *data)
{
    give_back(comm->memory.scratches, data);
    give_back(comm->memory.products, data);
}

static void free_all(scratch **first)
{
    for (scratch *s = *first; s != NULL; s = s->next)
        s->used = false;
    drop_idle(first);
}

void scratch_free(ring_comm *comm)
{
    free_all(&comm->memory.scratches);
    free_all(&comm->memory.products);
}
