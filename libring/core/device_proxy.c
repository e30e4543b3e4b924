/* SPDX-License-Identifier: Apache-2.0
 * Passes frames and receipts between the boxes of accelerators and links, and checks what arrives:
 * a peer must not write outside of a box, or more frames than have places in it. */
#include "device_proxy.h"

#include "placeholder_link.h"
#include "progress_thread.h"
#include "regions.h"
#include "sleep.h"

#include <stdlib.h>
#include <string.h>

enum proxy_kind { PROXY_BYTES, PROXY_RECEIPT, PROXY_ROOM };

/* A lane of the links with one peer. */
typedef struct proxy_lane {
    accelerator_boxes box;
    uint64_t sent, arrived;     /* frames that were passed on, and that have arrived     */
    uint64_t sent_part;         /* bytes of the next frame that were passed on           */
    uint64_t at, part, whole;   /* of the frame that arrives: the place of its bytes in the box,
                                   bytes that have arrived, and all of its bytes          */
    uint64_t next_at;           /* the end of the bytes of the latest frame               */
    uint64_t messages;          /* whose last frames were passed on                       */
    device_receipt told, heard; /* latest receipts sent and received                      */
    uint64_t room;              /* refers to the peer's box; 0: the link does not put     */
} proxy_lane;

/* The payload of a frame with a receipt. */
typedef struct proxy_note {
    device_receipt receipt;
    uint64_t lane;
} proxy_note;

struct proxy_peer {
    channel *on;
    uint64_t frames_out, frames_in; /* frames of the link so far            */
    int32_t rooms_told;             /* lanes of which the peer can put bytes into the box */
    bool lost;                      /* the link has failed                  */
    proxy_lane *lanes;              /* [shape.lanes] */
};

struct device_proxy {
    int32_t count, next; /* peers; the first one that the next turn serves   */
    accelerator_shape shape;
    bool ends;       /* at work, also if no call is in flight: the communicator ends */
    char *memory[2]; /* registered with links that put; NULL: not registered         */
    struct proxy_peer peers[];
};

static struct device_proxy *proxy_of(const ring_comm *comm)
{
    const struct device_calls *d = comm->device_calls;
    return d != NULL ? d->proxy : NULL;
}

static bool is_bad(ring_status status)
{
    return status != RING_OK && status != RING_IN_PROGRESS;
}

/* ---- Sending --------------------------------------------------------------------------- */

static ring_status send_frame(struct proxy_peer *p, transport_frame *frame, enum proxy_kind kind,
                              const char *payload, uint64_t put_to)
{
    transport_link *l = p->on->link;
    frame->call = (uint16_t)kind;
    frame->message = p->frames_out;
    const ring_status status = put_to != 0 ? l->transport->put(l, frame, payload, put_to)
                                           : l->transport->send(l, frame, payload, false);
    p->on->proxy_full |= status == RING_IN_PROGRESS;
    p->frames_out += status == RING_OK;
    return status;
}

/* Tells the peer where its link can put bytes. If the link has no reference to a box now, it may
 * have one in a later turn. */
static ring_status send_rooms(struct proxy_peer *p, const accelerator_shape *shape)
{
    transport_link *l = p->on->link;
    for (; channel_transfers(p->on) && p->rooms_told < shape->lanes; p->rooms_told++) {
        transport_frame frame = {.flags = FRAME_LONG};
        frame.ext.bytes = frame.ext.count = frame.ext.src_ref = 0;
        frame.ext.dst_ref = l->transport->ref(l, p->lanes[p->rooms_told].box.in_bytes,
                                              shape->window);
        frame.ext.segment = (uint32_t)p->rooms_told;
        frame.ext.root = 0;
        if (frame.ext.dst_ref == 0)
            return RING_OK;
        RING_TRY(send_frame(p, &frame, PROXY_ROOM, NULL, 0));
    }
    return RING_OK;
}

