/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes verbs links, lets callers sleep on them, and defines the transport's table. */
#include "verbs.h"

#include "slot_format.h"
#include "table.h"
#include "verbs_state.h"
#include "verbs_words.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    QUIET_LOOKS = 64, /* calls of progress() between two checks of the socket and the events  */
    LONGEST_NAP = 8   /* a sleep lasts at most NAP << LONGEST_NAP                             */
};
#define NAP 200000L               /* ns; the first sleep after WORD_ASLEEP was written        */
#define LAST_ACKNOWLEDGEMENTS 1.0 /* s; how long frames may arrive after the peer has closed  */

static const transport_ib defaults = TRANSPORT_IB_DEFAULTS;

/* ---- Opening and closing ------------------------------------------------------------------ */

/* @return the number of ports that the user's settings allow; if it is 0, the reason was passed to
 * fail(). */
static int usable_ports(const transport_ib *ib, const adapter_port **out)
{
    const adapter_port *all;
    const int count = adapter_ports(&all);
    int usable = 0;
    for (int i = 0; i < count; i++)
        if (adapter_list_has(ib->hca, &all[i]) && !atomic_load(&all[i].device->dead))
            out[usable++] = &all[i];
    if (count > 0 && usable == 0)
        fail(RING_ERR_CONFIG,
             "RING_IB_HCA=%s selects none of the %d active port%s (%s%s) of working adapters",
             ib->hca, count, plural((unsigned long long)count), all[0].name,
             count > 1 ? ", ..." : "");
    return usable;
}

static bool verbs_probe(const transport_ib *ib, char *why, size_t size)
{
    const adapter_port *ports[ADAPTER_MOST_PORTS];
    const bool disabled = ib != NULL && ib->disabled;
    if (!disabled && usable_ports(ib != NULL ? ib : &defaults, ports) > 0)
        return true;
    (void)text_format(why, size, "%s", disabled ? "disabled by RING_IB_DISABLE=1" : fail_text());
    return false;
}

static int verbs_rails(const transport_ib *ib)
{
    const adapter_port *ports[ADAPTER_MOST_PORTS];
    return usable_ports(ib, ports);
}

/* Allocates a buffer that children do not inherit: after a fork(), a copy-on-write fault would give
 * the parent other pages than the adapter uses. */
static void *map_buffer(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    (void)madvise(at, bytes, MADV_DONTFORK);
    return at;
}

