/* SPDX-License-Identifier: Apache-2.0
 *
 * Accepts connections, runs the handshake with each peer, and evicts peers when places run out.
 * Each pending peer may keep its place for a short time, its patience. A newcomer is accepted only
 * when a place is free or the patience of a pending peer has ended, so that a crowd of members does
 * not evict its own members.
 */
#include "acceptor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* s: the time after which a pending peer may be evicted for a newer one; until then newcomers wait
 * in the kernel's queue. A member sends its hello together with the connection, so even over a long
 * distance the hello arrives at once, and shows that the peer has the key. Its proof arrives a
 * round trip later. If the key is public, all members are on this host and need less time. */
#define HELLO_PATIENCE 0.005
#define PROOF_PATIENCE 2.0
#define PUBLIC_PATIENCE 0.02
#define REST_SECONDS 0.02 /* pause after a failed accept() */
#define WARN_SECONDS 60.0

/* The list of this process's acceptors, guarded by the lock. A forked child starts with an empty
 * list, since the descriptors of its copies are closed. */
static acceptor **first(void)
{
    static acceptor *all;
    static unsigned generation;
    if (generation != fork_generation())
        all = NULL;
    generation = fork_generation();
    return &all;
}

/* ---- Pending peers ----------------------------------------------------------------- */

static void remove_pending(acceptor *a, pending_peer *p)
{
    size_t i = 0;
    while (a->pending[i] != p)
        i++;
    a->count--;
    memmove(&a->pending[i], &a->pending[i + 1], (a->count - i) * sizeof a->pending[0]);
    control_close(&p->source);
    free(p);
}

/* @return the time at which the peer may be evicted. */
static double patience_ends(const pending_peer *p)
{
    const double for_proof = p->acceptor->terms->users != NULL ? PUBLIC_PATIENCE : PROOF_PATIENCE;
    return p->handshake.started + (p->handshake.shows_key ? for_proof : HELLO_PATIENCE);
}

/* Chooses the oldest peer that has not shown the key; if there is none, the oldest one that has.
 * @return NULL if no peer may be evicted at @p now. */
static pending_peer *next_to_evict(const acceptor *a, double now)
{
    pending_peer *proving = NULL;
    for (size_t i = 0; i < a->count; i++) {
        pending_peer *p = a->pending[i];
        if (now < patience_ends(p))
            continue;
        if (!p->handshake.shows_key)
            return p;
        proving = proving != NULL ? proving : p;
    }
    return proving;
}

bool acceptor_evict_any(void)
{
    for (acceptor *a = *first(); a != NULL; a = a->next) {
        pending_peer *p = next_to_evict(a, CONTROL_NEVER);
        if (p == NULL)
            continue;
        remove_pending(a, p);
        a->room = max_size(a->count, 1); /* a newcomer must not take the freed descriptor */
        return true;
    }
    return false;
}

/* @return the time at which the next newcomer can be accepted: there is a free place or a peer to
 * evict, and the pause after a failed accept() has ended. */
static double opens_at(const acceptor *a)
{
    double place_at = a->count >= a->room ? CONTROL_NEVER : 0;
    for (size_t i = 0; i < a->count && place_at > 0; i++) {
        const double end = patience_ends(a->pending[i]);
        place_at = end < place_at ? end : place_at;
    }
    return place_at > a->resume_at ? place_at : a->resume_at;
}

/* @return true if the acceptor listens, but has stopped watching for newcomers. */
static bool is_resting(const acceptor *a)
{
    return a->terms != NULL && a->source.fd >= 0 && a->source.events == 0;
}

/* ---- Handshakes -------------------------------------------------------------------- */

/* Logs that a peer was refused. At most one warning a minute is logged, so that strangers cannot
 * flood the log. */
static void note_refusal(acceptor *a, const net_address *from, const handshake *h, ring_status why)
{
    char text[ADDRESS_TEXT_MAX], who[64] = "";
    const double now = clock_now();
    const bool loud = why == RING_ERR_AUTH && (a->warned <= 0 || now - a->warned > WARN_SECONDS);
    if (h->state == HANDSHAKE_PROOF)
        text_format(who, sizeof who, ", which claims to be rank %d of %d", h->dialer.rank,
                    h->dialer.size);
    log_at(loud ? LOG_WARN : LOG_DEBUG, "refused a connection from %s%s: %s",
           address_text(from, text), who, fail_text());
    if (loud)
        a->warned = now;
}