/* @return true if the accelerator has taken or released more than the peer has been told. */
static bool has_receipt(const proxy_lane *l, device_receipt *now)
{
    const device_receipt *r = l->box.out_receipt;
    now->released = __atomic_load_n(&r->released, __ATOMIC_ACQUIRE);
    now->taken = __atomic_load_n(&r->taken, __ATOMIC_ACQUIRE); /* the accelerator writes it first */
    return now->taken != l->told.taken || now->released != l->told.released;
}

/* @return the next frame of the accelerator; NULL if it has not written one. */
static const device_frame *next_frame(const proxy_lane *l, const accelerator_shape *shape)
{
    const device_frame *f = &l->box.out[l->sent % shape->frames];
    return __atomic_load_n(&f->stamp, __ATOMIC_ACQUIRE) == l->sent + 1 ? f : NULL;
}

/* Sends a part of a frame, or all of it if the link can put it into the peer's box. The link reads
 * the bytes in the accelerator's box, which stay there until the peer's receipt. */
static ring_status send_part(struct proxy_peer *p, int32_t lane, const device_frame *f)
{
    proxy_lane *l = &p->lanes[lane];
    transport_link *link = p->on->link;
    const char *from = l->box.out_bytes + f->at + l->sent_part;
    const bool puts = l->room != 0 && l->sent_part == 0 && f->bytes >= REFERENCE_MIN_BYTES &&
                      link->transport->ref(link, from, f->bytes) != 0;
    const uint64_t left = f->bytes - l->sent_part;
    transport_frame frame = {.flags = FRAME_LONG, .signature = f->signature};
    frame.ext.bytes = puts || left < TRANSPORT_SEGMENT ? left : TRANSPORT_SEGMENT;
    frame.ext.count = f->call;
    frame.ext.src_ref = frame.ext.dst_ref = 0;
    frame.ext.segment = (uint32_t)lane << 1 | f->last;
    frame.ext.root = (int32_t)f->bytes;
    frame.flags |= puts ? FRAME_STORED : 0;
    RING_TRY(send_frame(p, &frame, PROXY_BYTES, from, puts ? l->room + f->at : 0));
    l->sent_part += frame.ext.bytes;
    p->on->comm->info.bytes_sent += frame.ext.bytes;
    comm_count_moved(p->on->comm, frame.ext.bytes);
    return RING_OK;
}

/* Sends the frames of a lane that are not sent yet. @param[out] moved  set to true if any were. */
static ring_status send_frames(struct proxy_peer *p, int32_t lane, const accelerator_shape *shape,
                               bool *moved)
{
    proxy_lane *l = &p->lanes[lane];
    const device_frame *f;
    while ((f = next_frame(l, shape)) != NULL && !comm_turn_is_over(p->on->comm)) {
        RING_TRY(send_part(p, lane, f));
        *moved = true;
        if (l->sent_part < f->bytes)
            continue;
        l->sent_part = 0;
        l->sent++;
        l->messages += f->last;
    }
    return RING_OK;
}

static ring_status send_receipts(struct proxy_peer *p, const accelerator_shape *shape, bool *moved)
{
    for (int32_t lane = 0; lane < shape->lanes; lane++) {
        device_receipt now;
        if (!has_receipt(&p->lanes[lane], &now))
            continue;
        const proxy_note note = {.receipt = now, .lane = (uint64_t)lane};
        transport_frame frame = {.length = sizeof note};
        memcpy(frame.data, &note, sizeof note);
        RING_TRY(send_frame(p, &frame, PROXY_RECEIPT, NULL, 0));
        p->lanes[lane].told = now;
        *moved = true;
    }
    return RING_OK;
}

static bool has_frames(const struct proxy_peer *p, const accelerator_shape *shape)
{
    for (int32_t lane = 0; lane < shape->lanes; lane++)
        if (next_frame(&p->lanes[lane], shape) != NULL)
            return true;
    return false;
}

static bool has_unsent(const struct proxy_peer *p, const accelerator_shape *shape)
{
    device_receipt now;
    for (int32_t lane = 0; lane < shape->lanes; lane++)
        if (has_receipt(&p->lanes[lane], &now))
            return true;
    return has_frames(p, shape);
}

