/* SPDX-License-Identifier: Apache-2.0
 * Opens, stops and closes ucx links, lets callers sleep on them, and defines the transport's
 * table. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_pass.h"
#include "ucx_state.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { QUIET_LOOKS = 64 }; /* calls of progress() between two checks of the socket */
/** Seconds that the last link of a hub waits for its sends, and for the peer to close. */
static const double last_words = 0.5;

/* ---- Breaking --------------------------------------------------------------------- */

/* If the other end of the link is in this process, stops it, too, because it also receives data
 * into this process's memory. */
static void ucx_stop(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    const ucx_greeting *theirs = &l->opening.theirs;
    ucx_link *other = theirs->link < hub.capacity ? hub.links[theirs->link] : NULL;
    if (other != NULL && memcmp(theirs->token, other->token, sizeof other->token) == 0) {
        ucx_doom(other, RING_ERR_PEER, "the peer stopped the link");
        ucx_land_nothing(other);
    }
    ucx_stop_now(l, "this rank stopped the link");
    pthread_mutex_unlock(&hub.lock);
}

/* ---- Opening and closing ---------------------------------------------------------- */

static bool watch(const ucx_link *l, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(l->sleep.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static ucx_link *link_new(const transport_peer *peer)
{
    ucx_link *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->head = (transport_link){.transport = &transport_ucx, .peer = peer->peer};
    l->state = RING_IN_PROGRESS;
    l->number = UINT32_MAX;
    l->socket.fd = fd_guard(peer->fd);
    l->sleep.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->sleep.epoll = epoll_create1(EPOLL_CLOEXEC);
    l->in = aligned_alloc(RING_CACHE_LINE, sizeof *l->in);
    l->out = aligned_alloc(RING_CACHE_LINE, sizeof *l->out);
    l->gets.own = calloc(UCX_GETS, sizeof *l->gets.own);
    l->gets.asked = calloc(UCX_GETS, sizeof *l->gets.asked);
    return l;
}

static void close_descriptors(ucx_link *l)
{
    fd_close(&l->socket.fd);
    fd_close(&l->sleep.epoll);
    fd_close(&l->sleep.wake);
}

static ring_status set_up(ucx_link *l, const transport_peer *peer)
{
    if (l->in == NULL || l->out == NULL || l->gets.own == NULL || l->gets.asked == NULL)
        return fail(RING_ERR_MEMORY, "no memory for the link's buffers (%zu KiB)",
                    (sizeof *l->in + sizeof *l->out) >> 10);
    memset(l->in->slot, 0, sizeof l->in->slot);
    memset(l->out->done, 0, sizeof l->out->done);
    RING_TRY(ucx_hub_join(l, peer->peer_timeout));
    if (!watch(l, l->sleep.wake) || !watch(l, l->socket.fd) || !watch(l, hub.efd))
        return fail(RING_ERR_SYSTEM,
                    "creating the descriptors that wake the link's threads: %m; see ulimit -n");
    return ucx_greet(l);
}

/* Asks the peer to acknowledge frames, because a peer that has nothing else to send would send no
 * status words. */
static void ask(ucx_link *l)
{
    if (l->state != RING_OK || l->send.asked == l->send.slots || l->recv.announcing ||
        atomic_load(&l->peer.acked) == l->send.slots)
        return;
    l->send.asked = l->send.slots;
    ucx_announce(l, true);
}

static void on_flushed(void *request, ucs_status_t status, void *is_over)
{
    (void)status;
    *(bool *)is_over = true;
    ucx.ucp_request_free(request);
}

/* Waits until UCX has sent everything, including its own acknowledgements: a peer from which this
 * end has fetched data waits for one. */
static void flush_worker(double end)
{
    static bool is_over; /* guarded by hub.lock; static, as UCX may set it after this function */
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.send = on_flushed,
                                       .user_data = &is_over};
    is_over = false;
    const ucs_status_ptr_t request = ucx.ucp_worker_flush_nbx(hub.worker, &param);
    while (UCS_PTR_IS_PTR(request) && !is_over && clock_now() < end)
        ucx_pass_politely();
}

/* Waits until sends are acknowledged and flushed, because closing the last link ends the hub and
 * its connections. Then reads until the peer closes its end: closing a socket with unread bytes
 * would reset the connection, and the peer would lose bytes that it has not read yet. */
static void linger(ucx_link *l)
{
    const double end = clock_now() + last_words;
    while (l->state == RING_OK && !l->socket.ended && atomic_load(&l->peer.acked) < l->send.slots &&
           clock_now() < end) {
        ask(l);
        ucx_greeting_look(l);
        ucx_pass_politely();
    }
    if (l->state != RING_OK || hub.hurt)
        return;
    flush_worker(end);
    (void)shutdown(l->socket.fd, SHUT_WR);
    while (!l->socket.ended && clock_now() < end) {
        ucx_greeting_look(l);
        ucx_pass_politely();
    }
}

/* Sends the status words a last time, so that the peer can free its copies of frames. */
static void ucx_close(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    /* The connection of a broken link may be incomplete, unless the link had been open and the peer
     * has closed it. A peer that has not sent a message yet may still be connecting to the
     * listener. In both cases UCP's objects must not be destroyed. */
    const bool orderly = ucx_has_left(l) && l->opening.heard && l->opening.helloed;
    const bool is_self = memcmp(l->opening.theirs.hub, hub.id, sizeof hub.id) == 0;
    hub.hurt |= (l->opening.listens && !l->opening.heard) ||
                (!ucx_is_alive(l) && l->route != NULL && !orderly && !is_self);
    if (l->state == RING_OK)
        ucx_pass();
    if (l->state == RING_OK && (l->recv.received != l->recv.announced_received ||
                                l->recv.slots != l->recv.announced_taken ||
                                l->recv.released != l->recv.announced_released))
        ucx_announce(l, false);
    if (hub.count == 1)
        linger(l);
    ucx_stop_now(l, "closed");
    l->sleep.armed = false;
    close_descriptors(l);
    ucx_hub_leave(l);
    pthread_mutex_unlock(&hub.lock);
}

static ring_status ucx_open(const transport_peer *peer, transport_link **out)
{
    ucx_link *l = link_new(peer);
    if (l == NULL) {
        int fd = peer->fd;
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the ucx link to rank %d", peer->peer);
    }
    pthread_mutex_lock(&hub.lock);
    const ring_status status = set_up(l, peer);
    pthread_mutex_unlock(&hub.lock);
    if (status == RING_OK) {
        *out = &l->head;
        return RING_OK;
    }
    char why[256];
    (void)text_format(why, sizeof why, "%s", fail_text());
    if (l->number == UINT32_MAX) { /* it has not joined the hub */
        close_descriptors(l);
        free(l->in);
        free(l->out);
        free(l->gets.own);
        free(l->gets.asked);
        free(l);
    } else {
        ucx_close(&l->head);
    }
    return fail(status, "opening the ucx link to rank %d: %s", peer->peer, why);
}

/* ---- Waiting ---------------------------------------------------------------------- */

static ring_status ucx_progress(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    if (ucx_is_alive(l))
        ucx_pass();
    if (l->state == RING_OK && ++l->sleep.quiet >= QUIET_LOOKS)
        ucx_greeting_look(l);
    const ring_status status = ucx_state(l);
    pthread_mutex_unlock(&hub.lock);
    return status;
}

static bool ucx_announced(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    if (l->state == RING_OK) {
        ucx_pass();
        ask(l);
    }
    if (l->recv.announced_taken != l->recv.slots || l->recv.announced_released != l->recv.released)
        ucx_announce(l, false);
    const bool all = l->state != RING_OK || l->socket.ended ||
                     (l->postings.flying == 0 && l->recv.announced_taken == l->recv.slots &&
                      l->recv.announced_released == l->recv.released &&
                      atomic_load(&l->peer.acked) == l->send.slots);
    pthread_mutex_unlock(&hub.lock);
    return all;
}

static int ucx_wake_fd(const transport_link *head)
{
    return ((const ucx_link *)head)->sleep.epoll;
}

static bool sending_has_news(ucx_link *l)
{
    const uint64_t released = atomic_load(&l->peer.released);
    const bool more = l->send.slots_done != l->send.notified_flushed ||
                      released != l->send.notified_released ||
                      l->gets.over != l->send.notified_gets;
    l->send.notified_flushed = l->send.slots_done;
    l->send.notified_released = released;
    l->send.notified_gets = l->gets.over;
    return more || (l->send.refused && ucx_fits(l, TRANSPORT_SEGMENT)) ||
           (l->send.refused_get && l->gets.own[l->gets.begun % UCX_GETS].over == NULL);
}

static bool has_news(ucx_link *l, bool wants_send)
{
    const ring_status status = ucx_state(l);
    if (status != RING_OK)
        return status != RING_IN_PROGRESS;
    return (!l->recv.peeked && ucx_has_frame(l)) || l->doom != RING_OK ||
           (wants_send && sending_has_news(l));
}

/* ucp_worker_arm() fails while events are pending, even those of other links, so this retries. */
static bool ucx_arm(transport_link *head, bool wants_send)
{
    enum { TRIES = 4 };
    ucx_link *l = (ucx_link *)head;
    pthread_mutex_lock(&hub.lock);
    l->sleep.armed = false;
    for (int i = 0; i < TRIES && !l->sleep.armed; i++) {
        ucx_settle();
        if (has_news(l, wants_send))
            break;
        l->sleep.armed = ucx.ucp_worker_arm(hub.worker) == UCS_OK;
    }
    const bool armed = l->sleep.armed;
    pthread_mutex_unlock(&hub.lock);
    return armed;
}

static void ucx_disarm(transport_link *head)
{
    ucx_link *l = (ucx_link *)head;
    uint64_t wakes;
    pthread_mutex_lock(&hub.lock);
    l->sleep.armed = false;
    const ssize_t ignored = read(l->sleep.wake, &wakes, sizeof wakes);
    (void)ignored;
    if (ucx_is_alive(l))
        ucx_pass();
    if (l->state == RING_OK)
        ucx_greeting_look(l);
    pthread_mutex_unlock(&hub.lock);
}

/* ---- Memory, and the table -------------------------------------------------------- */

static void *ucx_map(transport_link *head, uint64_t ref, size_t bytes)
{
    (void)head, (void)ref, (void)bytes;
    return NULL;
}

static size_t ucx_memory(const transport_link *head)
{
    const ucx_link *l = (const ucx_link *)head;
    return sizeof *l + sizeof *l->in + sizeof *l->out +
           UCX_GETS * (sizeof *l->gets.own + sizeof *l->gets.asked) +
           l->postings.count * sizeof(ucx_posting);
}

const transport transport_ucx = {
    .name = "ucx",
    .about = "over any network that UCX finds, only on request",
    .powers = TRANSPORT_REACHES | TRANSPORT_ASKED,
    .probe = ucx_probe,
    .open = ucx_open,
    .close = ucx_close,
    .send = ucx_send,
    .reserve = ucx_reserve,
    .flushed = ucx_flushed,
    .release = ucx_release,
    .released = ucx_released,
    .progress = ucx_progress,
    .peek = ucx_peek,
    .pull = ucx_pull,
    .consume = ucx_consume,
    .news = ucx_news,
    .ref = ucx_ref,
    .map = ucx_map,
    .put = ucx_put,
    .get = ucx_get_from,
    .announced = ucx_announced,
    .stop = ucx_stop,
    .wake_fd = ucx_wake_fd,
    .arm = ucx_arm,
    .disarm = ucx_disarm,
    .memory = ucx_memory,
};
