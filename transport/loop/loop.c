/* SPDX-License-Identifier: Apache-2.0
 *
 * loop: ranks as threads of one process. The reference among the transports: all memory is
 * already shared, so a reference is a pointer.
 *
 * Each end makes the ring that it sends through, offers it under a lock, and tells the peer
 * where; the peer claims it. A ring is freed by the last end that holds it, so either may
 * close first; one that was never claimed goes with its maker. What comes over the socket is
 * only looked up among the offers, never followed.
 */
#include "greeting.h"
#include "slots_link.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct loop_ring {
    slots_ring slots;
    int users;              /* ends that hold it            */
    struct loop_ring *next; /* among the offers             */
} loop_ring;

typedef struct loop_link {
    slots_link slots; /* first: a transport_link is a loop_link */
    loop_ring *out, *in;
} loop_link;

static struct {
    pthread_mutex_t lock; /* of all rings' `users` and `next` too */
    loop_ring *offers;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Rings ------------------------------------------------------------------- */

/* Only what must be zero is touched, so that unused payload costs no memory. */
static loop_ring *ring_offer(void)
{
    loop_ring *ring = aligned_alloc(_Alignof(loop_ring), sizeof *ring);
    if (ring == NULL)
        return NULL;
    memset(ring, 0, offsetof(slots_ring, slot));
    for (size_t i = 0; i < SLOTS; i++)
        ring->slots.slot[i].frame = (transport_frame){0};
    ring->users = 1;
    pthread_mutex_lock(&desk.lock);
    ring->next = desk.offers;
    desk.offers = ring;
    pthread_mutex_unlock(&desk.lock);
    return ring;
}

/* Takes an offer off the desk. @return NULL if it is not there. */
static loop_ring *withdraw(uint64_t offer)
{
    for (loop_ring **at = &desk.offers; *at != NULL; at = &(*at)->next) {
        loop_ring *ring = *at;
        if ((uintptr_t)ring != offer)
            continue;
        *at = ring->next;
        return ring;
    }
    return NULL;
}

static loop_ring *ring_claim(uint64_t offer)
{
    pthread_mutex_lock(&desk.lock);
    loop_ring *ring = withdraw(offer);
    if (ring != NULL)
        ring->users++;
    pthread_mutex_unlock(&desk.lock);
    return ring;
}

static void ring_drop(loop_ring *ring)
{
    if (ring == NULL)
        return;
    pthread_mutex_lock(&desk.lock);
    withdraw((uintptr_t)ring);
    const bool last = --ring->users == 0;
    pthread_mutex_unlock(&desk.lock);
    if (last)
        free(ring);
}

/* ---- Opening and closing --------------------------------------------------------- */

static bool loop_probe(char *why, size_t size)
{
    (void)why;
    (void)size;
    return true;
}

static void loop_close(transport_link *head)
{
    loop_link *l = (loop_link *)head;
    fd_close(&l->slots.fd);
    ring_drop(l->in);
    ring_drop(l->out);
    free(l);
}

static ring_status check_same_process(const transport_peer *peer)
{
    struct ucred other;
    socklen_t size = sizeof other;
    if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0 ||
        other.pid != getpid())
        return fail(RING_ERR_UNSUPPORTED, "the peer is not in this process; allow shm or tcp in "
                    "RING_TRANSPORT");
    return RING_OK;
}

static ring_status greet(const loop_link *l, const transport_peer *peer, uint64_t *offer)
{
    const slots_greeting mine =
        slots_greeting_make(&transport_loop, peer, (uintptr_t)l->out);
    slots_greeting theirs;
    RING_TRY(fd_write_all(peer->fd, &mine, sizeof mine, peer->deadline));
    RING_TRY(fd_read_all(peer->fd, &theirs, sizeof theirs, peer->deadline));
    *offer = theirs.offer;
    return slots_greeting_check(&theirs, &transport_loop, peer);
}

static ring_status build(loop_link *l, const transport_peer *peer)
{
    uint64_t offer;
    RING_TRY(check_same_process(peer));
    l->out = ring_offer();
    if (l->out == NULL)
        return fail(RING_ERR_MEMORY, "no memory for its slots (%zu bytes)", sizeof *l->out);
    RING_TRY(slots_produce(&l->slots.out, &l->out->slots, -1));
    RING_TRY(greet(l, peer, &offer));
    l->in = ring_claim(offer);
    if (l->in == NULL)
        return fail(RING_ERR_PEER, "the peer offers no slots");
    slots_link_init(&l->slots, &transport_loop, peer, &l->in->slots);
    return RING_OK;
}

static ring_status loop_open(const transport_peer *peer, transport_link **out)
{
    loop_link *l = calloc(1, sizeof *l);
    int fd = peer->fd;
    if (l == NULL) {
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the loop link to rank %d", peer->peer);
    }
    l->slots.fd = fd_guard(fd);
    const ring_status status = build(l, peer);
    if (status != RING_OK) {
        loop_close(&l->slots.head);
        return slots_open_failed(status, &transport_loop, peer);
    }
    *out = &l->slots.head;
    return RING_OK;
}

/* ---- Memory -------------------------------------------------------------------- */

static uint64_t loop_ref(const transport_link *head, const void *ptr, size_t bytes)
{
    (void)head;
    (void)bytes;
    return (uintptr_t)ptr;
}

static void *loop_map(transport_link *head, uint64_t ref, size_t bytes)
{
    (void)head;
    (void)bytes;
    return (void *)(uintptr_t)ref;
}

static size_t loop_memory(const transport_link *head)
{
    return sizeof(loop_link) + slots_memory(&((const loop_link *)head)->slots.out);
}

const transport transport_loop = {
    .name = "loop",
    .about = "between threads of one process",
    .powers = TRANSPORT_CAN_MAP | TRANSPORT_SAME_PROCESS,
    .probe = loop_probe,
    .open = loop_open,
    .close = loop_close,
    .send = slots_link_send,
    .reserve = slots_link_reserve,
    .flushed = slots_link_flushed,
    .progress = slots_link_progress,
    .peek = slots_link_peek,
    .pull = slots_link_pull,
    .consume = slots_link_consume,
    .ref = loop_ref,
    .map = loop_map,
    .wake_fd = slots_link_wake_fd,
    .arm = slots_link_arm,
    .disarm = slots_link_disarm,
    .memory = loop_memory,
};