/* Advances the handshake of @p p, and frees @p p when the handshake has ended. */
static void advance(pending_peer *p)
{
    acceptor *a = p->acceptor;
    ring_status status = handshake_step(&p->handshake);
    if (status == RING_IN_PROGRESS) {
        status = control_watch(&p->source, handshake_events(&p->handshake));
        control_due(a->source.client, p->handshake.expires);
        if (status == RING_OK)
            return;
    } else if (status == RING_OK) {
        status = a->wants != NULL ? a->wants(a, &p->handshake) : RING_OK;
        if (status == RING_OK)
            status = handshake_welcome(&p->handshake);
        else if (status == RING_ERR_ABORTED)
            handshake_decline(&p->handshake);
        status = status == RING_IN_PROGRESS ? RING_OK : status; /* admitted without the welcome */
    }
    const handshake over = p->handshake;
    const net_address from = p->from;
    const int fd = status == RING_OK ? control_release(&p->source) : -1;
    remove_pending(a, p);
    if (is_resting(a))
        control_due(a->source.client, opens_at(a)); /* its place is free */
    if (status == RING_OK)
        a->admit(a, fd, &over);
    else if (status == RING_ERR_CONFIG)
        a->refuse(a, status);
    else
        note_refusal(a, &from, &over, status);
}

static void on_pending(control_source *s)
{
    advance((pending_peer *)s);
}

/* ---- Accepting --------------------------------------------------------------------- */

/* Retries accept() after a pause, since it may fail temporarily. Pending handshakes continue. */
static void pause_accepting(acceptor *a)
{
    log_debug("accepting a connection: %m; retrying");
    a->resume_at = clock_now() + REST_SECONDS;
}

/* Handles a lack of descriptors. If this acceptor has pending peers, it accepts no more until one
 * of them has finished. Otherwise it evicts a pending peer of another acceptor. If there is no such
 * peer either, the process has too few descriptors. */
static void on_no_descriptor(acceptor *a)
{
    if (a->count > 0) {
        a->room = a->count;
        return;
    }
    const ring_status lack = fail(
        RING_ERR_SYSTEM, "accepting a connection: %m; raise the limit on open files (ulimit -n)");
    if (acceptor_evict_any())
        return;
    pause_accepting(a);
    a->refuse(a, lack);
}

/* Begins the handshake with a peer. @return false, without closing @p fd, if there is no memory. */
static bool add_pending(acceptor *a, int fd, const net_address *from)
{
    pending_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return false;
    p->source = (control_source){.fd = fd, .client = a->source.client, .ready = on_pending};
    p->acceptor = a;
    p->from = *from;
    handshake_accept(&p->handshake, fd, a->terms);
    a->pending[a->count++] = p;
    advance(p);
    return true;
}

static void accept_one(acceptor *a)
{
    net_address from = {.length = sizeof from.at};
    int fd = fd_guard(
        accept4(a->source.fd, &from.at.any, &from.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd >= 0 && add_pending(a, fd, &from))
        return;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        on_no_descriptor(a);
    else
        pause_accepting(a);
    fd_close(&fd);
}

/* Accepts at most ACCEPTOR_PENDING peers at once, so that strangers cannot keep this thread from
 * its other work. */
static void accept_waiting(acceptor *a)
{
    for (int i = 0; i < ACCEPTOR_PENDING && a->source.fd >= 0; i++) {
        struct pollfd entry = {.fd = a->source.fd, .events = POLLIN};
        if (poll(&entry, 1, 0) <= 0)
            break;
        const double now = clock_now();
        pending_peer *p;
        while (a->count >= a->room && (p = next_to_evict(a, now)) != NULL)
            remove_pending(a, p);
        if (a->count >= a->room || now < a->resume_at)
            break;
        accept_one(a);
    }
    if (a->source.fd < 0)
        return;
    const bool open = clock_now() >= opens_at(a);
    if (control_watch(&a->source, open ? EPOLLIN : 0) != RING_OK)
        log_debug("%s", fail_text());
    if (!open)
        control_due(a->source.client, opens_at(a));
}

static void on_listener(control_source *s)
{
    accept_waiting((acceptor *)s);
}

double acceptor_tick(acceptor *a, double now)
{
    double due = CONTROL_NEVER;
    for (size_t i = 0; i < a->count;) {
        pending_peer *p = a->pending[i];
        if (now >= p->handshake.expires)
            advance(p); /* the handshake has expired, so this removes p */
        else if (p->handshake.expires < due)
            due = p->handshake.expires;
        i += i < a->count && a->pending[i] == p;
    }
    if (is_resting(a))
        accept_waiting(a);
    const double opens = is_resting(a) ? opens_at(a) : due;
    return opens < due ? opens : due;
}

/* ---- Life -------------------------------------------------------------------------- */

ring_status acceptor_open(acceptor *a, const acceptor *like, int fd)
{
    *a = *like;
    a->source.fd = fd_guard(fd);
    a->source.ready = on_listener;
    a->room = ACCEPTOR_PENDING;
    a->next = *first();
    *first() = a;
    if (listen(a->source.fd, SOMAXCONN) != 0)
        return fail(RING_ERR_SYSTEM, "listening for other ranks: %m");
    return control_watch(&a->source, EPOLLIN);
}

void acceptor_close(acceptor *a)
{
    acceptor **at = first();
    while (*at != NULL && *at != a)
        at = &(*at)->next;
    if (*at != NULL)
        *at = a->next;
    while (a->count > 0)
        remove_pending(a, a->pending[0]);
    if (a->source.fd >= 0)
        shutdown(a->source.fd, SHUT_RDWR); /* a copy in a parent process stops listening, too */
    control_close(&a->source);
}
