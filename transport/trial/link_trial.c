/* SPDX-License-Identifier: Apache-2.0
 * Measures latency with short frames that go back and forth, and bandwidth with long puts into
 * registered memory. The calling thread drives both ends of the link. */
#include "link_trial.h"

#include "regions.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_ROUNDS = 2000 };                   /* round trips whose times are kept                */
enum { PUT = 1 << 20, PUTS = 8 };              /* bytes of a put; puts that fill one buffer       */
enum { BYTES = PUTS * PUT, BOTH = 2 * BYTES }; /* bytes of one buffer; bytes of both              */
enum { AHEAD = 4, PAGE = 4096 };               /* puts in flight; alignment of the buffers, bytes */
static const double measured_for = 0.15;       /* seconds of each measurement                     */
static const double patience = 5;              /* seconds until the trial fails                   */

typedef struct trial {
    const transport *t;
    transport_link *a, *b;
    unsigned char *from, *to; /* [BYTES] each, in one region */
    double give_up;           /* clock_now() at which the trial fails */
} trial;

/* ---- The link ----------------------------------------------------------------------------- */

static ring_status open_both(trial *t, const transport_ib *ib)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return fail(RING_ERR_SYSTEM, "socketpair: %m");
    const transport_peer ends[] = {{.rank = 0, .peer = 1, .fd = fds[0], .ib = ib},
                                   {.rank = 1, .peer = 0, .fd = fds[1], .ib = ib}};
    const ring_status status = t->t->open(&ends[0], &t->a);
    if (status == RING_OK)
        return t->t->open(&ends[1], &t->b);
    fd_close(&fds[1]);
    return status;
}

/* Makes progress at both ends once, because each may wait for the other.
 * @param[out] opens  true while an end is still opening. */
static ring_status move(const trial *t, bool *opens)
{
    if (clock_now() > t->give_up)
        return fail(RING_ERR_TIMEOUT, "the link trial did not end within %g s", patience);
    transport_link *const ends[] = {t->a, t->b};
    *opens = false;
    for (size_t i = 0; i < 2; i++) {
        const ring_status status = t->t->progress(ends[i]);
        *opens |= status == RING_IN_PROGRESS;
        RING_TRY(status == RING_IN_PROGRESS ? RING_OK : status);
    }
    return RING_OK;
}

/* Sends a frame without payload, waiting for room. */
static ring_status give(const trial *t, transport_link *from, const transport_frame *frame)
{
    bool opens;
    ring_status status;
    while ((status = t->t->send(from, frame, NULL, true)) == RING_IN_PROGRESS)
        RING_TRY(move(t, &opens));
    return status;
}

/* Waits for a frame and consumes it. @param[out] frame  a copy of its header. */
static ring_status take(const trial *t, transport_link *at, transport_frame *frame)
{
    const transport_frame *here;
    const void *payload;
    bool opens;
    ring_status status;
    while ((status = t->t->peek(at, &here, &payload)) == RING_IN_PROGRESS)
        RING_TRY(move(t, &opens));
    RING_TRY(status);
    *frame = *here;
    t->t->consume(at);
    return RING_OK;
}

/* ---- Time --------------------------------------------------------------------------------- */

