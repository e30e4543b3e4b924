/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays connections, bytes and ends in each direction. A connection and the bytes that are sent
 * right after it arrive together, as over a real network. */
#include "slow_path.h"

#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { TUNNELS = 256, PART = 2048 };
#define TICK 0.0005

/** Bytes in flight; without bytes it is the end of the stream. */
typedef struct parcel {
    double arrives;
    ssize_t bytes;
    struct parcel *next;
    char data[PART];
} parcel;

typedef struct tunnel {
    int fds[2];           /* the accepted and the outgoing socket; -1 before it is open */
    bool ended[2];        /* fds[i] has ended */
    parcel *under_way[2]; /* from fds[i], oldest first */
    double arrives;
} tunnel;

struct slow_path {
    pthread_t thread;
    int listener, port;
    double half;
    atomic_int target;
    atomic_bool stop;
    tunnel tunnels[TUNNELS];
};

/* Else a part would wait for the receipt of the one before, 40 ms. */
static int without_delay(int fd)
{
    const int on = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_off(tunnel *t, int from, const char *data, ssize_t bytes, double arrives)
{
    parcel **at = &t->under_way[from], *p = malloc(sizeof *p);
    while (*at != NULL)
        at = &(*at)->next;
    *p = (parcel){.arrives = arrives, .bytes = bytes};
    memcpy(p->data, data, bytes > 0 ? (size_t)bytes : 0);
    *at = p;
}

static void read_end(const slow_path *s, tunnel *t, int from, double now)
{
    char part[PART];
    if (t->fds[from] < 0 || t->ended[from])
        return;
    const ssize_t got = recv(t->fds[from], part, sizeof part, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    t->ended[from] = got <= 0;
    send_off(t, from, part, got > 0 ? got : 0, now + s->half);
}

static void deliver(tunnel *t, int from, double now)
{
    parcel *p;
    while (t->fds[1 - from] >= 0 && (p = t->under_way[from]) != NULL && now >= p->arrives) {
        if (p->bytes > 0)
            (void)send(t->fds[1 - from], p->data, (size_t)p->bytes, MSG_NOSIGNAL);
        else
            shutdown(t->fds[1 - from], SHUT_WR);
        t->under_way[from] = p->next;
        free(p);
    }
}

static void drop(tunnel *t)
{
    for (int i = 0; i < 2; i++) {
        for (parcel *p = t->under_way[i], *next; p != NULL; p = next) {
            next = p->next;
            free(p);
        }
        t->under_way[i] = NULL;
        t->ended[i] = false;
        fd_close(&t->fds[i]);
    }
}

static void serve(slow_path *s, tunnel *t, double now)
{
    if (t->fds[0] < 0)
        return;
    if (t->fds[1] < 0 && now >= t->arrives &&
        (t->fds[1] = without_delay(connect_to(s->target))) < 0) {
        drop(t);
        return;
    }
    for (int i = 0; i < 2; i++) {
        read_end(s, t, i, now);
        deliver(t, i, now);
    }
    if (t->ended[0] && t->ended[1] && t->under_way[0] == NULL && t->under_way[1] == NULL)
        drop(t);
}

static void take_in(slow_path *s, double now)
{
    for (int i = 0; i < TUNNELS; i++) {
        tunnel *t = &s->tunnels[i];
        if (t->fds[0] >= 0)
            continue;
        t->fds[0] = without_delay(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        t->arrives = now + s->half;
        if (t->fds[0] < 0)
            return;
    }
}

static void *run(void *context)
{
    slow_path *s = context;
    while (!atomic_load(&s->stop)) {
        const double now = clock_now();
        take_in(s, now);
        for (int i = 0; i < TUNNELS; i++)
            serve(s, &s->tunnels[i], now);
        clock_sleep(TICK);
    }
    return NULL;
}

slow_path *slow_path_new(double round_trip)
{
    slow_path *s = calloc(1, sizeof *s);
    s->half = round_trip / 2;
    s->port = free_ports(1);
    s->listener = listen_at(s->port);
    fcntl(s->listener, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < TUNNELS; i++)
        s->tunnels[i].fds[0] = s->tunnels[i].fds[1] = -1;
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

void slow_path_aim(slow_path *s, int port)
{
    atomic_store(&s->target, port);
}

int slow_path_port(const slow_path *s)
{
    return s->port;
}

void slow_path_free(slow_path *s)
{
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < TUNNELS; i++)
        drop(&s->tunnels[i]);
    fd_close(&s->listener);
    free(s);
}
