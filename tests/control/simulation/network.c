/* SPDX-License-Identifier: Apache-2.0
 * Sockets as Linux has them, as far as control uses them: TCP with a way of some length between
 * hosts, AF_UNIX without one, and epoll and eventfd. A descriptor is the lowest free one of its
 * rank, so numbers are used again at once. */
#include "simulated_ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FD_BASE = 1 << 16, FDS = 256, BACKLOG = 64, WATCHES = 64, SEGMENT = 2048 };
enum { CLOSED = -1, IN_QUEUE = -2 };

void *__real_calloc(size_t count, size_t bytes);
void *__real_malloc(size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);
int __real_close(int fd);

typedef enum kind { SOCKET, BOUND, LISTENER, CONNECTING, CONNECTED, REFUSED, EPOLL, BELL } kind;

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_un local;
} any_address;

typedef struct segment {
    struct segment *next;
    double arrives;
    size_t bytes;
    bool ends, resets;
    unsigned char data[];
} segment;

typedef struct watch {
    int fd;
    struct epoll_event event;
} watch;

typedef struct sock {
    kind kind;
    int rank, fd; /* fd: IN_QUEUE, CLOSED */
    bool local, datagrams;
    any_address own, peer;
    socklen_t own_length, peer_length;
    struct sock *other;          /* the other end */
    unsigned char *data;         /* arrived, not read */
    size_t have, on_way;         /* on_way: to the other end */
    segment *flight, **last;     /* to the other end, in order */
    double latest;               /* no segment to the other end arrives before it */
    bool ended, reset, has_shut; /* FIN arrived; RST arrived; FIN sent */
    int error;
    struct sock *queue[BACKLOG]; /* of a listener */
    int queued;
    watch watches[WATCHES]; /* of an epoll */
    int watched;
    uint64_t count; /* of a bell */
} sock;

static struct {
    sim_links links;
    const int *host_of;
    sock *table[SIM_RANKS][FDS];
    sock **all;
    size_t count, room;
    int port;
    bool silent[SIM_RANKS];
    double cut_until[SIM_RANKS][SIM_RANKS];
    char io[SIM_RANKS]; /* their addresses: what the threads of a rank wait for */
} net;

/* ---- Life ------------------------------------------------------------------------------------ */

static void free_socket(sock *s)
{
    for (segment *g = s->flight, *next; g != NULL; g = next) {
        next = g->next;
        __real_free(g);
    }
    __real_free(s->data);
    __real_free(s);
}

void sim_reset_network(const sim_links *links, const int *host_of)
{
    for (size_t i = 0; i < net.count; i++)
        free_socket(net.all[i]);
    sock **const all = net.all;
    const size_t room = net.room;
    memset(&net, 0, sizeof net);
    net.all = all;
    net.room = room;
    net.links = *links;
    net.host_of = host_of;
    net.port = 20000;
}

static sock *new_socket(int rank, kind what, bool local)
{
    sock *s = __real_calloc(1, sizeof *s);
    if (net.count == net.room) {
        net.room = net.room > 0 ? 2 * net.room : 256;
        net.all = __real_realloc(net.all, net.room * sizeof *net.all);
    }
    if (s == NULL || net.all == NULL)
        abort();
    net.all[net.count++] = s;
    s->kind = what;
    s->rank = rank;
    s->fd = CLOSED;
    s->local = local;
    s->last = &s->flight;
    return s;
}

static int give_fd(sock *s)
{
    for (int i = 0; i < FDS; i++) {
        if (net.table[s->rank][i] != NULL)
            continue;
        net.table[s->rank][i] = s;
        s->fd = FD_BASE + s->rank * FDS + i;
        return s->fd;
    }
    errno = EMFILE;
    return -1;
}

static sock *find(int fd)
{
    const int i = fd - FD_BASE;
    sock *s = i >= 0 && i < SIM_RANKS * FDS ? net.table[i / FDS][i % FDS] : NULL;
    if (s == NULL)
        errno = EBADF;
    return s;
}

static bool is_ours(int fd)
{
    return fd >= FD_BASE;
}

int sim_open_count(int rank)
{
    int count = 0;
    for (int i = 0; i < FDS; i++)
        count += net.table[rank][i] != NULL;
    return count;
}

static void wake(const sock *s)
{
    sim_wake(&net.io[s->rank]);
}

/* ---- The way -----------------------------------------------------------------------------------
 */