static ring_status one_way(const trial *t, transport_link *from, transport_link *to, uint64_t n)
{
    transport_frame frame = {.length = sizeof n, .message = from->frames_sent}, got;
    memcpy(frame.data, &n, sizeof n);
    RING_TRY(give(t, from, &frame));
    RING_TRY(take(t, to, &got));
    if (got.length == sizeof n && memcmp(got.data, &n, sizeof n) == 0)
        return RING_OK;
    return fail(RING_ERR_PEER, "an 8-byte message arrived corrupted");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ring_status measure_time(const trial *t, link_trial *out)
{
    double us[MOST_ROUNDS];
    const double until = clock_now() + measured_for;
    size_t rounds = 0;
    while (rounds < MOST_ROUNDS && (rounds == 0 || clock_now() < until)) {
        const double begin = clock_now();
        RING_TRY(one_way(t, t->a, t->b, rounds));
        RING_TRY(one_way(t, t->b, t->a, ~rounds));
        us[rounds++] = 1e6 * (clock_now() - begin);
    }
    qsort(us, rounds, sizeof us[0], by_value);
    out->median_us = us[rounds / 2];
    out->slow_us = us[rounds * 99 / 100];
    return RING_OK;
}

/* ---- Speed -------------------------------------------------------------------------------- */

/* Sends a reference to the receiver's buffer from b to a, which will write there.
 * @param[out] ref  the reference as it arrived at a. */
static ring_status refer(const trial *t, uint64_t *ref)
{
    transport_frame frame = {.flags = FRAME_LONG | FRAME_REF}, got;
    frame.ext.bytes = BYTES;
    frame.ext.src_ref = t->t->ref(t->b, t->to, BYTES);
    if (frame.ext.src_ref == 0 || t->t->ref(t->a, t->from, BYTES) == 0)
        return fail(RING_ERR_SYSTEM, "the adapter cannot register a buffer of %d MiB", BYTES >> 20);
    RING_TRY(give(t, t->b, &frame));
    RING_TRY(take(t, t->a, &got));
    *ref = got.ext.src_ref;
    return RING_OK;
}

/* Puts part @p n modulo PUTS of the buffer, waiting for room. */
static ring_status put(const trial *t, uint64_t n, uint64_t ref)
{
    transport_frame frame = {.flags = FRAME_LONG | FRAME_STORED, .message = t->a->frames_sent};
    const size_t offset = n % PUTS * PUT;
    bool opens;
    ring_status status;
    frame.ext.bytes = PUT;
    while ((status = t->t->put(t->a, &frame, t->from + offset, ref + offset)) == RING_IN_PROGRESS)
        RING_TRY(move(t, &opens));
    return status;
}

static ring_status measure_speed(const trial *t, link_trial *out)
{
    uint64_t sent = 0, taken = 0, ref = 0;
    transport_frame got;
    RING_TRY(refer(t, &ref));
    const double begin = clock_now();
    double now = begin;
    while (taken < PUTS || now < begin + measured_for) {
        for (; sent < taken + AHEAD; sent++)
            RING_TRY(put(t, sent, ref));
        RING_TRY(take(t, t->b, &got));
        taken++;
        now = clock_now();
    }
    out->bytes_per_second = (double)(taken * PUT) / (now - begin);
    for (; taken < sent; taken++)
        RING_TRY(take(t, t->b, &got));
    return memcmp(t->from, t->to, BYTES) == 0
               ? RING_OK
               : fail(RING_ERR_PEER, "a long message arrived corrupted");
}

/* ---- The whole trial ---------------------------------------------------------------------- */

static ring_status measure(trial *t, const transport_ib *ib, link_trial *out)
{
    RING_TRY(open_both(t, ib));
    for (bool opens = true; opens;)
        RING_TRY(move(t, &opens));
    t->give_up = clock_now() + patience;
    RING_TRY(measure_time(t, out));
    return measure_speed(t, out);
}

ring_status link_try(const transport *t, const transport_ib *ib, link_trial *out)
{
    trial here = {.t = t, .give_up = clock_now() + patience};
    here.from = aligned_alloc(PAGE, BOTH);
    if (here.from == NULL)
        return fail(RING_ERR_MEMORY, "no memory for two buffers of %d MiB", BYTES >> 20);
    here.to = here.from + BYTES;
    for (size_t i = 0; i < BYTES; i++)
        here.from[i] = (unsigned char)(i * 2654435761u >> 16);
    ring_status status = region_add(here.from, BOTH, REGION_PLAIN);
    if (status == RING_OK) {
        status = measure(&here, ib, out);
        if (here.a != NULL)
            t->close(here.a);
        if (here.b != NULL)
            t->close(here.b);
        (void)region_remove(here.from);
    }
    free(here.from);
    return status;
}
