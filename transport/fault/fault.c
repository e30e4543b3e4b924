/* SPDX-License-Identifier: Apache-2.0
 * Implements the calls of a link that injects faults. It drops frames and falsifies headers when it
 * sends, and delays and truncates frames when it receives, so wrapping one end is enough. */
#include "fault.h"

#include "regions.h"

#include <stdlib.h>
#include <string.h>

enum { DICE_DROP = 1, DICE_TRUNCATE, DICE_LIE };

static ring_status fault_break(fault_link *l, ring_status status)
{
    l->broken = status;
    /* A longer text is truncated. */
    (void)text_format(l->text, sizeof l->text, "%s", fail_text());
    return status;
}

static void end_connection(fault_link *l)
{
    fault_hold_close(l);
    if (l->inner != NULL)
        l->inner->transport->close(l->inner);
    l->inner = NULL;
}

/* Called at the start of each call that returns a status. Ends the connection once the bytes of
 * "close" have moved. @return RING_OK, or the failure that broke the link, now or earlier. */
static ring_status verdict(fault_link *l)
{
    if (l->broken != RING_OK)
        return fail(l->broken, "%s", l->text);
    const uint64_t moved = l->head.bytes_sent + l->head.bytes_received;
    if (moved < l->spec.close)
        return RING_OK;
    end_connection(l);
    return fault_break(l, fail(RING_ERR_PEER,
                               "the connection to rank %d ended after %llu byte%s (fault)",
                               l->head.peer, (unsigned long long)moved,
                               plural((unsigned long long)moved)));
}

static bool inner_is_flushed(const fault_link *l)
{
    return l->inner->transport->flushed(l->inner) == l->inner->frames_sent;
}

/* Decides whether the next frame is dropped. @return false if it is dropped. */
static bool is_delivered(fault_link *l)
{
    if (fault_chance(l, l->spec.drop, DICE_DROP, l->head.frames_sent)) {
        l->dropped++;
        return false;
    }
    if (inner_is_flushed(l))
        l->dropped_flushed = l->dropped;
    return true;
}

static ring_status fault_send(transport_link *link, const transport_frame *frame,
                              const void *payload, bool copy)
{
    fault_link *l = (fault_link *)link;
    transport_frame header = *frame;
    RING_TRY(verdict(l));
    if (fault_chance(l, l->spec.lie, DICE_LIE, l->head.frames_sent))
        fault_lie(l, &header);
    if (is_delivered(l))
        RING_TRY(l->inner->transport->send(l->inner, &header, payload, copy));
    l->head.frames_sent++;
    l->head.bytes_sent += transport_carried(frame);
    return RING_OK;
}

/* Dropping a put drops both its frame and its write. */
static ring_status fault_put(transport_link *link, const transport_frame *frame, const void *data,
                             uint64_t dst_ref)
{
    fault_link *l = (fault_link *)link;
    RING_TRY(verdict(l));
    if (is_delivered(l))
        RING_TRY(l->inner->transport->put(l->inner, frame, data, dst_ref));
    l->head.frames_sent++;
    return RING_OK;
}

static ring_status fault_get(transport_link *link, void *dst, uint64_t ref, size_t bytes,
                             ticket *over)
{
    fault_link *l = (fault_link *)link;
    RING_TRY(verdict(l));
    return l->inner->transport->get(l->inner, dst, ref, bytes, over);
}

static bool fault_announced(transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    return l->inner == NULL || l->inner->transport->announced == NULL ||
           l->inner->transport->announced(l->inner);
}

static void fault_stop(transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    if (l->inner != NULL && l->inner->transport->stop != NULL)
        l->inner->transport->stop(l->inner);
}

static void *fault_reserve(transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    return l->broken == RING_OK ? l->inner->transport->reserve(l->inner) : NULL;
}

/* Frames count as flushed in order, so a dropped frame counts once all earlier frames do. */
static uint64_t fault_flushed(const transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    if (l->inner == NULL)
        return l->head.frames_sent;
    const uint64_t vanished = inner_is_flushed(l) ? l->dropped : l->dropped_flushed;
    return l->inner->transport->flushed(l->inner) + vanished;
}

static void fault_release(transport_link *link, uint64_t messages)
{
    const fault_link *l = (const fault_link *)link;
    if (l->inner != NULL)
        l->inner->transport->release(l->inner, messages);
}

static uint64_t fault_released(const transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    return l->inner != NULL ? l->inner->transport->released(l->inner) : UINT64_MAX;
}

static ring_status fault_progress(transport_link *link)
{
    fault_link *l = (fault_link *)link;
    RING_TRY(verdict(l));
    return l->inner->transport->progress(l->inner);
}

static ring_status frame_ended(fault_link *l)
{
    return fault_break(l, fail(RING_ERR_PEER,
                               "a frame of rank %d ended after %zu of %zu byte%s (fault)",
                               l->head.peer, l->carried / 2, l->carried, plural(l->carried)));
}