void sim_silence_host(int host)
{
    net.silent[host] = true;
}

void sim_cut(int host, int other, double until)
{
    net.cut_until[host][other] = net.cut_until[other][host] = until;
}

/* @return when what starts or arrives now gets through: now, later, or never. */
static double open_at(int rank, int other)
{
    const int a = net.host_of[rank], b = net.host_of[other];
    if (a == b)
        return net.silent[a] ? SIM_NEVER : sim_now();
    if (net.silent[a] || net.silent[b])
        return SIM_NEVER;
    const double until = net.cut_until[a][b];
    return until <= sim_now() ? sim_now() : until;
}

static double way(void)
{
    const double usual = sim_draw_seconds(net.links.least, net.links.most);
    return sim_chance(net.links.rare) ? 10 * usual : usual;
}

static void on_arrival(void *object, uint64_t unused);

static void expect_next(sock *from)
{
    if (from->flight != NULL)
        sim_at(from->flight->arrives, on_arrival, from, 0);
}

static void on_reset(void *object, uint64_t unused)
{
    sock *s = object;
    sim_trace("  reset at rank %d, %zu bytes unread", s->rank, s->have);
    s->reset = true;
    s->error = s->ended ? EPIPE : ECONNRESET;
    wake(s);
}

/* Bytes for a socket that is closed are answered with a reset. */
static void deliver(sock *from, const segment *g)
{
    sock *to = from->other;
    sim_trace("  rank %d to rank %d: %zu bytes%s%s arrive%s", from->rank, to->rank, g->bytes,
              g->ends ? ", end" : "", g->resets ? ", reset" : "",
              to->fd == CLOSED ? " at a closed socket" : "");
    if (to->fd == CLOSED) {
        if (!g->resets && !g->ends)
            sim_at(sim_now() + (from->local ? 0 : way()), on_reset, from, 0);
        return;
    }
    if (g->resets) {
        on_reset(to, 0);
        return;
    }
    if (g->bytes > 0) {
        unsigned char *data = __real_realloc(to->data, to->have + g->bytes);
        if (data == NULL)
            abort();
        memcpy(data + to->have, g->data, g->bytes);
        to->data = data;
        to->have += g->bytes;
    }
    to->ended = to->ended || g->ends;
    wake(to);
}

/* Bytes that arrive during a cut wait for its end, and for the sender to retry. */
static void on_arrival(void *object, uint64_t unused)
{
    sock *from = object;
    segment *g = from->flight;
    const double open = from->other == NULL ? SIM_NEVER : open_at(from->rank, from->other->rank);
    if (open >= SIM_NEVER)
        return;
    if (open > sim_now()) {
        g->arrives = open + sim_draw_seconds(0.001, 0.2);
        expect_next(from);
        return;
    }
    from->flight = g->next;
    if (from->flight == NULL)
        from->last = &from->flight;
    from->on_way -= g->bytes;
    deliver(from, g);
    __real_free(g);
    wake(from); /* there is room again */
    expect_next(from);
}

static void put(sock *from, const void *data, size_t bytes, bool ends, bool resets)
{
    segment *g = __real_malloc(sizeof *g + bytes);
    if (g == NULL)
        abort();
    *g = (segment){.bytes = bytes, .ends = ends, .resets = resets};
    if (bytes > 0)
        memcpy(g->data, data, bytes);
    if (from->local) {
        deliver(from, g);
        __real_free(g);
        return;
    }
    const double arrives = sim_now() + way();
    g->arrives = arrives > from->latest ? arrives : from->latest;
    from->latest = g->arrives;
    from->on_way += bytes;
    *from->last = g;
    from->last = &g->next;
    if (from->flight == g)
        expect_next(from);
}

/* ---- Connecting --------------------------------------------------------------------------------
 */

static bool is_same(const sock *listener, const any_address *a, socklen_t length)
{
    if (a->any.sa_family == AF_UNIX)
        return listener->local && listener->own_length == length &&
               memcmp(&listener->own, a, length) == 0;
    return !listener->local && listener->own.v4.sin_port == a->v4.sin_port &&
           listener->own.v4.sin_addr.s_addr == a->v4.sin_addr.s_addr;
}

static sock *find_listener(const any_address *a, socklen_t length)
{
    for (size_t i = 0; i < net.count; i++)
        if (net.all[i]->kind == LISTENER && net.all[i]->fd >= 0 && is_same(net.all[i], a, length))
            return net.all[i];
    return NULL;
}

