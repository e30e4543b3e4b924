/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements put and get between regions of the two ends. Both send the bytes in messages, which
 * the receiver stores in its own memory. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_pass.h"
#include "ucx_regions.h"
#include "ucx_state.h"

#include <stdlib.h>

uint64_t ucx_ref(transport_link *head, const void *ptr, size_t bytes)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    const bool open = ucx_state(l) == RING_OK;
    pthread_mutex_unlock(&hub.lock);
    return open ? ucx_reachable_ref(ptr, bytes) : 0;
}

/* ---- Putting ---------------------------------------------------------------------- */

static ring_status try_put(ucx_link *l, const transport_frame *frame, const void *data,
                           uint64_t dst_ref)
{
    const size_t bytes = frame->ext.bytes;
    RING_TRY(ucx_state(l));
    const uint64_t own = ucx_reachable_ref(data, bytes);
    if (frame->flags != (FRAME_LONG | FRAME_STORED) || (bytes > 0 && own == 0))
        return ucx_break(l, RING_ERR_INTERNAL,
                         "a put needs registered memory, and a frame with the flags LONG and "
                         "STORED");
    if (!ucx_is_known(l, dst_ref, bytes))
        return ucx_break(l, RING_ERR_PEER, "the peer referred to memory outside its regions");
    if (!ucx_fits(l, 0))
        ucx_pass();
    l->send.refused = !ucx_fits(l, 0);
    if (l->send.refused)
        return RING_IN_PROGRESS;
    ucx_posting *p = ucx_frame_posting(l, frame);
    if (p == NULL)
        return ucx_state(l);
    p->label.place = dst_ref;
    p->label.bytes = bytes;
    ucx_posting_lend(p, ucx_region_of(own), (void *)(uintptr_t)data);
    ucx_count_frame(l, frame);
    ucx_post(p, UCX_PUT, data, bytes);
    ucx_stir();
    return RING_OK;
}

ring_status ucx_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref)
{
    pthread_mutex_lock(&hub.lock);
    const ring_status status = try_put((ucx_link *)head, frame, data, dst_ref);
    pthread_mutex_unlock(&hub.lock);
    return status;
}

/* ---- Getting ---------------------------------------------------------------------- */

static ring_status try_get(ucx_link *l, const ucx_get *get, uint64_t ref)
{
    RING_TRY(ucx_state(l));
    if (!ucx_is_known(l, ref, get->bytes))
        return ucx_break(l, RING_ERR_PEER, "the peer referred to memory outside its regions");
    ucx_get *place = &l->gets.own[l->gets.begun % UCX_GETS];
    if (place->over != NULL)
        ucx_pass();
    l->send.refused_get = place->over != NULL;
    if (l->send.refused_get)
        return RING_IN_PROGRESS;
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return ucx_state(l);
    ticket_open(get->over);
    *place = *get;
    p->label.number = l->gets.begun++;
    p->label.place = ref;
    p->label.bytes = get->bytes;
    ucx_post(p, UCX_GET, NULL, 0);
    return RING_OK;
}

ring_status ucx_get_from(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over)
{
    ucx_link *l = (ucx_link *)head;
    const uint64_t own = ucx_reachable_ref(dst, bytes);
    const ucx_get get = {.over = over, .to = dst, .bytes = bytes, .region = ucx_region_of(own)};
    pthread_mutex_lock(&hub.lock);
    const ring_status status = own != 0 ? try_get(l, &get, ref)
                                        : ucx_break(l, RING_ERR_INTERNAL,
                                                    "the target of a get is not registered memory");
    pthread_mutex_unlock(&hub.lock);
    return status;
}