static ring_status fault_peek(transport_link *link, const transport_frame **frame,
                              const void **payload)
{
    fault_link *l = (fault_link *)link;
    RING_TRY(verdict(l));
    if (l->truncated)
        return frame_ended(l);
    RING_TRY(l->inner->transport->peek(l->inner, frame, payload));
    if (fault_hold_back(l))
        return RING_IN_PROGRESS;
    l->carried = transport_carried(*frame);
    l->truncated = l->carried > 0 &&
                   fault_chance(l, l->spec.truncate, DICE_TRUNCATE, l->head.frames_received);
    if (!l->truncated)
        return RING_OK;
    if (transport_behind(*frame) == 0)
        return frame_ended(l); /* the payload is in the header, which cannot be half received */
    *payload = NULL;
    return RING_OK;
}

/* Delivers the first half of the payload, then breaks the link. */
static ring_status pull_half(fault_link *l, void *dst)
{
    const transport_frame *frame;
    const void *payload;
    RING_TRY(l->inner->transport->peek(l->inner, &frame, &payload));
    if (payload == NULL)
        return RING_IN_PROGRESS;
    memcpy(dst, payload, l->carried / 2);
    return frame_ended(l);
}

static ring_status fault_pull(transport_link *link, void *dst)
{
    fault_link *l = (fault_link *)link;
    RING_TRY(verdict(l));
    return l->truncated ? pull_half(l, dst) : l->inner->transport->pull(l->inner, dst);
}

static void fault_consume(transport_link *link)
{
    fault_link *l = (fault_link *)link;
    if (l->broken != RING_OK)
        return;
    l->inner->transport->consume(l->inner);
    fault_hold_next(l);
    l->truncated = false; /* the caller consumed the frame without reading its payload */
    l->head.frames_received++;
    l->head.bytes_received += l->carried;
}

/* With a delay there is no word to poll, because it would keep the reader of a held-back frame
 * awake. */
static const _Atomic uint32_t *fault_news(const transport_link *link, uint32_t *value)
{
    const fault_link *l = (const fault_link *)link;
    const bool in_time = l->inner != NULL && l->spec.delay <= 0;
    return in_time ? l->inner->transport->news(l->inner, value) : NULL;
}

/* Accelerator memory gets no reference, because the processor copies the payload of a truncated
 * frame and cannot access such memory. */
static uint64_t fault_ref(transport_link *link, const void *ptr, size_t bytes)
{
    const fault_link *l = (const fault_link *)link;
    if (region_accelerator(region_ref(ptr, 1)) != NULL)
        return 0;
    return l->inner != NULL ? l->inner->transport->ref(l->inner, ptr, bytes) : 0;
}

static void *fault_map(transport_link *link, uint64_t ref, size_t bytes)
{
    const fault_link *l = (const fault_link *)link;
    return l->inner != NULL ? l->inner->transport->map(l->inner, ref, bytes) : NULL;
}

static int fault_wake_fd(const transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    return l->inner != NULL ? fault_hold_fd(l) : -1;
}

static bool fault_arm(transport_link *link, bool wants_send)
{
    fault_link *l = (fault_link *)link;
    if (verdict(l) != RING_OK || l->truncated)
        return false;
    /* While a frame is held back, the inner link always has news, so only the timer counts. */
    const bool inner = wants_send || !fault_holds(l);
    return fault_hold_arm(l, inner) && (!inner || l->inner->transport->arm(l->inner, wants_send));
}

static void fault_disarm(transport_link *link)
{
    fault_link *l = (fault_link *)link;
    if (l->inner == NULL)
        return;
    l->inner->transport->disarm(l->inner);
    fault_hold_disarm(l);
}

static size_t fault_memory(const transport_link *link)
{
    const fault_link *l = (const fault_link *)link;
    return sizeof *l + (l->inner != NULL ? l->inner->transport->memory(l->inner) : 0);
}

static void fault_close(transport_link *link)
{
    fault_link *l = (fault_link *)link;
    end_connection(l);
    free(l);
}

static transport fault_table(const transport *inner)
{
    transport table = *inner; /* keeps the inner transport's powers and description */
    table.name = "fault";
    table.close = fault_close;
    table.send = fault_send;
    table.reserve = fault_reserve;
    table.flushed = fault_flushed;
    table.release = fault_release;
    table.released = fault_released;
    table.progress = fault_progress;
    table.peek = fault_peek;
    table.pull = fault_pull;
    table.consume = fault_consume;
    table.news = fault_news;
    table.ref = fault_ref;
    table.map = fault_map;
    table.put = fault_put;
    table.get = fault_get;
    table.announced = fault_announced;
    table.stop = fault_stop;
    table.wake_fd = fault_wake_fd;
    table.arm = fault_arm;
    table.disarm = fault_disarm;
    table.memory = fault_memory;
    return table;
}

ring_status transport_fault_wrap(transport_link *inner, const char *spec, transport_link **out)
{
    fault_link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        inner->transport->close(inner);
        return fail(RING_ERR_MEMORY, "no memory for a fault link");
    }
    l->hold = (fault_hold){.epoll = -1, .timer = -1};
    l->head = *inner;
    l->head.transport = &l->table;
    l->table = fault_table(inner->transport);
    l->inner = inner;
    ring_status status = fault_parse(spec, &l->spec);
    if (status == RING_OK)
        status = fault_hold_open(l);
    if (status != RING_OK) {
        fault_close(&l->head);
        return status;
    }
    *out = &l->head;
    return RING_OK;
}