static sock *pair_up(sock *client, sock *listener)
{
    sock *server = new_socket(listener->rank, CONNECTED, client->local);
    server->own = listener->own;
    server->own_length = listener->own_length;
    server->peer = client->own;
    server->peer_length = client->own_length;
    server->other = client;
    client->other = server;
    server->fd = IN_QUEUE;
    listener->queue[listener->queued++] = server;
    wake(listener);
    return server;
}

static void on_answer(void *object, uint64_t refused)
{
    sock *s = object;
    if (s->fd == CLOSED) {
        if (s->other != NULL)
            put(s, NULL, 0, false, true);
        return;
    }
    s->kind = refused != 0 ? REFUSED : CONNECTED;
    s->error = refused != 0 ? ECONNREFUSED : 0;
    wake(s);
}

/* The host that has the address: the last byte, less one. */
static int rank_at(const any_address *a)
{
    const int host = (int)(ntohl(a->v4.sin_addr.s_addr) & 0xff) - 1;
    int rank = 0;
    while (rank < SIM_RANKS - 1 && net.host_of[rank] != host)
        rank++;
    return rank;
}

static void on_knock(void *object, uint64_t tries)
{
    sock *s = object;
    const double open = open_at(s->rank, rank_at(&s->peer));
    if (s->fd == CLOSED)
        return;
    if (open > sim_now()) { /* tried again after 1, 2, 4 ... s */
        if (tries < 6)
            sim_at(sim_now() + (double)(1u << tries), on_knock, s, tries + 1);
        return;
    }
    sock *listener = find_listener(&s->peer, s->peer_length);
    const double back = sim_now() + way();
    if (listener == NULL) {
        sim_at(back, on_answer, s, 1);
    } else if (listener->queued < BACKLOG) {
        pair_up(s, listener)->latest = back;
        sim_at(back, on_answer, s, 0);
    } else {
        sim_at(sim_now() + (double)(1u << tries), on_knock, s, tries + 1);
    }
}

static int connect_local(sock *s)
{
    sock *listener = find_listener(&s->peer, s->peer_length);
    if (listener == NULL || listener->queued == BACKLOG) {
        errno = listener == NULL ? ECONNREFUSED : EAGAIN;
        return -1;
    }
    s->kind = CONNECTED;
    pair_up(s, listener);
    return 0;
}

static void name_tcp(sock *s, in_port_t port)
{
    s->own.v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(0x0a000001u +
                                                              (uint32_t)net.host_of[s->rank]),
                                     .sin_port = port != 0 ? port : htons((uint16_t)net.port++)};
    s->own_length = sizeof s->own.v4;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    memcpy(&s->peer, to, length);
    s->peer_length = length;
    if (s->local)
        return connect_local(s);
    name_tcp(s, 0);
    if (s->datagrams)
        return 0;
    s->kind = CONNECTING;
    sim_at(sim_now() + way(), on_knock, s, 0);
    errno = EINPROGRESS;
    return -1;
}

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    sim_called();
    sock *s = new_socket(sim_rank(), SOCKET, domain == AF_UNIX);
    s->datagrams = (type & 0xf) == SOCK_DGRAM;
    return give_fd(s);
}

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t length)
{
    sock *s = find(fd);
    if (s == NULL)
        return -1;
    memcpy(&s->own, at, length);
    s->own_length = length;
    if (!s->local)
        name_tcp(s, s->own.v4.sin_port);
    s->kind = BOUND;
    return 0;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    s->kind = LISTENER;
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL || s->queued == 0) {
        errno = s == NULL ? EBADF : EAGAIN;
        return -1;
    }
    sock *server = s->queue[0];
    memmove(s->queue, s->queue + 1, (size_t)--s->queued * sizeof s->queue[0]);
    if (from != NULL) {
        memcpy(from, &server->peer, server->peer_length);
        *length = server->peer_length;
    }
    return give_fd(server);
}

/* ---- Bytes
 * --------------------------------------------------------------------------------------- */

static size_t room_of(const sock *s)
{
    const size_t used = s->on_way + (s->other != NULL ? s->other->have : 0);
    return used < net.links.room ? net.links.room - used : 0;
}

