/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects and retries until a member of this job answers. Each try is a new socket with a new
 * handshake; the pause between tries doubles up to a limit.
 */
#include "dialer.h"

#include "acceptor.h"

#include <errno.h>

#define FIRST_PAUSE 0.001 /* s */
/* s: a process whose address refuses connections, or is unreachable, for longer has ended. */
#define REFUSALS 5.0

static void end(dialer *d, ring_status status)
{
    const int fd = status == RING_OK ? control_release(&d->source) : -1;
    dialer_drop(d);
    d->done(d, status, fd);
}

void dialer_drop(dialer *d)
{
    control_close(&d->source);
    d->busy = false;
    d->ended = true;
}

/* Schedules the next try: the peer may not listen yet, or a stranger may use its port for a short
 * time. */
static void try_later(dialer *d, ring_status why)
{
    const double now = clock_now();
    const int e = d->handshake.error;
    control_close(&d->source);
    d->busy = false;
    if (e != ECONNREFUSED && e != EHOSTUNREACH && e != ENETUNREACH && e != ETIMEDOUT)
        d->refused = 0;
    else if (d->refused <= 0)
        d->refused = now;
    /* A stranger at the address explains a failure better than any other reason. */
    if (d->why != RING_ERR_AUTH || why == RING_ERR_AUTH) {
        d->why = why;
        text_format(d->text, sizeof d->text, "%s", fail_text());
    }
    d->pause = d->pause > 0 ? 2 * d->pause : FIRST_PAUSE;
    if (d->pause > d->most_pause)
        d->pause = d->most_pause;
    d->again = now + d->pause;
}

static void on_ready(control_source *s)
{
    dialer_go((dialer *)s);
}

/* Starts a try: opens a socket, and begins to connect. */
static ring_status start(dialer *d)
{
    int fd;
    d->handshake.error = 0;
    RING_TRY(address_socket(&d->to, &fd));
    d->source.fd = fd_guard(fd);
    d->source.ready = on_ready;
    if (connect(fd, &d->to.at.any, d->to.length) != 0 && errno != EINPROGRESS) {
        d->handshake.error = errno;
        return fail(RING_ERR_PEER, "%m");
    }
    const handshake_hello hello = handshake_hello_to(d->terms, d->peer, &d->purpose);
    handshake_dial(&d->handshake, fd, d->terms, &hello, d->patience);
    d->busy = true;
    return RING_OK;
}

static ring_status step(dialer *d)
{
    ring_status status = RING_OK;
    if (!d->busy)
        while ((status = start(d)) == RING_ERR_SYSTEM && acceptor_evict_any())
            continue; /* an evicted stranger has freed a descriptor */
    RING_TRY(status);
    status = handshake_step(&d->handshake);
    return status == RING_IN_PROGRESS &&
                   control_watch(&d->source, handshake_events(&d->handshake)) != RING_OK
               ? RING_ERR_SYSTEM
               : status;
}

void dialer_go(dialer *d)
{
    if (d->ended)
        return;
    ring_status status = RING_IN_PROGRESS;
    if (d->busy || clock_now() >= d->again)
        status = step(d);
    const bool retries = status != RING_OK && status != RING_ERR_CONFIG &&
                         status != RING_ERR_ABORTED && d->most_pause > 0 &&
                         (status != RING_ERR_SYSTEM || d->frugal);
    if (status != RING_IN_PROGRESS && !retries) {
        end(d, status);
        return;
    }
    if (status != RING_IN_PROGRESS)
        try_later(d, status);
    if (d->listens_always && d->refused > 0 && clock_now() >= d->refused + REFUSALS)
        end(d, fail(RING_ERR_PEER, "%s", d->text));
    else if (clock_now() >= d->deadline)
        end(d, fail(RING_ERR_TIMEOUT, "%s", d->why != RING_OK ? d->text : "no answer"));
    else
        control_due(d->source.client, dialer_due(d));
}

double dialer_due(const dialer *d)
{
    const double own = d->busy ? d->handshake.expires : d->again;
    return own < d->deadline ? own : d->deadline;
}
