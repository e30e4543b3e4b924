/* SPDX-License-Identifier: Apache-2.0
 * Sends active messages, and handles the messages that UCP delivers. Handlers only store data and
 * record that an answer is needed; the next pass (ucx_pass.c) sends the answer. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_regions.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* ---- Postings --------------------------------------------------------------------- */

ucx_posting *ucx_posting_new(ucx_link *l)
{
    ucx_posting *p = l->postings.spare;
    if (p != NULL) {
        l->postings.spare = p->next;
    } else {
        p = malloc(sizeof *p);
        if (p == NULL) {
            ucx_doom(l, RING_ERR_MEMORY, "no memory for a message");
            return NULL;
        }
        l->postings.count++;
    }
    *p = (ucx_posting){.link = l};
    return p;
}

void ucx_posting_lend(ucx_posting *p, uint16_t region_id, void *memory)
{
    p->region = region_id;
    p->memory = memory;
    p->previous = NULL;
    p->next = hub.lending;
    if (p->next != NULL)
        p->next->previous = p;
    hub.lending = p;
    p->link->postings.lent++;
}

/* Ends a posting, and keeps it for reuse. */
static void keep_spare(ucx_posting *p)
{
    if (p->memory != NULL) { /* undo ucx_posting_lend() */
        *(p->previous != NULL ? &p->previous->next : &hub.lending) = p->next;
        if (p->next != NULL)
            p->next->previous = p->previous;
        p->link->postings.lent--;
    }
    p->next = p->link->postings.spare;
    p->link->postings.spare = p;
}

void ucx_postings_free(ucx_link *l)
{
    while (l->postings.spare != NULL) {
        ucx_posting *p = l->postings.spare;
        l->postings.spare = p->next;
        free(p);
    }
}

/* ---- Sending ---------------------------------------------------------------------- */

/* Ends a send, whose result is @p status. */
static void send_ended(ucx_posting *p, ucs_status_t status)
{
    ucx_link *l = p->link;
    l->postings.flying--;
    switch ((ucx_kind)p->label.kind) {
    case UCX_FRAME:
    case UCX_PUT:
        l->out->done[p->label.number % UCX_SLOTS] = true;
        ucx_count_done(l);
        break;
    case UCX_DATA:
        l->gets.serving--;
        break;
    case UCX_WORDS:
        l->recv.announcing = false;
        if (l->recv.released != l->recv.announced_released)
            ucx_owe(l);
        break;
    case UCX_HELLO:
        l->opening.helloed = true;
        break;
    case UCX_GET:
    case UCX_REFUSAL:
        break;
    }
    if (status != UCS_OK && status != UCS_ERR_CANCELED)
        ucx_doom(l, RING_ERR_PEER, "UCX could not send to the peer: %s",
                 ucx.ucs_status_string(status));
    if (l->closed)
        ucx_make_due(l);
    keep_spare(p);
}

/* Called by UCP. */
static void on_sent(void *request, ucs_status_t status, void *posting)
{
    ucx.ucp_request_free(request);
    send_ended(posting, status);
}

/* Writes the status words and the receiver's token into the label. */
static void write_words(ucx_link *l, ucx_label *label)
{
    memcpy(label->token, l->opening.theirs.token, sizeof label->token);
    label->link = l->opening.theirs.link;
    label->taken = l->recv.announced_taken = l->recv.slots;
    label->received = l->recv.announced_received = l->recv.received;
    label->released = l->recv.announced_released = l->recv.released;
    l->recv.announced_bytes = l->recv.bytes;
    l->recv.owes = false;
}

void ucx_post(ucx_posting *p, ucx_kind kind, const void *data, size_t bytes)
{
    ucx_link *l = p->link;
    /* UCX may leave the data of puts and gets in place until the receiver fetches it. */
    const bool may_wait = kind == UCX_PUT || kind == UCX_DATA;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = (may_wait ? 0u : (uint32_t)UCP_AM_SEND_FLAG_EAGER) |
                 (kind == UCX_HELLO ? (uint32_t)UCP_AM_SEND_FLAG_REPLY : 0u),
        .cb.send = on_sent,
        .user_data = p};
    p->label.kind = (uint8_t)kind;
    write_words(l, &p->label);
    l->postings.flying++;
    const ucs_status_ptr_t request = l->route == NULL || l->route->status != RING_OK
                                         ? UCS_STATUS_PTR(UCS_ERR_CANCELED)
                                         : ucx.ucp_am_send_nbx(l->route->ep, UCX_MESSAGE, &p->label,
                                                               ucx_label_bytes(kind), data, bytes,
                                                               &param);
    if (request == NULL || UCS_PTR_IS_ERR(request))
        send_ended(p, UCS_PTR_STATUS(request));
}

/* At most one such message is in flight; the next one carries later changes. It is not sent to a
 * peer that has closed its socket: its host would answer with a reset, and UCX would lose data that
 * has arrived from it and is not read yet. */
void ucx_announce(ucx_link *l, bool asks)
{
    if (l->recv.announcing || l->state != RING_OK || ucx_has_left(l))
        return;
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return;
    l->recv.announcing = true;
    p->label.asks = asks;
    ucx_post(p, UCX_WORDS, NULL, 0);
}