static bool watch(const verbs_link *l, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return fd >= 0 && epoll_ctl(l->sleep.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static ring_status build(verbs_link *l)
{
    l->in = map_buffer(sizeof *l->in);
    l->out = map_buffer(sizeof *l->out);
    l->send.operation = malloc(VERBS_OPERATIONS * sizeof *l->send.operation);
    if (l->in == NULL || l->out == NULL || l->send.operation == NULL)
        return fail(RING_ERR_MEMORY, "no memory for the link's buffers (%zu KiB)",
                    (sizeof *l->in + sizeof *l->out) >> 10);
    l->sleep.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->sleep.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    l->sleep.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!watch(l, l->sleep.wake) || !watch(l, l->sleep.timer) || !watch(l, l->socket.fd))
        return fail(RING_ERR_SYSTEM,
                    "creating the descriptors that wake the link's threads: %m; see ulimit -n");
    return verbs_greet(l);
}

static void deregister(struct ibv_mr *mr)
{
    if (mr != NULL)
        (void)ibverbs_load()->dereg_mr(mr);
}

static void unmap_buffer(void *at, size_t bytes)
{
    if (at != NULL)
        munmap(at, bytes);
}

/* Closes the queue pairs first. Afterwards, neither the peer nor the adapter accesses the buffers.
 */
static void verbs_close(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    verbs_close_queues(l);
    for (int r = 0; r < VERBS_RAILS; r++) {
        deregister(l->rail.in_mr[r]);
        deregister(l->rail.out_mr[r]);
    }
    fd_close(&l->socket.fd);
    fd_close(&l->sleep.wake);
    fd_close(&l->sleep.timer);
    fd_close(&l->sleep.epoll);
    unmap_buffer(l->in, sizeof *l->in);
    unmap_buffer(l->out, sizeof *l->out);
    free(l->send.operation);
    free(l->memory.announced.all);
    free(l->memory.known.all);
    free(l);
}

static ring_status refuse(transport_link *head, ring_status status)
{
    fail(status, "opening the verbs link to rank %d: %s", head->peer, fail_text());
    verbs_close(head);
    return status;
}

static ring_status verbs_open(const transport_peer *peer, transport_link **out)
{
    verbs_link *l = calloc(1, sizeof *l);
    int fd = peer->fd;
    if (l == NULL) {
        fd_close(&fd);
        return fail(RING_ERR_MEMORY, "no memory for the verbs link to rank %d", peer->peer);
    }
    l->head = (transport_link){.transport = &transport_verbs, .peer = peer->peer};
    l->state = RING_IN_PROGRESS;
    l->options = peer->ib != NULL ? *peer->ib : defaults;
    l->rank = peer->rank;
    l->channel = peer->channel;
    l->socket.fd = fd;
    l->sleep.wake = l->sleep.epoll = l->sleep.timer = -1;
    l->opening.port_count = usable_ports(&l->options, l->opening.ports);
    if (l->opening.port_count == 0)
        return refuse(&l->head, RING_ERR_CONFIG);
    const ring_status status = build(l);
    if (status != RING_OK && status != RING_ERR_PEER)
        return refuse(&l->head, status);
    if (status != RING_OK)
        (void)verbs_break(l, status);
    *out = &l->head;
    return RING_OK;
}

static bool verbs_announced(transport_link *head)
{
    return verbs_words_arrived((verbs_link *)head);
}

static void verbs_stop(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    l->send.posted = l->send.done = l->send.accepted; /* so that no ticket of a get is used again */
    if (l->state == RING_OK || l->state == RING_IN_PROGRESS)
        (void)verbs_break(l, fail(RING_ERR_ABORTED, "this rank stopped the link"));
    verbs_close_queues(l);
}

/* ---- Waiting ------------------------------------------------------------------------------ */

/* Checks whether the peer has closed the socket, and reads the adapter's events. */
static void check_socket_and_events(verbs_link *l)
{
    char byte;
    const ssize_t got = recv(l->socket.fd, &byte, 1, MSG_DONTWAIT);
    l->sleep.quiet = 0;
    if (!l->socket.ended && (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))) {
        l->socket.ended = true;
        l->socket.ended_at = clock_now();
    }
    adapter_look_at_events(l->rail.queue[l->rail.active].port->device);
}

/* @return true if the peer has closed the socket and nothing more is expected. Frames and
 * acknowledgements may still arrive for a short time after it has closed; after that time, an
 * incomplete last frame is ignored. */
static bool has_ended(const verbs_link *l)
{
    if (!l->socket.ended || l->recv.peeked || verbs_arrived(l) > l->recv.words[WORD_TAKEN])
        return false;
    return (l->send.done == l->send.accepted && !verbs_has_frame(l)) ||
           clock_now() > l->socket.ended_at + LAST_ACKNOWLEDGEMENTS;
}

/* Calls has_ended() before verbs_push(), so that the last acknowledgements are counted before the
 * link breaks. */
static ring_status verbs_progress(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    if (l->state == RING_OK) {
        const bool ended = has_ended(l);
        verbs_push(l);
        if (ended && l->state == RING_OK)
            return verbs_break(l, fail(RING_ERR_PEER,
                                       "the peer closed the connection: it ended or was killed; "
                                       "the reason is in its own output or the launcher's"));
        if (++l->sleep.quiet >= QUIET_LOOKS)
            check_socket_and_events(l);
    }
    return verbs_state(l);
}

static int verbs_wake_fd(const transport_link *head)
{
    return ((const verbs_link *)head)->sleep.epoll;
}

static bool sending_has_news(verbs_link *l)
{
    verbs_push(l);
    const uint64_t released = l->peer.words[WORD_RELEASED];
    const bool more = l->send.flushed != l->send.notified_flushed ||
                      released != l->send.notified_released ||
                      l->send.gets_done != l->send.notified_gets;
    l->send.notified_flushed = l->send.flushed;
    l->send.notified_released = released;
    l->send.notified_gets = l->send.gets_done;
    return more || (l->send.refused && verbs_fits(l));
}

