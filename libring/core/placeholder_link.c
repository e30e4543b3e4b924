/* SPDX-License-Identifier: Apache-2.0
 * Implements the link that a channel has before its socket arrives, and the request for the socket.
 * The link accepts and delivers nothing, so works wait on such a channel as on any other. */
#include "placeholder_link.h"

/* ---- The link ------------------------------------------------------------------------------ */

static void no_close(transport_link *l)
{
    (void)l;
}

static ring_status no_send(transport_link *l, const transport_frame *frame, const void *payload,
                           bool copy)
{
    (void)l, (void)frame, (void)payload, (void)copy;
    return RING_IN_PROGRESS;
}

static void *no_reserve(transport_link *l)
{
    (void)l;
    return NULL;
}

static uint64_t no_count(const transport_link *l)
{
    (void)l;
    return 0;
}

static ring_status no_progress(transport_link *l)
{
    (void)l;
    return RING_OK;
}

static ring_status no_peek(transport_link *l, const transport_frame **frame, const void **payload)
{
    (void)l, (void)frame, (void)payload;
    return RING_IN_PROGRESS;
}

static const _Atomic uint32_t *no_news(const transport_link *l, uint32_t *value)
{
    (void)l, (void)value;
    return NULL;
}

static uint64_t no_ref(transport_link *l, const void *ptr, size_t bytes)
{
    (void)l, (void)ptr, (void)bytes;
    return 0;
}

static int no_wake_fd(const transport_link *l)
{
    (void)l;
    return -1;
}

/* A thread may sleep on the link, because the arrival of the socket wakes all sleepers. */
static bool sleep_on(transport_link *l, bool wants_send)
{
    (void)l, (void)wants_send;
    return true;
}

static size_t no_memory(const transport_link *l)
{
    (void)l;
    return 0;
}

transport_link *placeholder_link(void)
{
    static const transport none = {
        .name = "placeholder",
        .powers = TRANSPORT_COPIES,
        .close = no_close,
        .send = no_send,
        .reserve = no_reserve,
        .flushed = no_count,
        .released = no_count,
        .progress = no_progress,
        .peek = no_peek,
        .news = no_news,
        .ref = no_ref,
        .wake_fd = no_wake_fd,
        .arm = sleep_on,
        .disarm = no_close,
        .memory = no_memory,
    };
    static transport_link link = {.transport = &none, .peer = -1};
    return &link;
}

/* ---- The socket ---------------------------------------------------------------------------- */

ring_status channel_dial(channel *c)
{
    ring_comm *comm = c->comm;
    uint16_t number;
    const transport *t = links_strongest(comm, comm->rank, c->rank, &number);
    const control_purpose purpose = {.traffic = (uint16_t)c->traffic,
                                     .index = (uint16_t)c->index,
                                     .transport = number,
                                     .local = (t->powers & (TRANSPORT_SAME_PROCESS |
                                                            TRANSPORT_SAME_HOST)) != 0};
    c->dialed = true;
    return control_dial(comm->world, c->rank, &purpose, clock_now() + comm->settings.timeout);
}
