/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the event loop of the control thread. An event of epoll has a pointer to its source,
 * which may have been freed since the event was fetched. So when any source is released, the loop
 * drops the remaining events of its batch; epoll reports them again if they still apply.
 */
#include "control_thread.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 32 };
#define STALL_LEAST 0.05 /* s: a timer that is later shows that the process did not run */

static struct {
    pthread_mutex_t life; /* guards starting and stopping the thread; taken before the lock */
    pthread_mutex_t lock;
    pthread_t thread;
    size_t users;    /* clients */
    bool stopping;   /* the thread must end */
    bool unjoined;   /* and no other thread joins it */
    int epoll, bell; /* bell: an eventfd that wakes the thread */
    bool asleep;     /* the thread sleeps, until sleeps_until, and the bell was not rung */
    double sleeps_until;
    control_client *clients;
    uint64_t releases; /* number of sources released so far */
} loop = {.life = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .epoll = -1,
          .bell = -1};

void control_lock(void)
{
    pthread_mutex_lock(&loop.lock);
}

bool control_lock_by(double deadline)
{
    return thread_lock_by(&loop.lock, deadline);
}

void control_unlock(void)
{
    pthread_mutex_unlock(&loop.lock);
}

static void ring_bell(void)
{
    const uint64_t one = 1;
    const ssize_t put = write(loop.bell, &one, sizeof one);
    (void)put; /* EAGAIN: it is readable already */
}

void control_due(control_client *c, double moment)
{
    if (moment < c->due)
        c->due = moment;
    if (!loop.asleep || moment >= loop.sleeps_until)
        return;
    loop.asleep = false; /* so that the bell is rung once only */
    ring_bell();
}

/* ---- Sources ----------------------------------------------------------------------- */

ring_status control_watch(control_source *s, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = s};
    if (s->watched && s->events == events)
        return RING_OK;
    if (epoll_ctl(loop.epoll, s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &event) != 0)
        return fail(RING_ERR_SYSTEM, "watching a descriptor (epoll_ctl): %m");
    s->watched = true;
    s->events = events;
    return RING_OK;
}

/* Removes the descriptor from epoll, since closing it does not if a forked child has a copy. */
int control_release(control_source *s)
{
    const int fd = s->fd;
    if (s->watched)
        (void)epoll_ctl(loop.epoll, EPOLL_CTL_DEL, fd, NULL);
    loop.releases += s->watched;
    s->watched = false;
    s->fd = -1;
    s->events = 0;
    return fd;
}

void control_close(control_source *s)
{
    int fd = control_release(s);
    fd_close(&fd);
}

/* ---- The loop ---------------------------------------------------------------------- */

static int sleep_until(double due, struct epoll_event *events)
{
    loop.asleep = true;
    loop.sleeps_until = due;
    control_unlock();
    const int count = epoll_wait(loop.epoll, events, EVENTS, clock_ms_until(due, 60000));
    control_lock();
    loop.asleep = false;
    return count;
}

static void dispatch(control_source *s)
{
    if (s == NULL) {
        uint64_t rings;
        const ssize_t got = read(loop.bell, &rings, sizeof rings);
        (void)got; /* the read only empties the bell */
        return;
    }
    log_set_rank(s->client->rank, s->client->size);
    s->ready(s);
}

/* Calls tick() of the clients whose timers are due, and of all clients after a stall. */
static void serve_clients(double now, double stall)
{
    for (control_client *c = loop.clients, *next; c != NULL; c = next) {
        next = c->next; /* tick() may end the client */
        if (now < c->due && stall < STALL_LEAST)
            continue;
        log_set_rank(c->rank, c->size);
        c->due = CONTROL_NEVER;
        c->tick(c, now, stall);
    }
}

/* Waits for events and timers once, and serves them. */
static void serve_once(void)
{
    struct epoll_event events[EVENTS];
    const uint64_t releases = loop.releases;
    double due = CONTROL_NEVER;
    for (const control_client *c = loop.clients; c != NULL; c = c->next)
        if (c->due < due)
            due = c->due;
    const int count = sleep_until(due, events);
    const double now = clock_now();
    for (int i = 0; i < count && loop.releases == releases; i++)
        dispatch(events[i].data.ptr);
    serve_clients(now, now - due);
}

/* A wait without a deadline ends after days, since CONTROL_NEVER does not fit into a timespec. */
bool control_wait(pthread_cond_t *changed, double deadline)
{
    const double latest = clock_now() + 1e6;
    const double moment = deadline < latest ? deadline : latest;
    const struct timespec until = {.tv_sec = (time_t)moment,
                                   .tv_nsec = (long)((moment - (double)(time_t)moment) * 1e9)};
    return pthread_cond_timedwait(changed, &loop.lock, &until) != ETIMEDOUT || moment < deadline;
}

/* ---- Life -------------------------------------------------------------------------- */

static void close_loop(void)
{
    fd_close(&loop.bell);
    fd_close(&loop.epoll);
}

static void *run(void *unused)
{
    control_lock();
    while (!loop.stopping)
        serve_once();
    if (loop.unjoined)
        close_loop();
    control_unlock();
    return unused;
}

static ring_status open_loop(void)
{
    loop.epoll = fd_guard(epoll_create1(EPOLL_CLOEXEC));
    loop.bell = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (loop.epoll < 0 || loop.bell < 0 ||
        epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.bell, &event) != 0)
        return fail(RING_ERR_SYSTEM,
                    "starting the control thread: %m; raise the limit on open files (ulimit -n)");
    loop.stopping = loop.unjoined = false;
    errno = thread_start(&loop.thread, run, NULL);
    return errno == 0 ? RING_OK : fail(RING_ERR_SYSTEM, "starting the control thread: %m");
}

ring_status control_enter(control_client *c)
{
    pthread_mutex_lock(&loop.life);
    control_lock();
    const ring_status status = loop.users == 0 ? open_loop() : RING_OK;
    if (status != RING_OK) {
        close_loop();
    } else {
        loop.users++;
        c->next = loop.clients;
        c->due = CONTROL_NEVER;
        loop.clients = c;
    }
    control_unlock();
    pthread_mutex_unlock(&loop.life);
    return status;
}

/* Removes @p c from the clients. The thread stops after the last one. */
static void remove_client(const control_client *c)
{
    control_client **at = &loop.clients;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    loop.stopping = --loop.users == 0;
}

void control_exit(control_client *c)
{
    pthread_mutex_lock(&loop.life);
    control_lock();
    remove_client(c);
    const bool last = loop.stopping;
    control_unlock();
    if (last) {
        ring_bell();
        pthread_join(loop.thread, NULL);
        close_loop();
    }
    pthread_mutex_unlock(&loop.life);
}

/* run() closes the loop before it releases the lock, so control_enter() may open another at once.
 */
void control_exit_by_tick(control_client *c)
{
    remove_client(c);
    loop.unjoined = loop.stopping;
    if (loop.unjoined)
        pthread_detach(loop.thread);
}

/* ---- Forks ------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&loop.life);
    pthread_mutex_lock(&loop.lock);
}

static void give_up_both(void)
{
    pthread_mutex_unlock(&loop.lock);
    pthread_mutex_unlock(&loop.life);
}

/* The child has no control thread, and its copies of guarded descriptors are closed (fd_guard()).
 * The copies of the parent's communicators stay in its memory and are not used. */
static void in_child(void)
{
    loop.users = 0;
    loop.clients = NULL;
    loop.epoll = loop.bell = -1;
    loop.asleep = false;
    give_up_both();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, give_up_both, in_child);
}