static bool has_news(verbs_link *l, bool wants_send)
{
    return (wants_send && sending_has_news(l)) || l->socket.ended || l->state != RING_OK ||
           verbs_has_frame(l);
}

/* Writes WORD_ASLEEP to the peer, unless it was already written and the peer has not sent a wake-up
 * since. */
static void announce_sleep(verbs_link *l, bool wants_send)
{
    _Atomic bool *woken = &l->rail.queue[l->rail.active].sink.woken;
    if (atomic_exchange(woken, false))
        l->sleep.asleep = false;
    if (l->sleep.asleep && !l->rail.resuming &&
        (l->recv.words[WORD_ASLEEP] % 2 == 1 || !wants_send)) {
        l->sleep.naps += l->sleep.naps < LONGEST_NAP;
        return;
    }
    l->recv.words[WORD_ASLEEP] = (l->recv.words[WORD_ASLEEP] / 2 + 1) * 2 + wants_send;
    l->sleep.asleep = true;
    l->sleep.naps = 0;
    verbs_look_at_words(l);
    verbs_announce(l);
}

/* Sets `armed` before it checks for news a second time: a thread that polls a later completion
 * reads the flag and wakes this one. */
static bool verbs_arm(transport_link *head, bool wants_send)
{
    verbs_link *l = (verbs_link *)head;
    if (l->state != RING_OK) /* while the link opens, the peer's messages wake the caller */
        return verbs_state(l) == RING_IN_PROGRESS;
    if (has_news(l, wants_send))
        return false;
    atomic_store(&l->sleep.armed, true);
    announce_sleep(l, wants_send);
    const bool pushes = wants_send || l->recv.words_due || l->send.posted < l->send.accepted;
    completions_arm(l->rail.queue[l->rail.active].port->device, pushes);
    if (!has_news(l, wants_send) && atomic_load(&l->sleep.armed)) {
        const struct itimerspec nap = {.it_value = {.tv_nsec = NAP << l->sleep.naps}};
        (void)timerfd_settime(l->sleep.timer, 0, &nap, NULL);
        return true;
    }
    atomic_store(&l->sleep.armed, false);
    return false;
}

static void drain(int fd)
{
    uint64_t count;
    const ssize_t ignored = read(fd, &count, sizeof count);
    (void)ignored;
}

static void verbs_disarm(transport_link *head)
{
    verbs_link *l = (verbs_link *)head;
    atomic_store(&l->sleep.armed, false);
    drain(l->sleep.wake);
    drain(l->sleep.timer);
    for (int r = 0; r < l->rail.count; r++) /* drains all descriptors of the epoll set */
        completions_disarm(l->rail.queue[r].port->device);
    if (l->state == RING_OK)
        check_socket_and_events(l);
}

static void *verbs_map(transport_link *head, uint64_t ref, size_t bytes)
{
    (void)head, (void)ref, (void)bytes;
    return NULL;
}

static size_t verbs_memory(const transport_link *head)
{
    (void)head;
    return sizeof(verbs_link) + sizeof(verbs_inbox) + sizeof(verbs_outbox) +
           VERBS_OPERATIONS * sizeof(verbs_operation);
}

const transport transport_verbs = {
    .name = "verbs",
    .about = "between hosts, over InfiniBand or RoCE",
    .powers = TRANSPORT_REACHES | TRANSPORT_REGISTERS,
    .probe = verbs_probe,
    .rails = verbs_rails,
    .open = verbs_open,
    .close = verbs_close,
    .send = verbs_send,
    .reserve = verbs_reserve,
    .flushed = verbs_flushed,
    .release = verbs_release,
    .released = verbs_released,
    .progress = verbs_progress,
    .peek = verbs_peek,
    .pull = verbs_pull,
    .consume = verbs_consume,
    .news = verbs_news,
    .ref = verbs_ref,
    .map = verbs_map,
    .put = verbs_put,
    .get = verbs_get,
    .announced = verbs_announced,
    .stop = verbs_stop,
    .wake_fd = verbs_wake_fd,
    .arm = verbs_arm,
    .disarm = verbs_disarm,
    .memory = verbs_memory,
};