/* ---- Storing received data -------------------------------------------------------- */

/* Writes the header of a completely received frame into its slot, which makes it visible to
 * ucx_peek(). */
static void show(ucx_link *l, const ucx_label *label)
{
    transport_frame *slot = &l->in->slot[label->number % UCX_SLOTS];
    transport_frame frame = label->frame;
    l->in->place[label->number % UCX_SLOTS] = (uint32_t)label->place;
    memcpy((char *)slot + sizeof slot->stamp, (char *)&frame + sizeof frame.stamp,
           sizeof frame - sizeof frame.stamp);
    __atomic_store_n(&slot->stamp, (uint32_t)label->number + 1, __ATOMIC_RELEASE);
    while (l->recv.received < l->recv.slots + UCX_SLOTS &&
           l->in->slot[l->recv.received % UCX_SLOTS].stamp == (uint32_t)l->recv.received + 1)
        l->recv.received++;
    if (label->asks)
        ucx_owe(l);
    ucx_rouse(l);
}

/* Ends the receiving of data, whose result is @p status. */
static void landed(ucx_posting *p, ucs_status_t status)
{
    ucx_link *l = p->link;
    const ucx_label label = p->label;
    keep_spare(p);
    l->postings.flying--;
    if (l->closed)
        ucx_make_due(l);
    if (status != UCS_OK)
        ucx_doom(l, RING_ERR_PEER, "UCX could not fetch the data that the peer sent: %s",
                 ucx.ucs_status_string(status));
    if (label.kind == UCX_DATA)
        ucx_got(l, label.number, status == UCS_OK ? RING_OK : RING_ERR_PEER);
    else if (status == UCS_OK && l->state == RING_OK)
        show(l, &label);
}

/* Called by UCP. */
static void on_landed(void *request, ucs_status_t status, size_t bytes, void *posting)
{
    (void)bytes;
    ucx.ucp_request_free(request);
    landed(posting, status);
}

void ucx_land(ucx_posting *p)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.recv_am = on_landed,
                                       .user_data = p};
    const ucs_status_ptr_t request = ucx.ucp_am_recv_data_nbx(hub.worker, p->arriving, p->memory,
                                                              p->label.bytes, &param);
    if (request == NULL || UCS_PTR_IS_ERR(request))
        landed(p, UCS_PTR_STATUS(request));
}

void ucx_land_nothing(ucx_link *l)
{
    while (l->postings.landing != NULL) {
        ucx_posting *p = l->postings.landing;
        l->postings.landing = p->next_landing;
        ucx.ucp_am_data_release(hub.worker, p->arriving);
        l->postings.flying--;
        keep_spare(p);
    }
}

/* Stores a message's data at @p to. If the bytes have arrived, copies them; otherwise the next pass
 * makes UCP fetch them.
 * @param id       the region that contains @p to.
 * @param data     the bytes, or UCP's descriptor of bytes that have not arrived.
 * @param is_here  the bytes have arrived. */
static ucs_status_t land(ucx_link *l, const ucx_label *label, void *to, uint16_t id, void *data,
                         bool is_here)
{
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return UCS_OK;
    p->label = *label;
    p->arriving = data;
    l->postings.flying++;
    if (is_here) {
        if (label->bytes > 0)
            memcpy(to, data, label->bytes);
        landed(p, UCS_OK);
        return UCS_OK;
    }
    ucx_posting_lend(p, id, to);
    p->next_landing = l->postings.landing;
    l->postings.landing = p;
    ucx_make_due(l);
    return UCS_INPROGRESS;
}

/* ---- Receiving -------------------------------------------------------------------- */

/* Breaks the link after an invalid message. */
static ucs_status_t protocol_error(ucx_link *l, const char *what)
{
    ucx_doom(l, RING_ERR_PEER, "the peer sent an invalid message: %s", what);
    return UCS_OK;
}

/* Stores @p value if it is greater than the word. @return true if it is. */
static bool raise_word(_Atomic uint64_t *word, uint64_t value)
{
    if (value <= atomic_load_explicit(word, memory_order_relaxed))
        return false;
    atomic_store_explicit(word, value, memory_order_release);
    return true;
}

/* Reads the peer's status words. Messages may overtake each other, so smaller values are old and
 * are ignored. @return false if the values are impossible. */
static bool read_words(ucx_link *l, const ucx_label *label)
{
    if (label->received > l->send.slots || label->taken > label->received)
        return false;
    const bool news = raise_word(&l->peer.acked, label->received) |
                      raise_word(&l->peer.taken, label->taken) |
                      raise_word(&l->peer.released, label->released);
    if (news) {
        l->grace = true;
        ucx_rouse(l);
    }
    if (label->asks && label->kind == UCX_WORDS)
        ucx_owe(l);
    return true;
}