static size_t part_of(size_t bytes)
{
    return bytes > 1 && sim_chance(net.links.parts) ? 1 + sim_draw((uint32_t)bytes - 1) : bytes;
}

static ssize_t no(int error)
{
    errno = error;
    return -1;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    if (s->kind != CONNECTED || s->has_shut)
        return no(s->kind == CONNECTING ? EAGAIN : EPIPE);
    if (s->reset || (s->local && s->other->fd == CLOSED))
        return no(EPIPE);
    size_t sent = min_size(min_size(bytes, SEGMENT), room_of(s));
    if (sent == 0)
        return no(EAGAIN);
    sent = part_of(sent);
    put(s, data, sent, false, false);
    return (ssize_t)sent;
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    if (s->have == 0 && s->ended)
        return 0;
    if (s->have == 0 && s->reset)
        return no(s->error);
    if (s->have == 0)
        return no(s->kind == CONNECTING || s->kind == CONNECTED ? EAGAIN : ENOTCONN);
    const size_t got = part_of(min_size(bytes, s->have));
    memcpy(data, s->data, got);
    s->have -= got;
    memmove(s->data, s->data + got, s->have);
    wake(s->other);
    return (ssize_t)got;
}

int __wrap_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how)
{
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    if (s->kind == CONNECTED && !s->has_shut && !s->reset && s->other->fd != CLOSED) {
        s->has_shut = true;
        put(s, NULL, 0, true, false);
    }
    return 0;
}

/* ---- Closing
 * --------------------------------------------------------------------------------------- */

/* Bytes on the way before a reset may be lost: they are not sent again. */
static void lose_flight(sock *s)
{
    if (!sim_chance(250))
        return;
    while (s->flight != NULL && s->flight->next != NULL) {
        segment *second = s->flight->next;
        s->flight->next = second->next;
        s->on_way -= second->bytes;
        if (s->last == &second->next)
            s->last = &s->flight->next;
        __real_free(second);
    }
}

static void end_connection(sock *s)
{
    const bool unread = s->have > 0;
    s->fd = CLOSED;
    if (s->other != NULL)
        sim_trace("  rank %d closes to rank %d, %zu bytes unread, %zu on the way", s->rank,
                  s->other->rank, s->have, s->on_way);
    if (s->kind != CONNECTED || s->reset || s->other == NULL)
        return;
    if (unread)
        lose_flight(s);
    if (unread || !s->has_shut)
        put(s, NULL, 0, !unread, unread);
}

static void unwatch_all(const sock *s)
{
    for (int i = 0; i < FDS; i++) {
        sock *e = net.table[s->rank][i];
        for (int w = 0; e != NULL && e->kind == EPOLL && w < e->watched; w++)
            if (e->watches[w].fd == s->fd)
                e->watches[w--] = e->watches[--e->watched];
    }
}

static void close_socket(sock *s)
{
    unwatch_all(s);
    net.table[s->rank][s->fd - FD_BASE - s->rank * FDS] = NULL;
    while (s->queued > 0)
        end_connection(s->queue[--s->queued]);
    end_connection(s);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (!is_ours(fd))
        return __real_close(fd);
    sock *s = find(fd);
    sim_called();
    if (s == NULL)
        return -1;
    close_socket(s);
    return 0;
}

void sim_close_all(int rank)
{
    for (int i = 0; i < FDS; i++)
        if (net.table[rank][i] != NULL)
            close_socket(net.table[rank][i]);
}

/* ---- Waiting
 * ---------------------------------------------------------------------------------------- */

static uint32_t ready(const sock *s)
{
    uint32_t events = 0;
    if (s->kind == LISTENER)
        return s->queued > 0 ? EPOLLIN : 0;
    if (s->kind == BELL)
        return s->count > 0 ? EPOLLIN : 0;
    if (s->kind == REFUSED || s->kind == SOCKET)
        return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
    if (s->kind != CONNECTED)
        return 0;
    if (s->have > 0 || s->ended || s->reset)
        events |= EPOLLIN;
    if (s->reset || (!s->has_shut && room_of(s) > 0))
        events |= EPOLLOUT;
    if (s->reset)
        events |= EPOLLERR | EPOLLHUP;
    if (s->ended && (s->has_shut || s->local))
        events |= EPOLLHUP;
    return events;
}

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    sim_called();
    return give_fd(new_socket(sim_rank(), EPOLL, false));
}

int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    sock *s = new_socket(sim_rank(), BELL, false);
    s->count = count;
    return give_fd(s);
}

