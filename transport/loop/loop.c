/* SPDX-License-Identifier: Apache-2.0
 *
 * loop: connects ranks that are threads of one process. It is the simplest transport: all memory
 * is already shared, so a reference is a pointer.
 *
 * Each end makes the ring through which it sends, adds it to a list of offers, and sends the peer
 * the number of the offer; the peer then claims the ring. The last end that holds a ring frees it,
 * so either end may close first. An end that closes before the peer has claimed this end's ring
 * keeps the ring for a peer whose greeting has arrived, because the ring may contain frames;
 * otherwise it frees the ring. A number from the socket is only looked up among the offers, and
 * never used as an address.
 */
#include "lines_link.h"
#include "table.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct loop_ring {
    lines_ring lines;
    uint64_t offer;         /* number of the offer, unique in the process */
    bool offered;           /* it is in the list of offers                */
    int users;              /* number of ends that hold it                */
    struct loop_ring *next; /* in the list of offers                      */
} loop_ring;

typedef struct loop_link {
    lines_link lines; /* first: a transport_link is a loop_link */
    loop_ring *out, *in;
} loop_link;

/* All offers of the process. The lock also guards `offered`, `users` and `next` of all rings. */
static struct {
    pthread_mutex_t lock;
    loop_ring *offers;
    uint64_t last_offer; /* number of the latest offer */
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Rings ------------------------------------------------------------------- */

static loop_ring *ring_offer(void)
{
    loop_ring *ring = aligned_alloc(_Alignof(loop_ring), sizeof *ring);
    if (ring == NULL)
        return NULL;
    lines_clear(&ring->lines);
    ring->users = 1;
    ring->offered = true;
    pthread_mutex_lock(&desk.lock);
    ring->offer = ++desk.last_offer;
    ring->next = desk.offers;
    desk.offers = ring;
    pthread_mutex_unlock(&desk.lock);
    return ring;
}

/* Removes an offer from the list. The caller holds the lock. @return NULL if it is not listed. */
static loop_ring *withdraw(uint64_t offer)
{
    for (loop_ring **at = &desk.offers; *at != NULL; at = &(*at)->next) {
        loop_ring *ring = *at;
        if (ring->offer != offer)
            continue;
        *at = ring->next;
        ring->offered = false;
        return ring;
    }
    return NULL;
}

/* Drops this end's hold on a ring, and frees the ring if nobody else needs it.
 * @param keep_offer  keep the ring for the peer if it has not claimed it yet. */
static void ring_drop(loop_ring *ring, bool keep_offer)
{
    if (ring == NULL)
        return;
    pthread_mutex_lock(&desk.lock);
    const bool last = --ring->users == 0 && !(keep_offer && ring->offered);
    if (last)
        withdraw(ring->offer);
    pthread_mutex_unlock(&desk.lock);
    if (last)
        free(ring);
}

/* ---- Opening and closing --------------------------------------------------------- */

static bool loop_probe(const transport_ib *ib, char *why, size_t size)
{
    (void)ib, (void)why, (void)size;
    return true;
}

static ring_status look_for_greeting(lines_link *lines)
{
    loop_link *l = (loop_link *)lines;
    lines_greeting theirs;
    const ssize_t got = recv(lines->fd, &theirs, sizeof theirs, MSG_DONTWAIT);
    RING_TRY(lines_link_received(got, sizeof theirs));
    RING_TRY(lines_link_check(&theirs));
    pthread_mutex_lock(&desk.lock);
    l->in = withdraw(theirs.offer);
    if (l->in != NULL)
        l->in->users++;
    pthread_mutex_unlock(&desk.lock);
    if (l->in == NULL)
        return fail(RING_ERR_PEER, "the peer's greeting names a ring that it has not offered");
    return lines_link_accept(lines, &theirs, &l->in->lines, FRAME_REF | FRAME_STORED);
}

/* Claims the peer's ring if this end has not done so yet, so that the ring is freed. */
static void loop_close(transport_link *head)
{
    loop_link *l = (loop_link *)head;
    if (l->in == NULL && l->lines.state == RING_IN_PROGRESS)
        (void)look_for_greeting(&l->lines);
    lines_link_close(&l->lines);
    lines_produce_no_more(&l->lines.out);
    ring_drop(l->out, l->in != NULL);
    ring_drop(l->in, false);
    free(l);
}

static ring_status build(loop_link *l)
{
    struct ucred other;
    socklen_t size = sizeof other;
    if (getsockopt(l->lines.fd, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0 ||
        other.pid != getpid())
        return fail(RING_ERR_UNSUPPORTED,
                    "the peer is in another process; allow shm or tcp in RING_TRANSPORT");
    l->out = ring_offer();
    if (l->out == NULL)
        return fail(RING_ERR_MEMORY, "no memory for a ring of %zu bytes", sizeof *l->out);
    RING_TRY(lines_produce(&l->lines.out, &l->out->lines, LINES_PLAIN));
    const lines_greeting mine = lines_link_greeting(&l->lines, l->out->offer);
    const ssize_t put = send(l->lines.fd, &mine, sizeof mine, MSG_DONTWAIT | MSG_NOSIGNAL);
    l->lines.greeted = put == sizeof mine;
    return l->lines.greeted ? RING_OK : fail(RING_ERR_PEER, "sending a greeting to the peer: %m");
}

static ring_status loop_open(const transport_peer *peer, transport_link **out)
{
    loop_link *l = calloc(1, sizeof *l);
    int fd = peer->fd;
    if (l == NULL) {
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the loop link to rank %d", peer->peer);
    }
    lines_link_init(&l->lines, &transport_loop, peer, look_for_greeting);
    const ring_status status = build(l);
    if (status != RING_OK) {
        loop_close(&l->lines.head);
        return fail(status, "opening the loop link to rank %d: %s", peer->peer, fail_text());
    }
    *out = &l->lines.head;
    return RING_OK;
}

/* ---- Memory -------------------------------------------------------------------- */

static uint64_t loop_ref(transport_link *head, const void *ptr, size_t bytes)
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
    return sizeof(loop_link) + ((const loop_link *)head)->lines.out.committed;
}

const transport transport_loop = {
    .name = "loop",
    .about = "between threads of one process",
    .powers = TRANSPORT_CAN_MAP | TRANSPORT_COPIES | TRANSPORT_SAME_PROCESS,
    .probe = loop_probe,
    .open = loop_open,
    .close = loop_close,
    .send = lines_link_send,
    .reserve = lines_link_reserve,
    .flushed = lines_link_flushed,
    .release = lines_link_release,
    .released = lines_link_released,
    .progress = lines_link_progress,
    .peek = lines_link_peek,
    .pull = lines_link_pull,
    .consume = lines_link_consume,
    .news = lines_link_news,
    .ref = loop_ref,
    .map = loop_map,
    .wake_fd = lines_link_wake_fd,
    .arm = lines_link_arm,
    .disarm = lines_link_disarm,
    .memory = loop_memory,
};