/* ---- Receiving --------------------------------------------------------------------------- */

static ring_status unexpected(const struct proxy_peer *p, const transport_frame *f)
{
    return fail(RING_ERR_INTERNAL,
                "rank %d sent an unexpected frame of calls that GPUs run (kind %u, frame %llu of "
                "%llu, flags %u, length %u)",
                p->on->rank, f->call, (unsigned long long)f->message,
                (unsigned long long)p->frames_in, f->flags, f->length);
}

/* Begins to receive a frame of the accelerator. @return false if the box has no place for it. */
static bool begin_frame(proxy_lane *l, const accelerator_shape *shape, uint64_t whole)
{
    const uint64_t taken = __atomic_load_n(&l->box.out_receipt->taken, __ATOMIC_ACQUIRE);
    const uint64_t rounded = (whole + 15) / 16 * 16;
    if (whole > shape->window || l->arrived - taken >= shape->frames)
        return false;
    l->at = l->next_at + rounded <= shape->window ? l->next_at : 0;
    l->next_at = l->at + rounded;
    l->whole = whole;
    l->part = 0;
    return true;
}

/* Writes a complete frame, which the accelerator may then read. */
static void end_frame(proxy_lane *l, const accelerator_shape *shape, const transport_frame *of)
{
    device_frame *f = &l->box.in[l->arrived % shape->frames];
    f->call = of->ext.count;
    f->signature = of->signature;
    f->at = l->at;
    f->dst = 0;
    f->bytes = l->whole;
    f->way = DEVICE_CARRIED;
    f->last = of->ext.segment & 1;
    __atomic_store_n(&f->stamp, ++l->arrived, __ATOMIC_RELEASE);
    l->whole = UINT64_MAX;
}

static ring_status take_bytes(struct proxy_peer *p, const accelerator_shape *shape,
                              const transport_frame *f)
{
    transport_link *link = p->on->link;
    const uint32_t lane = f->ext.segment >> 1;
    const uint64_t whole = (uint32_t)f->ext.root, bytes = f->ext.bytes;
    const bool stored = f->flags == (FRAME_LONG | FRAME_STORED);
    if (lane >= (uint32_t)shape->lanes || (f->flags != FRAME_LONG && !stored))
        return unexpected(p, f);
    proxy_lane *l = &p->lanes[lane];
    if (l->whole == UINT64_MAX && !begin_frame(l, shape, whole))
        return unexpected(p, f);
    const uint64_t due = stored ? whole : min_size(whole - l->part, TRANSPORT_SEGMENT);
    if (whole != l->whole || bytes != due || due > whole - l->part)
        return unexpected(p, f);
    if (bytes > 0 && !stored)
        RING_TRY(link->transport->pull(link, l->box.in_bytes + l->at + l->part));
    l->part += bytes;
    p->on->comm->info.bytes_received += bytes;
    comm_count_moved(p->on->comm, bytes);
    if (l->part == whole)
        end_frame(l, shape, f);
    return RING_OK;
}

static ring_status take_receipt(struct proxy_peer *p, const accelerator_shape *shape,
                                const transport_frame *f)
{
    proxy_note n;
    if (f->flags != 0 || f->length != sizeof n)
        return unexpected(p, f);
    memcpy(&n, f->data, sizeof n);
    if (n.lane >= (uint32_t)shape->lanes)
        return unexpected(p, f);
    proxy_lane *l = &p->lanes[n.lane];
    const device_receipt now = n.receipt;
    if (now.taken < l->heard.taken || now.taken > l->sent || now.released < l->heard.released ||
        now.released > now.taken)
        return unexpected(p, f);
    l->heard = now;
    __atomic_store_n(&l->box.in_receipt->taken, now.taken, __ATOMIC_RELEASE);
    __atomic_store_n(&l->box.in_receipt->released, now.released, __ATOMIC_RELEASE);
    return RING_OK;
}

