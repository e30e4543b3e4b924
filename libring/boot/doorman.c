/* SPDX-License-Identifier: Apache-2.0
 * Accepting, questioning, refusing. */
#include "doorman.h"

#include <errno.h>
#include <string.h>

/* A guest who has had this long to answer may be sent away for a newer one. Until then
 * newcomers wait in the kernel's queue, so a crowd of members does not evict itself. */
#define PATIENCE 0.02
#define WARN_SECONDS 60.0

void doorman_open(doorman *d, int listener, enum hand_purpose purpose, const hand_terms *terms)
{
    *d = (doorman){.listener = listener, .purpose = purpose, .terms = terms};
}

static double age(const guest *g)
{
    return clock_now() - (g->hand.expires - HAND_SECONDS);
}

static bool full(const doorman *d)
{
    return d->count == DOORMAN_GUESTS;
}

static void remove_guest(doorman *d, size_t i)
{
    d->count--;
    memmove(&d->guests[i], &d->guests[i + 1], (d->count - i) * sizeof d->guests[0]);
}

static bool make_room(doorman *d)
{
    if (!full(d))
        return true;
    if (age(&d->guests[0]) < PATIENCE)
        return false;
    hand_drop(&d->guests[0].hand);
    remove_guest(d, 0);
    return true;
}

static ring_status take_in(doorman *d)
{
    while (make_room(d)) {
        guest *g = &d->guests[d->count];
        g->from.length = sizeof g->from.at;
        const int fd = accept4(d->listener, &g->from.at.any, &g->from.length,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            hand_answer(&d->guests[d->count++].hand, fd, d->terms);
        else if (errno == EAGAIN)
            return RING_OK;
        else if (errno == EMFILE || errno == ENFILE || errno == EBADF || errno == EINVAL)
            return fail(RING_ERR_SYSTEM, "accepting a connection: %m; see ulimit -n");
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
    if (!full(d))
        return waits_add(w, d->listener, POLLIN);
    waits_due(w, d->guests[0].hand.expires - HAND_SECONDS + PATIENCE);
    return RING_OK;
}

void doorman_close(doorman *d)
{
    while (d->count > 0)
        hand_drop(&d->guests[--d->count].hand);
    fd_close(&d->listener);
}
