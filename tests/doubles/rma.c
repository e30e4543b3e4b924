/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes rma links, and lets callers sleep on them. */
#include "rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUIET_TURNS = 64 };

typedef struct rma_greeting {
    char magic[8];
    uint64_t port, key;
} rma_greeting;

static const char magic[8] = "ringrma";

/* ---- Opening ---------------------------------------------------------------------- */

ring_status rma_break(rma_link *l, ring_status status, const char *why)
{
    l->state = status;
    (void)text_format(l->why, sizeof l->why, "%s", why);
    return rma_state(l);
}

static ring_status look_for_greeting(rma_link *l)
{
    rma_greeting theirs;
    const ssize_t got = recv(l->fd, &theirs, sizeof theirs, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return RING_IN_PROGRESS;
    if (got != sizeof theirs || memcmp(theirs.magic, magic, sizeof magic) != 0)
        return rma_break(l, RING_ERR_PEER,
                         "the peer's first message is not a greeting of an rma link");
    nic_port_connect(l->port, theirs.port);
    l->peer_key = theirs.key;
    l->state = RING_OK;
    return RING_OK;
}

ring_status rma_state(rma_link *l)
{
    if (l->state == RING_IN_PROGRESS)
        return look_for_greeting(l);
    if (l->state == RING_OK && (l->gone || nic_port_failed(l->port)) && !l->peeked &&
        !rma_has_frame(l) && !rma_is_sending(l))
        return rma_break(
            l, RING_ERR_PEER,
            l->gone ? "the peer closed the connection"
                    : "the adapter gave up a transfer: the peer is gone, or a key is wrong");
    return l->state == RING_OK ? RING_OK
                               : fail(l->state, "rma link to rank %d: %s", l->head.peer, l->why);
}

/* With the adapter's lock held. */
static void on_event(void *context)
{
    rma_link *l = context;
    const uint64_t one = 1;
    if (!atomic_exchange(&l->armed, false))
        return;
    const ssize_t ignored = write(l->wake, &one, sizeof one);
    (void)ignored;
}

static bool watch(const rma_link *l, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool build(rma_link *l)
{
    l->in = aligned_alloc(RING_CACHE_LINE, sizeof *l->in);
    l->out = aligned_alloc(RING_CACHE_LINE, sizeof *l->out);
    l->port = nic_port_new(on_event, l);
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->in == NULL || l->out == NULL || l->port == NULL || !watch(l, l->wake) ||
        !watch(l, l->fd))
        return false;
    memset(l->in, 0, offsetof(rma_inbox, payload));
    memset(l->out->words, 0, sizeof l->out->words);
    l->in_key = nic_register(l->in, sizeof *l->in, l->port);
    return true;
}

/* The adapter's port is stopped first: from then on nobody but this link uses its memory. */
static void rma_close(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    if (l->in_key != 0)
        nic_deregister(l->in_key);
    if (l->port != NULL)
        nic_port_free(l->port);
    fd_close(&l->fd);
    fd_close(&l->wake);
    fd_close(&l->epoll);
    free(l->told.keys);
    free(l->known.keys);
    free(l->in);
    free(l->out);
    free(l);
}

static ring_status rma_open(const transport_peer *peer, transport_link **out)
{
    rma_link *l = calloc(1, sizeof *l);
    int fd = peer->fd;
    if (l == NULL) {
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the rma link to rank %d", peer->peer);
    }
    l->head = (transport_link){.transport = &transport_rma, .peer = peer->peer};
    l->state = RING_IN_PROGRESS;
    l->fd = fd;
    l->wake = l->epoll = -1;
    const bool built = build(l);
    rma_greeting mine = {.port = built ? nic_port_number(l->port) : 0, .key = l->in_key};
    memcpy(mine.magic, magic, sizeof magic);
    if (built && send(fd, &mine, sizeof mine, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        (void)rma_break(l, RING_ERR_PEER, "the peer has ended");
    *out = &l->head;
    if (built)
        return RING_OK;
    rma_close(&l->head);
    return fail(RING_ERR_MEMORY, "no memory for the rma link to rank %d", peer->peer);
}

static bool rma_probe(const transport_ib *ib, char *why, size_t size)
{
    return true;
}

static bool rma_told(transport_link *head)
{
    return !nic_port_is_busy(((const rma_link *)head)->port);
}

static void rma_stop(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    nic_port_stop(l->port);
    if (l->state == RING_OK || l->state == RING_IN_PROGRESS)
        (void)rma_break(l, RING_ERR_ABORTED, "stopped");
}

/* ---- Waiting ---------------------------------------------------------------------- */

static void look_at_socket(rma_link *l)
{
    char byte;
    const ssize_t got = recv(l->fd, &byte, 1, MSG_DONTWAIT);
    l->gone = l->gone || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    l->quiet = 0;
}

static ring_status rma_progress(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    if (l->state == RING_OK && ++l->quiet >= QUIET_TURNS)
        look_at_socket(l);
    return rma_state(l);
}

static int rma_wake_fd(const transport_link *head)
{
    return ((const rma_link *)head)->epoll;
}

static bool sending_has_news(rma_link *l)
{
    const uint64_t flushed = rma_flushed(&l->head), released = rma_released(&l->head);
    const uint64_t gets = nic_port_gets(l->port);
    const bool more = flushed != l->told_flushed || released != l->told_released ||
                      gets != l->told_gets;
    l->told_flushed = flushed;
    l->told_released = released;
    l->told_gets = gets;
    return more || (l->refused && rma_fits(l));
}

/* The flag first, then the look: what comes after the look finds the flag. */
static bool rma_arm(transport_link *head, bool wants_send)
{
    rma_link *l = (rma_link *)head;
    if (l->state != RING_OK) /* the other end's greeting will wake */
        return rma_state(l) == RING_IN_PROGRESS;
    atomic_store(&l->armed, true);
    if (!l->gone && !nic_port_failed(l->port) && !rma_has_frame(l) &&
        !(wants_send && sending_has_news(l)))
        return true;
    atomic_store(&l->armed, false);
    return false;
}

static void rma_disarm(transport_link *head)
{
    rma_link *l = (rma_link *)head;
    uint64_t wakes;
    atomic_store(&l->armed, false);
    const ssize_t ignored = read(l->wake, &wakes, sizeof wakes);
    (void)ignored;
    if (l->state == RING_OK)
        look_at_socket(l);
}

static void *rma_map(transport_link *head, uint64_t ref, size_t bytes)
{
    return NULL;
}

static size_t rma_memory(const transport_link *head)
{
    return sizeof(rma_link) + sizeof(rma_inbox) + sizeof(rma_outbox);
}

const transport transport_rma = {
    .name = "rma",
    .about = "between threads of one process, by put and get (for tests)",
    .powers = TRANSPORT_REACHES | TRANSPORT_SAME_PROCESS,
    .probe = rma_probe,
    .open = rma_open,
    .close = rma_close,
    .send = rma_send,
    .reserve = rma_reserve,
    .flushed = rma_flushed,
    .release = rma_release,
    .released = rma_released,
    .progress = rma_progress,
    .peek = rma_peek,
    .pull = rma_pull,
    .consume = rma_consume,
    .news = rma_news,
    .ref = rma_ref,
    .map = rma_map,
    .put = rma_put,
    .get = rma_get,
    .announced = rma_told,
    .stop = rma_stop,
    .wake_fd = rma_wake_fd,
    .arm = rma_arm,
    .disarm = rma_disarm,
    .memory = rma_memory,
};
