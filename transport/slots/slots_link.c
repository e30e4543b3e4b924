/* SPDX-License-Identifier: Apache-2.0
 * The calls of a link over slot rings. */
#include "slots_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* How many quiet turns until the socket is looked at: tens of microseconds of spinning, or
 * sixteen sleeps. */
enum { QUIET_TURNS = 1024, QUIET_SLEEP = QUIET_TURNS / 16 };

void slots_link_init(slots_link *l, const transport *made_by, const transport_peer *peer,
                     slots_ring *in)
{
    l->head = (transport_link){.transport = made_by, .peer = peer->peer};
    l->fd = peer->fd;
    slots_consume_from(&l->in, in);
}

/* ---- Broken links -------------------------------------------------------------- */

static ring_status link_break(slots_link *l, ring_status status, const char *why)
{
    l->broken = status;
    l->why = why;
    return fail(status, "%s link to rank %d: %s", l->head.transport->name, l->head.peer, why);
}

static ring_status link_state(slots_link *l)
{
    if (l->broken != RING_OK)
        return link_break(l, l->broken, l->why);
    if (l->gone && l->oldest == NULL && slots_oldest(&l->in) == NULL)
        return link_break(l, RING_ERR_PEER, "the peer closed the connection: it ended, or was "
                          "killed; its own output or the launcher says why");
    return RING_OK;
}

/* ---- The socket ---------------------------------------------------------------- */

/* A full socket holds bells enough, and a closed one has nobody to wake. */
static void ring_bell(const slots_link *l)
{
    const ssize_t ignored = send(l->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
}

/* Takes rung bells away and learns whether the peer is still there. */
static void look_at_socket(slots_link *l)
{
    char bells[64];
    const ssize_t got = recv(l->fd, bells, sizeof bells, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        l->gone = true;
    l->quiet = 0;
}

ring_status slots_link_progress(transport_link *head)
{
    slots_link *l = (slots_link *)head;
    if (++l->quiet >= QUIET_TURNS)
        look_at_socket(l);
    return link_state(l);
}

/* ---- Sending ------------------------------------------------------------------- */

/* @return room for @p bytes of the next frame's payload, NULL: full or broken. */
static void *next_payload(slots_link *l, uint64_t bytes)
{
    if (link_state(l) != RING_OK)
        return NULL;
    if (bytes > TRANSPORT_SEGMENT) {
        link_break(l, RING_ERR_INTERNAL, "a frame to send carries more than a segment");
        return NULL;
    }
    if (!slots_room(&l->out))
        return NULL;
    void *room = slots_payload(&l->out, bytes);
    if (room == NULL)
        link_break(l, RING_ERR_MEMORY, "no memory for its slots");
    return room;
}

void *slots_link_reserve(transport_link *head)
{
    return next_payload((slots_link *)head, TRANSPORT_SEGMENT);
}

ring_status slots_link_send(transport_link *head, const transport_frame *frame,
                            const void *payload)
{
    slots_link *l = (slots_link *)head;
    const uint64_t bytes = slots_carried(frame);
    if (next_payload(l, bytes) == NULL)
        return l->broken != RING_OK ? l->broken : RING_IN_PROGRESS;
    if (slots_publish(&l->out, frame, payload))
        ring_bell(l);
    head->frames_sent++;
    head->bytes_sent += bytes;
    l->quiet = 0;
    return RING_OK;
}

uint64_t slots_link_flushed(const transport_link *head)
{
    return head->frames_sent; /* payloads were copied when they were sent */
}

/* ---- Receiving ----------------------------------------------------------------- */

static ring_status take_oldest(slots_link *l)
{
    const slot *oldest = slots_oldest(&l->in);
    if (oldest == NULL)
        return l->gone ? link_state(l) : RING_IN_PROGRESS;
    l->frame = oldest->frame;
    if (slots_carried(&l->frame) > TRANSPORT_SEGMENT)
        return link_break(l, RING_ERR_PEER, "a frame claims more bytes than a slot holds: the "
                          "peer overwrote shared memory");
    l->oldest = oldest;
    return RING_OK;
}

ring_status slots_link_peek(transport_link *head, const transport_frame **frame,
                            const void **payload)
{
    slots_link *l = (slots_link *)head;
    if (l->broken != RING_OK)
        return link_state(l);
    if (l->oldest == NULL)
        RING_TRY(take_oldest(l));
    *frame = &l->frame;
    *payload = slots_carried(&l->frame) > 0 ? l->oldest->payload : NULL;
    return RING_OK;
}

ring_status slots_link_pull(transport_link *head, void *dst)
{
    slots_link *l = (slots_link *)head;
    RING_TRY(link_state(l));
    memcpy(dst, l->oldest->payload, slots_carried(&l->frame));
    return RING_OK;
}

void slots_link_consume(transport_link *head)
{
    slots_link *l = (slots_link *)head;
    head->frames_received++;
    head->bytes_received += slots_carried(&l->frame);
    l->oldest = NULL;
    l->quiet = 0;
    if (slots_consume(&l->in))
        ring_bell(l);
}

/* ---- Sleeping ------------------------------------------------------------------ */

int slots_link_wake_fd(const transport_link *head)
{
    return ((const slots_link *)head)->fd;
}

static bool something_to_do(slots_link *l, bool wants_send)
{
    return l->broken != RING_OK || l->gone || (l->armed_in && slots_oldest(&l->in) != NULL) ||
           (wants_send && slots_room(&l->out));
}

/* Raise the flag first, then look: slots.h says why. Whoever has seen a frame and leaves it
 * there waits for something else, and later frames are behind it. */
bool slots_link_arm(transport_link *head, bool wants_send)
{
    slots_link *l = (slots_link *)head;
    l->armed_in = l->oldest == NULL;
    l->armed_out = wants_send;
    if (l->armed_in)
        atomic_store(&l->in.ring->consumer_sleeps, 1);
    if (l->armed_out)
        atomic_store(&l->out.ring->producer_sleeps, 1);
    if (!something_to_do(l, wants_send))
        return true;
    slots_link_disarm(head);
    return false;
}

/* Lowers a flag of ours. @return true if the peer did before: its bell rings, or will. */
static bool was_taken(_Atomic uint32_t *flag, bool armed)
{
    return armed && atomic_exchange(flag, 0) == 0;
}

/* A bell that rings only after this, or the end of the socket, wakes the next sleep for
 * nothing; after a few of those the socket is looked at. */
void slots_link_disarm(transport_link *head)
{
    slots_link *l = (slots_link *)head;
    const bool taken_in = was_taken(&l->in.ring->consumer_sleeps, l->armed_in);
    const bool taken_out = was_taken(&l->out.ring->producer_sleeps, l->armed_out);
    l->armed_in = l->armed_out = false;
    if (taken_in || taken_out)
        look_at_socket(l);
    else
        l->quiet += QUIET_SLEEP;
}
