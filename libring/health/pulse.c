/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread: reads what peers say, judges who is lost, says what is due, sleeps. One turn of
 * the loop is one poll().
 */
#include "inside.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_SECONDS 0.5  /* to get the last words out */
#define LINGER_SECONDS 0.1 /* for peers to close first */

static bool is_root(const health *h)
{
    return h->world->rank == 0;
}

static bool decided(const health *h)
{
    return health_verdict(h) != RING_OK;
}

/* ---- Hearing ----------------------------------------------------------------------- */

static void on_goodbye(health *h, wire *w)
{
    const int rank = w->in.rank;
    if (rank < 0 || rank >= h->world->size || atomic_exchange(&h->left[rank], true))
        return;
    if (is_root(h))
        h->leavers[h->leaver_count++] = rank;
    if (rank == w->peer) {
        wire_shut(w);
        w->open = false;
    }
}

static void on_message(health *h, wire *w)
{
    switch (w->in.kind) {
    case HEALTH_BEAT:
        return;
    case HEALTH_REPORT:
        if (!is_root(h))
            w->told_report = true; /* rank 0 knows it */
        if (w->in.status != RING_OK)
            health_decide(h, (ring_status)w->in.status, w->in.text);
        return;
    case HEALTH_GOODBYE:
        on_goodbye(h, w);
        return;
    default:
        health_decide(h, RING_ERR_INTERNAL, "a peer's sign of life made no sense");
    }
}

static void lost(health *h, const wire *w, const char *why)
{
    char name[128], text[HEALTH_TEXT];
    health_name(h, w->peer, name, sizeof name);
    text_format(text, sizeof text, "%s was lost: %s", name, why);
    health_decide(h, RING_ERR_PEER, text);
}

static void read_wires(health *h)
{
    for (int i = 0; i < h->wire_count; i++) {
        wire *w = &h->wires[i];
        if (!w->open || wire_read(w, on_message, h))
            continue;
        w->open = false;
        if (h->stop_by <= 0)
            lost(h, w, "its process ended or its connection broke");
    }
}

/* ---- Judging ----------------------------------------------------------------------- */

/* Time in which this process itself did not run is no silence of its peers, and after it each
 * has an interval to be heard again. */
static void forgive_own_stall(health *h, double now)
{
    const double stall = now - h->latest_turn - h->interval; /* no turn takes longer */
    const double least = now - h->world->settings.peer_timeout + h->interval;
    h->latest_turn = now;
    for (int i = 0; i < h->wire_count && stall > h->interval; i++) {
        wire *w = &h->wires[i];
        w->heard += stall;
        if (w->heard < least)
            w->heard = least;
        if (w->heard > now)
            w->heard = now;
    }
}

static void judge_silence(health *h, double now)
{
    char why[128];
    const double limit = h->world->settings.peer_timeout;
    for (int i = 0; i < h->wire_count; i++) {
        wire *w = &h->wires[i];
        if (!w->open || now - w->heard <= limit || decided(h))
            continue;
        text_format(why, sizeof why, "no sign of life for %g s (RING_PEER_TIMEOUT); its process is "
                    "stopped or its host cut off", limit);
        lost(h, w, why);
    }
}

/* ---- Speaking ---------------------------------------------------------------------- */

static void compose(wire *w, enum health_kind kind, int rank)
{
    memset(&w->out, 0, sizeof w->out);
    w->out.kind = kind;
    w->out.rank = rank;
}

/* The thread reads its own text: it is written before the verdict. */
static bool next_report(health *h, wire *w)
{
    if (w->told_report)
        return false;
    pthread_mutex_lock(&h->lock);
    const bool proposed = h->proposed;
    if (proposed)
        w->out = h->proposal;
    pthread_mutex_unlock(&h->lock);
    if (!proposed && !decided(h))
        return false;
    if (!proposed) {
        compose(w, HEALTH_REPORT, h->world->rank);
        w->out.status = (int32_t)health_verdict(h);
        memcpy(w->out.text, h->text, sizeof w->out.text);
    }
    w->told_report = true;
    return true;
}

static bool next_leaver(health *h, wire *w)
{
    if (w->told_leavers == h->leaver_count)
        return false;
    compose(w, HEALTH_GOODBYE, h->leavers[w->told_leavers++]);
    return true;
}