static ring_status take_room(struct proxy_peer *p, const accelerator_shape *shape,
                             const transport_frame *f)
{
    if (f->flags != FRAME_LONG || f->ext.bytes != 0 || f->ext.segment >= (uint32_t)shape->lanes ||
        !channel_transfers(p->on))
        return unexpected(p, f);
    p->lanes[f->ext.segment].room = f->ext.dst_ref;
    return RING_OK;
}

/* Consumes one frame of the link. @return RING_IN_PROGRESS if no whole frame has arrived. */
static ring_status take_frame(struct proxy_peer *p, const accelerator_shape *shape)
{
    transport_link *l = p->on->link;
    const transport_frame *f;
    const void *payload;
    RING_TRY(l->transport->peek(l, &f, &payload));
    if (f->message != p->frames_in || f->call > PROXY_ROOM)
        return unexpected(p, f);
    RING_TRY(f->call == PROXY_BYTES     ? take_bytes(p, shape, f)
             : f->call == PROXY_RECEIPT ? take_receipt(p, shape, f)
                                        : take_room(p, shape, f));
    l->transport->consume(l);
    p->frames_in++;
    return RING_OK;
}

/* ---- A turn -------------------------------------------------------------------------------- */

/* Sends to a peer whose link is open or has to be opened. */
static ring_status send_all(struct proxy_peer *p, const accelerator_shape *shape, bool *moved)
{
    channel *c = p->on;
    c->proxy_full = false;
    if (!c->dialed)
        return has_unsent(p, shape) ? channel_dial(c) : RING_OK;
    if (c->link == placeholder_link())
        return RING_OK;
    RING_TRY(send_rooms(p, shape));
    RING_TRY(send_receipts(p, shape, moved));
    for (int32_t lane = 0; lane < shape->lanes; lane++)
        RING_TRY(send_frames(p, lane, shape, moved));
    return RING_OK;
}

static ring_status receive_all(struct proxy_peer *p, const accelerator_shape *shape, bool *moved)
{
    ring_status status = RING_OK;
    while (status == RING_OK && !comm_turn_is_over(p->on->comm)) {
        status = take_frame(p, shape);
        *moved |= status == RING_OK;
    }
    return status;
}

/* Serves a peer. It may have ended its communicator when it had received all that it needs, so a
 * closed link is a failure only if frames are to be sent over it. */
static ring_status serve_peer(const struct device_proxy *proxy, struct proxy_peer *p, bool *moved)
{
    channel *c = p->on;
    const work *w = work_on_device_from(c->comm->works.first);
    ring_status status = RING_OK;
    if (!p->lost && c->link != placeholder_link()) {
        channel_activate(c);
        status = receive_all(p, &proxy->shape, moved);
    }
    if (!p->lost && !is_bad(status))
        status = send_all(p, &proxy->shape, moved);
    if (p->lost && has_frames(p, &proxy->shape))
        status = c->link->transport->progress(c->link); /* fails for the same reason as before */
    if (!is_bad(status))
        return RING_OK;
    const bool needed = status != RING_ERR_PEER || has_frames(p, &proxy->shape);
    p->lost = true;
    c->proxy_full = c->proxy_listens = false;
    if (!needed || (proxy->ends && w == NULL))
        return RING_OK;
    comm_fail_by(c->comm, w, c, status);
    return status;
}

/* Carried bytes do not count in the turn, so that calls that the host drives get their part. */
ring_status device_proxy_turn(ring_comm *comm, bool *moved)
{
    struct device_proxy *proxy = proxy_of(comm);
    if (proxy == NULL)
        return RING_OK;
    const bool works = comm->streams.carries || proxy->ends ||
                       work_on_device_from(comm->works.first) != NULL;
    const size_t before = comm->turn.bytes;
    for (int32_t i = 0; i < proxy->count; i++) {
        struct proxy_peer *p = &proxy->peers[(proxy->next + i) % proxy->count];
        p->on->proxy_listens = works && !p->lost;
        if (works)
            RING_TRY(serve_peer(proxy, p, moved));
    }
    proxy->next = (proxy->next + 1) % proxy->count;
    comm->turn.bytes = before;
    return RING_OK;
}

