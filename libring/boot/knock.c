/* SPDX-License-Identifier: Apache-2.0
 * Connecting until somebody who belongs to us answers. */
#include "knock.h"

#include <errno.h>

#define FIRST_PAUSE 0.001

/* That somebody else was there tells more than that nobody is there now. */
static void note_reason(knock *k, ring_status why)
{
    if (k->why == RING_ERR_AUTH && why != RING_ERR_AUTH)
        return;
    k->why = why;
    text_format(k->text, sizeof k->text, "%s", fail_text());
}

/* The other side may not be there yet, or a stranger may hold its place for a moment. */
static ring_status try_later(knock *k, ring_status why)
{
    k->busy = false;
    note_reason(k, why);
    k->pause = k->pause > 0 ? 2 * k->pause : FIRST_PAUSE;
    if (k->pause > k->most_pause)
        k->pause = k->most_pause;
    k->again = clock_now() + k->pause;
    return why == RING_ERR_SYSTEM ? why : RING_IN_PROGRESS;
}

static ring_status start(knock *k, const hand_terms *terms)
{
    int fd;
    RING_TRY(address_socket(&k->to, &fd));
    fd_guard(fd);
    if (connect(fd, &k->to.at.any, k->to.length) != 0 && errno != EINPROGRESS) {
        const ring_status status = fail(RING_ERR_PEER, "%m");
        fd_close(&fd);
        return status;
    }
    const hand_hello hello = hand_hello_to(terms, k->peer, k->purpose, k->lane);
    hand_call(&k->hand, fd, terms, &hello, k->extra, k->extra_bytes);
    k->busy = true;
    return RING_OK;
}

ring_status knock_step(knock *k, const hand_terms *terms)
{
    if (k->done)
        return RING_OK;
    if (!k->busy && clock_now() < k->again)
        return RING_IN_PROGRESS;
    ring_status status = k->busy ? RING_OK : start(k, terms);
    if (status == RING_OK)
        status = hand_step(&k->hand);
    if (status == RING_IN_PROGRESS)
        return status;
    k->done = status == RING_OK;
    if (status == RING_OK || status == RING_ERR_CONFIG) {
        k->busy = false;
        return status;
    }
    return try_later(k, status);
}

ring_status knock_wait(const knock *k, waits *w)
{
    if (k->done)
        return RING_OK;
    waits_due(w, k->busy ? k->hand.expires : k->again);
    return k->busy ? waits_add(w, k->hand.fd, hand_events(&k->hand)) : RING_OK;
}

void knock_drop(knock *k)
{
    if (k->busy)
        hand_drop(&k->hand);
    k->busy = false;
}