static bool next_goodbye(health *h, wire *w)
{
    if (h->stop_by <= 0 || w->told_goodbye)
        return false;
    compose(w, HEALTH_GOODBYE, h->world->rank);
    w->told_goodbye = true;
    return true;
}

static bool next_beat(health *h, wire *w)
{
    const double now = clock_now();
    if (now < w->beat || w->told_goodbye)
        return false;
    compose(w, HEALTH_BEAT, h->world->rank);
    w->beat = now + h->interval;
    return true;
}

static bool next_message(health *h, wire *w)
{
    return next_report(h, w) || next_leaver(h, w) || next_goodbye(h, w) || next_beat(h, w);
}

static void write_wires(health *h)
{
    for (int i = 0; i < h->wire_count; i++) {
        wire *w = &h->wires[i];
        wire_write(w, next_message, h);
        if (w->told_goodbye && !wire_busy(w) && !w->deaf)
            wire_shut(w);
    }
}

static bool all_told(const health *h)
{
    for (int i = 0; i < h->wire_count; i++) {
        const wire *w = &h->wires[i];
        if (w->open && !w->deaf && (!w->told_report || wire_busy(w)))
            return false;
    }
    return true;
}

/* Whoever reported may end the process once it is told. */
static void note_told(health *h)
{
    if (h->told || !decided(h) || !all_told(h))
        return;
    pthread_mutex_lock(&h->lock);
    h->told = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* ---- Turning ------------------------------------------------------------------------ */

static void wake_once(health *h)
{
    if (h->woken || !decided(h))
        return;
    h->woken = true;
    h->wake(h->context);
}

static void heed_requests(health *h, double now)
{
    uint64_t rings;
    const ssize_t got = read(h->bell, &rings, sizeof rings);
    (void)got; /* only emptied */
    pthread_mutex_lock(&h->lock);
    if (h->stopping && h->stop_by <= 0)
        h->stop_by = now + FLUSH_SECONDS;
    pthread_mutex_unlock(&h->lock);
}

/* All has been said and the peers have closed, or there was time enough for that. */
static bool may_stop(health *h, double now)
{
    bool all_said = true, all_closed = true;
    for (int i = 0; i < h->wire_count; i++) {
        all_said = all_said && (!h->wires[i].open || h->wires[i].deaf);
        all_closed = all_closed && !h->wires[i].open;
    }
    if (h->stop_by <= 0)
        return false;
    if (all_said && h->stop_by > now + LINGER_SECONDS)
        h->stop_by = now + LINGER_SECONDS;
    return all_closed || now >= h->stop_by;
}

static double next_due(const health *h)
{
    double due = h->stop_by > 0 ? h->stop_by : h->latest_turn + h->interval;
    for (int i = 0; i < h->wire_count; i++)
        if (h->wires[i].open && !h->wires[i].deaf && h->wires[i].beat < due)
            due = h->wires[i].beat;
    return due;
}

static void sleep_until_due(health *h, struct pollfd *entries)
{
    nfds_t count = 0;
    entries[count++] = (struct pollfd){.fd = h->bell, .events = POLLIN};
    for (int i = 0; i < h->wire_count; i++) {
        const wire *w = &h->wires[i];
        const short send = wire_busy(w) && !w->deaf ? POLLOUT : 0;
        if (w->open)
            entries[count++] = (struct pollfd){.fd = w->fd, .events = (short)(POLLIN | send)};
    }
    (void)poll(entries, count, clock_ms_until(next_due(h), 1000));
}

void *pulse_run(void *context)
{
    health *h = context;
    struct pollfd *entries = calloc((size_t)h->wire_count + 1, sizeof *entries);
    log_set_rank(h->world->rank, h->world->size);
    if (entries == NULL)
        health_decide(h, RING_ERR_MEMORY, "no memory for the thread that beats");
    for (bool stop = entries == NULL; !stop;) {
        sleep_until_due(h, entries);
        const double now = clock_now();
        forgive_own_stall(h, now);
        read_wires(h);
        judge_silence(h, now);
        heed_requests(h, now);
        write_wires(h);
        note_told(h);
        wake_once(h);
        stop = may_stop(h, now);
    }
    free(entries);
    return NULL;
}