/* @return true if the peer has taken and released all that was sent to it, so that it sends nothing
 * more. */
static bool is_heard(const struct proxy_peer *p, const accelerator_shape *shape)
{
    bool heard = true;
    for (int32_t lane = 0; lane < shape->lanes; lane++) {
        const proxy_lane *l = &p->lanes[lane];
        heard = heard && l->heard.taken == l->sent && l->heard.released == l->messages;
    }
    return heard;
}

const channel *device_proxy_busy(const ring_comm *comm)
{
    const struct device_proxy *proxy = proxy_of(comm);
    for (int32_t i = 0; proxy != NULL && i < proxy->count; i++) {
        const struct proxy_peer *p = &proxy->peers[i];
        const transport_link *l = p->on->link;
        if (!p->lost &&
            (has_unsent(p, &proxy->shape) || l->transport->flushed(l) < l->frames_sent ||
             (proxy->ends && !is_heard(p, &proxy->shape))))
            return p->on;
    }
    return NULL;
}

void device_proxy_stay(ring_comm *comm)
{
    if (proxy_of(comm) == NULL)
        return;
    comm_lock(comm);
    orphans_count(comm, comm->streams.carries ? 0 : 1);
    comm->streams.carries = true;
    sleep_wake_callers(comm);
    comm_unlock(comm);
}

void device_proxy_end(ring_comm *comm)
{
    struct device_proxy *proxy = proxy_of(comm);
    if (proxy == NULL)
        return;
    orphans_count(comm, comm->streams.carries ? -1 : 0);
    comm->streams.carries = false;
    proxy->ends = true;
}

/* ---- Creation ------------------------------------------------------------------------------ */

static ring_status add_peer(ring_comm *comm, const struct device_calls *d, int rank)
{
    struct device_proxy *proxy = d->proxy;
    struct proxy_peer *p = &proxy->peers[proxy->count];
    RING_TRY(channel_get(comm, TRAFFIC_DEVICE, 0, rank, &p->on));
    p->lanes = calloc((size_t)proxy->shape.lanes, sizeof *p->lanes);
    if (p->lanes == NULL)
        return fail(RING_ERR_MEMORY, "connecting to GPUs of other hosts");
    proxy->count++;
    for (int lane = 0; lane < proxy->shape.lanes; lane++) {
        d->by->programs->boxes(d->seat, rank, lane, &p->lanes[lane].box);
        p->lanes[lane].whole = UINT64_MAX;
    }
    const accelerator_boxes *of = &p->lanes[0].box;
    for (int half = 0; half < 2 && comm->links.reaches && proxy->count == 1; half++)
        if (region_add(of->memory[half], of->bytes, REGION_PLAIN) == RING_OK)
            proxy->memory[half] = of->memory[half];
    return RING_OK;
}

ring_status device_proxy_new(ring_comm *comm, struct device_calls *d)
{
    if (!d->terms.far)
        return RING_OK;
    d->proxy = calloc(1, sizeof *d->proxy + (size_t)comm->ranks * sizeof(struct proxy_peer));
    if (d->proxy == NULL)
        return fail(RING_ERR_MEMORY, "connecting to GPUs of other hosts");
    d->proxy->shape = d->terms.shape;
    const int32_t here = plan_host_of(&comm->plan_world, comm->rank);
    ring_status status = RING_OK;
    comm_lock(comm);
    for (int r = 0; r < comm->ranks && status == RING_OK; r++)
        if (plan_host_of(&comm->plan_world, r) != here)
            status = add_peer(comm, d, r);
    comm_unlock(comm);
    return status;
}

void device_proxy_free(struct device_calls *d)
{
    struct device_proxy *proxy = d->proxy;
    if (proxy == NULL)
        return;
    for (int half = 0; half < 2; half++)
        if (proxy->memory[half] != NULL)
            (void)region_remove(proxy->memory[half]);
    for (int32_t i = 0; i < proxy->count; i++)
        free(proxy->peers[i].lanes);
    free(proxy);
    d->proxy = NULL;
}
