/* SPDX-License-Identifier: Apache-2.0
 * The slot ring. Nothing here blocks; a system call is made only when a page of the ring is
 * used for the first time. */
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { PAGE = 4096, HEADER = sizeof(transport_frame) };

/* ---- Producer ---------------------------------------------------------------- */

/* Pages of the file come to exist here, where a full machine is an error, and not at the
 * first touch, where it would be a SIGBUS. Slots that only ever carry little stay small. */
static ring_status commit(slots_producer *p, size_t index, size_t bytes)
{
    const size_t start = offsetof(slots_ring, slot) + index * sizeof(slot);
    const size_t begin = start / PAGE * PAGE;
    const size_t end = (start + bytes + PAGE - 1) / PAGE * PAGE;
    int result;
    do
        result = fallocate(p->file, 0, (off_t)begin, (off_t)(end - begin));
    while (result != 0 && errno == EINTR);
    if (result != 0)
        return fail(RING_ERR_MEMORY, "committing %zu bytes of shared memory: %m", end - begin);
    p->committed[index] = end - start;
    return RING_OK;
}

ring_status slots_produce(slots_producer *p, slots_ring *ring, int file)
{
    *p = (slots_producer){.ring = ring, .file = file};
    for (size_t i = 0; i < SLOTS; i++) {
        p->committed[i] = sizeof(slot);
        if (file >= 0)
            RING_TRY(commit(p, i, HEADER));
    }
    return RING_OK;
}

/* A counter that cannot be right is ignored: the ring stays full, and whoever waits for it
 * has a deadline. */
bool slots_room(slots_producer *p)
{
    if (p->produced - p->consumed < SLOTS)
        return true;
    const uint32_t seen = atomic_load(&p->ring->consumed);
    if (p->produced - seen > SLOTS)
        return false;
    p->consumed = seen;
    return p->produced - seen < SLOTS;
}

void *slots_payload(slots_producer *p, size_t bytes)
{
    const size_t index = p->produced % SLOTS;
    if (HEADER + bytes > p->committed[index] && commit(p, index, HEADER + bytes) != RING_OK)
        return NULL;
    return p->ring->slot[index].payload;
}

bool slots_publish(slots_producer *p, const transport_frame *frame, const void *payload)
{
    slot *s = &p->ring->slot[p->produced % SLOTS];
    const size_t bytes = slots_carried(frame);
    if (bytes > 0 && payload != s->payload)
        memcpy(s->payload, payload, bytes);
    const size_t turn = sizeof frame->turn;
    memcpy((char *)&s->frame + turn, (const char *)frame + turn, sizeof *frame - turn);
    __atomic_store_n(&s->frame.turn, ++p->produced, __ATOMIC_SEQ_CST);
    return atomic_load(&p->ring->consumer_sleeps) != 0 &&
           atomic_exchange(&p->ring->consumer_sleeps, 0) != 0;
}

size_t slots_memory(const slots_producer *p)
{
    size_t bytes = offsetof(slots_ring, slot);
    for (size_t i = 0; i < SLOTS; i++)
        bytes += p->committed[i];
    return bytes;
}

/* ---- Consumer ---------------------------------------------------------------- */

void slots_consume_from(slots_consumer *c, slots_ring *ring)
{
    *c = (slots_consumer){.ring = ring};
}

const slot *slots_oldest(const slots_consumer *c)
{
    const slot *s = &c->ring->slot[c->consumed % SLOTS];
    return __atomic_load_n(&s->frame.turn, __ATOMIC_SEQ_CST) == c->consumed + 1 ? s : NULL;
}

bool slots_consume(slots_consumer *c)
{
    atomic_store(&c->ring->consumed, ++c->consumed);
    return atomic_load(&c->ring->producer_sleeps) != 0 &&
           atomic_exchange(&c->ring->producer_sleeps, 0) != 0;
}
