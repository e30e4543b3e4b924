/* SPDX-License-Identifier: Apache-2.0
 *
 * Put and get: the regions of this end and of the peer.
 *
 * The heap is excluded. Its freed pages go back to the system, which UCX's registration cache does
 * not see: a later allocation there would be sent from, and put to, stale pages. */
#include "ucx.h"

#include <stdlib.h>

static uint16_t id_of(uint64_t ref)
{
    return (uint16_t)(ref >> REGION_OFFSET_BITS);
}

static uint64_t offset_of(uint64_t ref)
{
    return ref & ((UINT64_C(1) << REGION_OFFSET_BITS) - 1);
}

uint64_t ucx_extent_of(uint64_t ref)
{
    region r;
    return ref != 0 && region_find(ref, &r) && r.kind == REGION_PLAIN ? r.bytes : 0;
}

void *ucx_address(uint64_t ref, uint64_t bytes)
{
    return ucx_extent_of(ref) > 0 ? region_address(ref, (size_t)bytes) : NULL;
}

/* @return 0: not in a region that peers may access. */
static uint64_t reachable_ref(const void *ptr, size_t bytes)
{
    const uint64_t ref = region_ref(ptr, bytes);
    return ucx_extent_of(ref) > 0 ? ref : 0;
}

uint64_t ucx_ref(transport_link *head, const void *ptr, size_t bytes)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    const bool open = ucx_state(l) == RING_OK;
    pthread_mutex_unlock(&hub.lock);
    return open ? reachable_ref(ptr, bytes) : 0;
}

/* ---- Regions of the peer ---------------------------------------------------------- */

static ucx_extent *extent_of(const ucx_link *l, uint64_t ref)
{
    for (size_t i = 0; i < l->extent_count; i++)
        if (l->extents[i].region == id_of(ref))
            return &l->extents[i];
    return NULL;
}

bool ucx_learn(ucx_link *l, uint64_t ref, uint64_t extent)
{
    if (ref == 0 || extent == 0)
        return true;
    ucx_extent *at = extent_of(l, ref);
    if (at == NULL) {
        ucx_extent *more = realloc(l->extents, (l->extent_count + 1) * sizeof *more);
        if (more == NULL)
            return false;
        l->extents = more;
        at = &more[l->extent_count++];
        at->region = id_of(ref);
    }
    at->bytes = extent;
    return true;
}

static bool is_known(const ucx_link *l, uint64_t ref, size_t bytes)
{
    const ucx_extent *at = extent_of(l, ref);
    return at != NULL && bytes <= at->bytes && offset_of(ref) <= at->bytes - bytes;
}

/* ---- Putting ---------------------------------------------------------------------- */

static ring_status try_put(ucx_link *l, const transport_frame *frame, const void *data,
                           uint64_t dst_ref)
{
    const size_t bytes = frame->ext.bytes;
    RING_TRY(ucx_state(l));
    const uint64_t own = reachable_ref(data, bytes);
    if (frame->flags != (FRAME_LONG | FRAME_STORED) || (bytes > 0 && own == 0))
        return ucx_break(l, RING_ERR_INTERNAL, "what is to be put is not registered");
    if (!is_known(l, dst_ref, bytes))
        return ucx_break(l, RING_ERR_PEER, "it refers to memory outside of its regions");
    if (!ucx_fits(l, 0))
        ucx_pass();
    l->refused = !ucx_fits(l, 0);
    if (l->refused)
        return RING_IN_PROGRESS;
    ucx_posting *p = ucx_frame_posting(l, frame);
    if (p == NULL)
        return ucx_state(l);
    p->label.place = dst_ref;
    p->label.bytes = bytes;
    ucx_posting_lend(p, id_of(own), (void *)(uintptr_t)data);
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
    if (!is_known(l, ref, get->bytes))
        return ucx_break(l, RING_ERR_PEER, "it refers to memory outside of its regions");
    ucx_get *place = &l->gets[l->gets_begun % UCX_GETS];
    if (place->over != NULL)
        ucx_pass();
    l->refused_get = place->over != NULL;
    if (l->refused_get)
        return RING_IN_PROGRESS;
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return ucx_state(l);
    ticket_open(get->over);
    *place = *get;
    p->label.number = l->gets_begun++;
    p->label.place = ref;
    p->label.bytes = get->bytes;
    ucx_post(p, UCX_GET, NULL, 0);
    return RING_OK;
}

ring_status ucx_get_from(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over)
{
    ucx_link *l = (ucx_link *)head;
    const uint64_t own = reachable_ref(dst, bytes);
    const ucx_get get = {.over = over, .to = dst, .bytes = bytes, .region = id_of(own)};
    pthread_mutex_lock(&hub.lock);
    const ring_status status = own != 0 ? try_get(l, &get, ref)
                                        : ucx_break(l, RING_ERR_INTERNAL,
                                                    "what is to be got has no registered place");
    pthread_mutex_unlock(&hub.lock);
    return status;
}

void ucx_got(ucx_link *l, uint64_t number, ring_status status)
{
    ucx_get *get = &l->gets[number % UCX_GETS];
    if (get->over != NULL)
        ticket_close(get->over, status);
    *get = (ucx_get){0};
    l->gets_over++;
    ucx_rouse(l);
}

void ucx_gets_end(ucx_link *l, ring_status status)
{
    for (size_t i = 0; i < UCX_GETS; i++) {
        if (l->gets[i].over == NULL || l->gets[i].lands)
            continue;
        ticket_close(l->gets[i].over, status);
        l->gets[i] = (ucx_get){0};
        l->gets_over++;
    }
}

/* ---- Gets of the peer ------------------------------------------------------------- */

static void serve(ucx_link *l, const ucx_label *wanted)
{
    const void *from = ucx_address(wanted->place, wanted->bytes);
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return;
    p->label.number = wanted->number;
    p->label.bytes = wanted->bytes;
    if (from == NULL) {
        ucx_post(p, UCX_REFUSAL, NULL, 0);
        return;
    }
    ucx_posting_lend(p, id_of(wanted->place), (void *)(uintptr_t)from);
    l->serving++;
    ucx_post(p, UCX_DATA, from, (size_t)wanted->bytes);
}

void ucx_serve(ucx_link *l)
{
    while (l->asked_count > 0 && l->state == RING_OK) {
        const ucx_label wanted = l->asked_for[l->asked_first];
        l->asked_first = (l->asked_first + 1) % UCX_GETS;
        l->asked_count--;
        serve(l, &wanted);
    }
}
