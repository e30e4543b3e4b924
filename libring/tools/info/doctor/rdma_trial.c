/* SPDX-License-Identifier: Apache-2.0
 * Two ends of one verbs link in this process: short frames there and back for the time, long puts
 * into registered memory for the speed. All that arrives is compared. */
#include "rdma_trial.h"

#ifdef RING_HAVE_VERBS
#include "adapter.h"
#include "regions.h"
#include "sysfs.h"
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_ROUNDS = 2000, PUT = 1 << 20, PUTS = 8, BYTES = PUTS * PUT, AHEAD = 4, PAGE = 4096 };
static const double measured_for = 0.15, patience = 5; /* s */

typedef struct trial {
    const transport *t;
    transport_link *a, *b;
    unsigned char *from, *to; /* of BYTES, in one region */
    double give_up;
} trial;

/* ---- The link ----------------------------------------------------------------------------- */

static ring_status open_end(const trial *t, int rank, int fd, const char *port,
                            transport_link **out)
{
    char only[80];
    transport_ib ib = TRANSPORT_IB_DEFAULTS;
    snprintf(only, sizeof only, "=%.70s", port);
    ib.hca = only;
    const transport_peer peer = {.rank = rank, .peer = 1 - rank, .fd = fd, .ib = &ib};
    return t->t->open(&peer, out);
}

static ring_status open_both(trial *t, const char *port)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return fail(RING_ERR_SYSTEM, "socketpair: %m");
    const ring_status status = open_end(t, 0, fds[0], port, &t->a);
    if (status == RING_OK)
        return open_end(t, 1, fds[1], port, &t->b);
    fd_close(&fds[1]);
    return status;
}

/* An end can do after both were moved what it refused before. @param[out] opens  one is opening. */
static ring_status move(const trial *t, bool *opens)
{
    if (clock_now() > t->give_up)
        return fail(RING_ERR_TIMEOUT, "nothing came within %g s", patience);
    transport_link *const ends[] = {t->a, t->b};
    *opens = false;
    for (size_t i = 0; i < 2; i++) {
        const ring_status status = t->t->progress(ends[i]);
        *opens |= status == RING_IN_PROGRESS;
        RING_TRY(status == RING_IN_PROGRESS ? RING_OK : status);
    }
    return RING_OK;
}

static ring_status give(const trial *t, transport_link *from, const transport_frame *frame)
{
    bool opens;
    ring_status status;
    while ((status = t->t->send(from, frame, NULL, true)) == RING_IN_PROGRESS)
        RING_TRY(move(t, &opens));
    return status;
}

/* @param[out] frame  the oldest one, consumed. */
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
    return fail(RING_ERR_PEER, "8 bytes arrived changed");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ring_status measure_time(const trial *t, fact_trial *out)
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

/* The receiver tells the sender where it may write. */
static ring_status refer(const trial *t, uint64_t *ref)
{
    transport_frame frame = {.flags = FRAME_LONG | FRAME_REF}, got;
    frame.ext.bytes = BYTES;
    frame.ext.src_ref = t->t->ref(t->b, t->to, BYTES);
    if (frame.ext.src_ref == 0 || t->t->ref(t->a, t->from, BYTES) == 0)
        return fail(RING_ERR_SYSTEM, "the adapter cannot register %d MiB", BYTES >> 20);
    RING_TRY(give(t, t->b, &frame));
    RING_TRY(take(t, t->a, &got));
    *ref = got.ext.src_ref;
    return RING_OK;
}

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

static ring_status measure_speed(const trial *t, fact_trial *out)
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
               : fail(RING_ERR_PEER, "a long message arrived changed");
}

/* ---- Ports -------------------------------------------------------------------------------- */

static ring_status measure(trial *t, fact_trial *out)
{
    RING_TRY(open_both(t, out->port));
    for (bool opens = true; opens;)
        RING_TRY(move(t, &opens));
    t->give_up = clock_now() + patience;
    RING_TRY(measure_time(t, out));
    return measure_speed(t, out);
}

static ring_status measure_with_memory(trial *t, fact_trial *out)
{
    if (t->from == NULL)
        return fail(RING_ERR_MEMORY, "no memory");
    t->to = t->from + BYTES;
    for (size_t i = 0; i < BYTES; i++)
        t->from[i] = (unsigned char)(i * 2654435761u >> 16);
    RING_TRY(region_add(t->from, 2 * BYTES, REGION_PLAIN));
    const ring_status status = measure(t, out);
    if (t->a != NULL)
        t->t->close(t->a);
    if (t->b != NULL)
        t->t->close(t->b);
    (void)region_remove(t->from);
    return status;
}

static void try_port(fact_trial *out)
{
    trial t = {.t = transport_find("verbs"),
               .from = aligned_alloc(PAGE, 2 * BYTES),
               .give_up = clock_now() + patience};
    if (measure_with_memory(&t, out) != RING_OK)
        (void)text_format(out->error, sizeof out->error, "%s", fail_text());
    free(t.from);
}

/* Adapters made of software are on no bus, and as fast as the processor. */
void rdma_try_ports(facts *f)
{
    const adapter_port *ports;
    if (f->root[0] != '\0')
        return;
    const int count = adapter_ports(&ports);
    for (int i = 0; i < count && i < FACTS_PORTS; i++) {
        fact_trial *t = &f->trials[f->trial_count++];
        (void)text_format(t->port, sizeof t->port, "%s", ports[i].name);
        if (sysfs_exists("/sys/class/infiniband/%s/device", ports[i].device->name))
            t->rate = ports[i].rate;
        try_port(t);
    }
    if (count == 0)
        (void)text_format(f->no_trial, sizeof f->no_trial, "%s", fail_text());
}

#else

void rdma_try_ports(facts *f)
{
    (void)
        text_format(f->no_trial, sizeof f->no_trial,
                    "libring was built without libibverbs; install libibverbs-dev and build again");
}

#endif
