/* SPDX-License-Identifier: Apache-2.0
 * Accepting, questioning, refusing. */
#include "doorman.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* A guest who has had this long to answer may be sent away for a newer one. Until then
 * newcomers wait in the kernel's queue, so a crowd of members does not evict itself. */
#define PATIENCE 0.02
#define WARN_SECONDS 60.0

void doorman_open(doorman *d, int listener, enum hand_purpose purpose, const hand_terms *terms)
{
    *d = (doorman){.listener = listener, .purpose = purpose, .terms = terms,
                   .room = DOORMAN_GUESTS};
}

static bool full(const doorman *d)
{
    return d->count >= d->room;
}

static void remove_guest(doorman *d, size_t i)
{
    d->count--;
    memmove(&d->guests[i], &d->guests[i + 1], (d->count - i) * sizeof d->guests[0]);
}

static void send_away_oldest(doorman *d)
{
    hand_drop(&d->guests[0].hand);
    remove_guest(d, 0);
}

bool doorman_yield(doorman *d)
{
    if (d->count == 0)
        return false;
    send_away_oldest(d);
    d->room = max_size(d->count, 1);
    return true;
}

static bool somebody_waits(const doorman *d)
{
    struct pollfd entry = {.fd = d->listener, .events = POLLIN};
    return poll(&entry, 1, 0) > 0;
}

/* Until then newcomers have to wait. */
static double opens_at(const doorman *d)
{
    const double polite = full(d) ? d->guests[0].hand.expires - HAND_SECONDS + PATIENCE : 0;
    return polite > d->rest ? polite : d->rest;
}

static bool make_room(doorman *d)
{
    while (full(d) && clock_now() >= opens_at(d))
        send_away_oldest(d);
    return !full(d) && clock_now() >= d->rest;
}

static ring_status no_descriptor(doorman *d)
{
    if (d->count == 0)
        return fail(RING_ERR_SYSTEM, "accepting a connection: %m; see ulimit -n");
    d->room = d->count;
    return RING_OK;
}

/* It may pass; until then the caller's loop goes on, with its deadline. */
static void cannot_accept(doorman *d)
{
    log_debug("accepting a connection: %m; trying on");
    d->rest = clock_now() + PATIENCE;
}

static ring_status take_in(doorman *d)
{
    while (somebody_waits(d) && make_room(d)) {
        guest *g = &d->guests[d->count];
        g->from.length = sizeof g->from.at;
        const int fd = fd_guard(accept4(d->listener, &g->from.at.any, &g->from.length,
                                        SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd >= 0)
            hand_answer(&d->guests[d->count++].hand, fd, d->terms);
        else if (errno == EMFILE || errno == ENFILE)
            RING_TRY(no_descriptor(d));
        else
            cannot_accept(d);
    }
    return RING_OK;
}

/* One line a minute at most, whatever strangers do. */
static void note_refusal(doorman *d, const guest *g, ring_status why)
{
    char from[ADDRESS_TEXT_MAX];
    const bool loud = why == RING_ERR_AUTH &&
                      (d->warned <= 0 || clock_now() - d->warned > WARN_SECONDS);
    log_at(loud ? LOG_WARN : LOG_DEBUG, "refused a connection from %s: %s",
           address_text(&g->from, from), fail_text());
    if (loud)
        d->warned = clock_now();
}

static ring_status admit(const doorman *d, hand *h, int *fd, hand_hello *hello)
{
    if (h->caller.purpose != d->purpose) {
        hand_drop(h);
        return fail(RING_ERR_AUTH, "rank %d came to the wrong door", h->caller.rank);
    }
    *fd = h->fd;
    *hello = h->caller;
    return RING_OK;
}

static ring_status question(doorman *d, int *fd, hand_hello *hello)
{
    for (size_t i = 0; i < d->count;) {
        hand *h = &d->guests[i].hand;
        ring_status status = hand_step(h);
        if (status == RING_OK)
            status = admit(d, h, fd, hello);
        if (status == RING_IN_PROGRESS) {
            i++;
            continue;
        }
        if (status != RING_OK && status != RING_ERR_CONFIG)
            note_refusal(d, &d->guests[i], status);
        remove_guest(d, i);
        if (status == RING_OK || status == RING_ERR_CONFIG)
            return status;
    }
    return RING_IN_PROGRESS;
}

ring_status doorman_step(doorman *d, int *fd, hand_hello *hello)
{
    RING_TRY(take_in(d));
    return question(d, fd, hello);
}

ring_status doorman_wait(const doorman *d, waits *w)
{
    for (size_t i = 0; i < d->count; i++) {
        const hand *h = &d->guests[i].hand;
        RING_TRY(waits_add(w, h->fd, hand_events(h)));
        waits_due(w, h->expires);
    }
    if (clock_now() >= opens_at(d))
        return waits_add(w, d->listener, POLLIN);
    waits_due(w, opens_at(d));
    return RING_OK;
}

void doorman_close(doorman *d)
{
    while (d->count > 0)
        hand_drop(&d->guests[--d->count].hand);
    fd_close(&d->listener);
}
