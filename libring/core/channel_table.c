/* SPDX-License-Identifier: Apache-2.0
 * Implements the table of channels as a hash table with linear probing. It is searched only when a
 * call is first lowered. */
#include "channel_table.h"

#include "comm.h"
#include "placeholder_link.h"
#include "tagged_traffic.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 }; /* capacities are powers of two */

static size_t place_of(const channel_table *t, enum channel_traffic traffic, int32_t index,
                       int rank)
{
    const uint64_t key = (uint64_t)rank << 9 | (uint64_t)index << 3 | (uint64_t)traffic;
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->capacity - 1);
    const channel *c;
    while ((c = t->slots[at]) != NULL &&
           (c->rank != rank || c->traffic != traffic || c->index != index))
        at = (at + 1) & (t->capacity - 1);
    return at;
}

channel *channel_find(const ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank)
{
    const channel_table *t = &comm->channels;
    return t->capacity > 0 ? t->slots[place_of(t, traffic, index, rank)] : NULL;
}

/* Doubles the table. At least half of the slots stay free; `active` has room for all channels. */
static ring_status grow(channel_table *t)
{
    channel_table bigger = {.capacity = t->capacity > 0 ? 2 * t->capacity : FIRST_CAPACITY,
                            .count = t->count};
    channel **active = realloc(t->active, bigger.capacity / 2 * sizeof(channel *));
    if (active != NULL)
        t->active = active;
    bigger.slots = calloc(bigger.capacity, sizeof(channel *));
    if (active == NULL || bigger.slots == NULL) {
        free(bigger.slots);
        return fail(RING_ERR_MEMORY, "out of memory while growing the table of channels");
    }
    bigger.active = active;
    bigger.active_count = t->active_count;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i] != NULL) {
            const channel *c = t->slots[i];
            bigger.slots[place_of(&bigger, c->traffic, c->index, c->rank)] = t->slots[i];
        }
    free(t->slots);
    *t = bigger;
    return RING_OK;
}

ring_status channel_get(ring_comm *comm, enum channel_traffic traffic, int32_t index, int rank,
                        channel **out)
{
    channel_table *t = &comm->channels;
    *out = channel_find(comm, traffic, index, rank);
    if (*out != NULL)
        return RING_OK;
    if (2 * (t->count + 1) > t->capacity)
        RING_TRY(grow(t));
    channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while making a channel to rank %d", rank);
    *c = (channel){.link = placeholder_link(),
                   .comm = comm,
                   .rank = rank,
                   .traffic = traffic,
                   .index = index,
                   .place = -1};
    const ring_status status = traffic == TRAFFIC_TAGGED ? tagged_peer_new(c) : RING_OK;
    if (status != RING_OK) {
        free(c);
        return status;
    }
    t->slots[place_of(t, traffic, index, rank)] = *out = c;
    t->count++;
    return RING_OK;
}

channel *channels_next(const ring_comm *comm, size_t *at)
{
    const channel_table *t = &comm->channels;
    while (*at < t->capacity)
        if (t->slots[(*at)++] != NULL)
            return t->slots[*at - 1];
    return NULL;
}

void channels_free(ring_comm *comm)
{
    channel_table *t = &comm->channels;
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;) {
        c->link->transport->close(c->link);
        free(c->tagged);
        free(c);
    }
    free(t->slots);
    free(t->active);
    *t = (channel_table){0};
}