static int find_watch(const sock *e, int fd)
{
    for (int i = 0; i < e->watched; i++)
        if (e->watches[i].fd == fd)
            return i;
    return -1;
}

int __wrap_epoll_ctl(int epoll, int how, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int how, int fd, struct epoll_event *event)
{
    sock *e = find(epoll);
    const sock *s = find(fd);
    if (e == NULL || s == NULL)
        return -1;
    int at = find_watch(e, fd);
    if ((how == EPOLL_CTL_ADD) != (at < 0))
        return (int)no(at < 0 ? ENOENT : EEXIST);
    if (how == EPOLL_CTL_DEL) {
        e->watches[at] = e->watches[--e->watched];
        return 0;
    }
    if (at < 0 && e->watched == WATCHES)
        return (int)no(ENOSPC);
    at = at < 0 ? e->watched++ : at;
    e->watches[at] = (watch){fd, *event};
    wake(e);
    return 0;
}

/* In an order that is drawn. */
static int collect(sock *e, struct epoll_event *events, int most)
{
    int count = 0;
    for (int i = 0; i < e->watched; i++) {
        const int other = i + (int)sim_draw((uint32_t)(e->watched - i));
        const watch w = e->watches[other];
        e->watches[other] = e->watches[i];
        e->watches[i] = w;
        const uint32_t here = ready(find(w.fd)) & (w.event.events | EPOLLERR | EPOLLHUP);
        if (here == 0 || count == most)
            continue;
        events[count] = w.event;
        events[count++].events = here;
    }
    return count;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    sim_called();
    sock *e = find(epoll);
    const double until = ms < 0 ? SIM_NEVER : sim_now() + 1e-3 * ms;
    for (;;) {
        const int count = collect(e, events, most);
        if (count > 0 || ms == 0 || !sim_block(&net.io[e->rank], until))
            return count > 0 ? count : collect(e, events, most);
    }
}

int __wrap_poll(struct pollfd *entry, nfds_t count, int ms);
int __wrap_poll(struct pollfd *entry, nfds_t count, int ms)
{
    (void)count; /* one */
    sim_called();
    const sock *s = find(entry->fd);
    const double until = ms < 0 ? SIM_NEVER : sim_now() + 1e-3 * ms;
    bool timed_out = ms == 0;
    for (;;) {
        const uint32_t wanted = (uint32_t)entry->events | POLLERR | POLLHUP;
        entry->revents = (short)(s != NULL ? ready(s) & wanted : POLLNVAL);
        if (entry->revents != 0 || timed_out)
            return entry->revents != 0;
        timed_out = !sim_block(&net.io[s->rank], until);
    }
}

/* ---- Small calls
 * -------------------------------------------------------------------------------------- */

ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
    if (!is_ours(fd))
        return __real_read(fd, data, bytes);
    sock *s = find(fd);
    if (s == NULL || s->count == 0)
        return no(s == NULL ? EBADF : EAGAIN);
    memcpy(data, &s->count, sizeof s->count);
    s->count = 0;
    return sizeof s->count;
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    if (!is_ours(fd))
        return __real_write(fd, data, bytes);
    sock *s = find(fd);
    if (s == NULL)
        return -1;
    s->count++;
    wake(s);
    return sizeof s->count;
}

int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    return find(fd) != NULL ? 0 : -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    sock *s = find(fd);
    if (s == NULL)
        return -1;
    if (name == SO_PEERCRED) {
        memset(value, 0, sizeof(struct ucred));
        ((struct ucred *)value)->uid = geteuid();
        return 0;
    }
    *(int *)value = name == SO_ERROR ? s->error : s->local ? AF_UNIX : AF_INET;
    return 0;
}

static int give_address(const any_address *a, socklen_t bytes, struct sockaddr *out,
                        socklen_t *length)
{
    memcpy(out, a, min_size(bytes, *length));
    *length = bytes;
    return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *length)
{
    const sock *s = find(fd);
    return s != NULL ? give_address(&s->own, s->own_length, out, length) : -1;
}

int __wrap_getpeername(int fd, struct sockaddr *out, socklen_t *length);
int __wrap_getpeername(int fd, struct sockaddr *out, socklen_t *length)
{
    const sock *s = find(fd);
    return s != NULL ? give_address(&s->peer, s->peer_length, out, length) : -1;
}