/* @return true if there is a slot for frame @p number, and the frame has not arrived yet. */
static bool is_awaited(const ucx_link *l, uint64_t number)
{
    return number >= l->recv.slots && number < l->recv.slots + UCX_SLOTS &&
           l->in->slot[number % UCX_SLOTS].stamp != (uint32_t)number + 1;
}

static ucs_status_t handle_frame(ucx_link *l, const ucx_label *label, const void *data,
                                 size_t bytes, bool is_here)
{
    const transport_frame *frame = &label->frame;
    if (!is_here || !is_awaited(l, label->number) ||
        !transport_is_sound(frame, FRAME_LONG | FRAME_REF) || transport_behind(frame) != bytes)
        return protocol_error(l, "a damaged frame");
    if (label->place > UCX_PAYLOAD - TRANSPORT_SEGMENT || label->place % RING_CACHE_LINE != 0)
        return protocol_error(l, "a payload at an invalid offset");
    if (frame->flags & FRAME_LONG &&
        (!ucx_learn(l, frame->flags & FRAME_REF ? frame->ext.src_ref : 0, label->src_extent) ||
         !ucx_learn(l, frame->ext.dst_ref, label->dst_extent)))
        return protocol_error(l, "no memory to record the regions that it announces");
    if (bytes > 0)
        memcpy(l->in->payload + label->place, data, bytes);
    show(l, label);
    return UCS_OK;
}

static ucs_status_t handle_put(ucx_link *l, const ucx_label *label, void *data, size_t bytes,
                               bool is_here)
{
    void *to = ucx_address(label->place, label->bytes);
    if (to == NULL || bytes != label->bytes || bytes != label->frame.ext.bytes ||
        label->frame.flags != (FRAME_LONG | FRAME_STORED) || !is_awaited(l, label->number))
        return protocol_error(l, "a put outside the registered memory of this rank");
    return land(l, label, to, (uint16_t)(label->place >> REGION_OFFSET_BITS), data, is_here);
}

static ucs_status_t handle_data(ucx_link *l, const ucx_label *label, void *data, size_t bytes,
                                bool is_here)
{
    ucx_get *get = &l->gets.own[label->number % UCX_GETS];
    if (label->number >= l->gets.begun || get->over == NULL || get->lands || bytes != get->bytes ||
        bytes != label->bytes)
        return protocol_error(l, "data that was not requested");
    get->lands = true;
    return land(l, label, get->to, get->region, data, is_here);
}

static ucs_status_t handle(ucx_link *l, const ucx_label *label, void *data, size_t bytes,
                           bool is_here)
{
    if (!read_words(l, label))
        return protocol_error(l, "it acknowledges frames that were not sent");
    switch (label->kind) {
    case UCX_HELLO:
    case UCX_WORDS:
        return UCS_OK;
    case UCX_FRAME:
        return handle_frame(l, label, data, bytes, is_here);
    case UCX_PUT:
        return handle_put(l, label, data, bytes, is_here);
    case UCX_GET:
        if (l->gets.asked_count == UCX_GETS)
            return protocol_error(l, "more gets than may be in flight");
        l->gets.asked[(l->gets.asked_first + l->gets.asked_count++) % UCX_GETS] = *label;
        ucx_make_due(l);
        return UCS_OK;
    case UCX_DATA:
        return handle_data(l, label, data, bytes, is_here);
    case UCX_REFUSAL:
        ucx_doom(l, RING_ERR_PEER, "the peer referred to memory that it has deregistered since");
        return UCS_OK;
    default:
        return protocol_error(l, "an unknown kind of message");
    }
}

/* @return true if the link accepts the message. Over a socket connection, the first message also
 * gives the link its route. */
static bool is_open_to(ucx_link *l, const ucx_label *label, const ucp_am_recv_param_t *param)
{
    if (l->closed || l->doom != RING_OK || (l->state != RING_OK && l->state != RING_IN_PROGRESS))
        return false;
    if (!l->opening.greeted) { /* the message overtook the greeting */
        l->opening.heard = true;
        return label->kind == UCX_HELLO;
    }
    if (l->route == NULL && l->opening.by_socket &&
        (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        ucx_route *route = ucx_route_of(l->opening.theirs.hub, param->reply_ep);
        if (route != NULL)
            ucx_route_use(l, route);
        l->opening.answers = route != NULL;
        ucx_make_due(l);
    }
    l->opening.heard = true;
    ucx_rouse(l);
    return true;
}

ucs_status_t ucx_on_message(void *unused, const void *header, size_t header_bytes, void *data,
                            size_t bytes, const ucp_am_recv_param_t *param)
{
    ucx_label label = {0};
    (void)unused;
    if (header_bytes < offsetof(ucx_label, src_extent) || header_bytes > sizeof label)
        return UCS_OK;
    memcpy(&label, header, header_bytes);
    ucx_link *l = label.link < hub.capacity ? hub.links[label.link] : NULL;
    if (l == NULL || crypto_verify_16(label.token, l->token) != 0 ||
        header_bytes != ucx_label_bytes((ucx_kind)label.kind) || !is_open_to(l, &label, param))
        return UCS_OK; /* dropped */
    const bool is_here = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    return handle(l, &label, data, bytes, is_here);
}
