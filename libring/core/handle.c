/* SPDX-License-Identifier: Apache-2.0
 * Implements work handles as a table of slots. The table grows by blocks of slots, which never
 * move in memory. */
#include "handle.h"

#include <stdlib.h>

enum { BLOCK = 256, BLOCKS = 16384, INDEX_BITS = 22 };

typedef struct slot {
    uint32_t generation; /* odd while in use */
    uint32_t next_free;
    int32_t users; /* calls between handle_enter() and handle_leave() */
    bool ended;    /* handle_enter() rejects it */
    handle_view view;
} slot;

static struct {
    pthread_mutex_t lock;
    slot *blocks[BLOCKS];
    uint32_t slots; /* created so far; slot 0 is never used */
    uint32_t free;  /* first free slot; 0: none */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .slots = 1};

/* Makes the lock usable in a forked child: a thread of the parent may have held it at the fork. */
static void in_child(void)
{
    pthread_mutex_init(&table.lock, NULL);
}

__attribute__((constructor)) static void follow_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static slot *slot_at(uint32_t index)
{
    return &table.blocks[index / BLOCK][index % BLOCK];
}

static uintptr_t encode(uint32_t index)
{
    return (uintptr_t)slot_at(index)->generation << INDEX_BITS | index;
}

/* @return the slot of a handle; 0 if the handle has ended or never existed. */
static uint32_t find(const ring_work *handle)
{
    const uint32_t index = (uint32_t)((uintptr_t)handle & ((1u << INDEX_BITS) - 1));
    if (index == 0 || index >= table.slots)
        return 0;
    return encode(index) == (uintptr_t)handle && slot_at(index)->generation % 2 == 1 ? index : 0;
}

static uint32_t take_free(void)
{
    const uint32_t index = table.free;
    if (index != 0) {
        table.free = slot_at(index)->next_free;
        return index;
    }
    if (table.slots == BLOCK * (uint32_t)BLOCKS)
        return 0;
    slot **block = &table.blocks[table.slots / BLOCK];
    if (*block == NULL && (*block = calloc(BLOCK, sizeof **block)) == NULL)
        return 0;
    return table.slots++;
}

ring_status handle_new(ring_comm *comm, struct work *work, uint32_t *slot_number, ring_work **out)
{
    pthread_mutex_lock(&table.lock);
    const uint32_t index = take_free();
    if (index != 0) {
        slot *s = slot_at(index);
        s->generation++;
        s->users = 0;
        s->ended = false;
        s->view = (handle_view){.comm = comm, .work = work, .status = RING_IN_PROGRESS};
        *out = (ring_work *)encode(index);
    }
    pthread_mutex_unlock(&table.lock);
    *slot_number = index;
    return index != 0 ? RING_OK
                      : fail(RING_ERR_MEMORY, "out of memory while creating another work handle");
}

ring_status handle_enter(const ring_work *handle, const char *call)
{
    pthread_mutex_lock(&table.lock);
    const uint32_t index = find(handle);
    const bool open = index != 0 && !slot_at(index)->ended;
    if (open)
        slot_at(index)->users++;
    pthread_mutex_unlock(&table.lock);
    if (open)
        return RING_OK;
    return fail(RING_ERR_USAGE,
                "ring_%s: the handle has ended: it was already waited for or tested until done; "
                "use the pointer that ring_wait() sets to NULL",
                call);
}

handle_view handle_look(const ring_work *handle)
{
    pthread_mutex_lock(&table.lock);
    const handle_view view = slot_at(find(handle))->view;
    pthread_mutex_unlock(&table.lock);
    return view;
}

bool handle_leave(const ring_work *handle, bool ends)
{
    pthread_mutex_lock(&table.lock);
    const uint32_t index = find(handle);
    slot *s = slot_at(index);
    s->ended |= ends;
    const bool last = --s->users == 0 && s->ended;
    if (last) {
        s->generation++;
        s->next_free = table.free;
        table.free = index;
    }
    pthread_mutex_unlock(&table.lock);
    return last;
}

void handle_orphan(uint32_t index, ring_status status)
{
    pthread_mutex_lock(&table.lock);
    slot_at(index)->view = (handle_view){.comm = NULL, .work = NULL, .status = status};
    pthread_mutex_unlock(&table.lock);
}
