/* SPDX-License-Identifier: Apache-2.0
 * Makes passes: each calls ucp_worker_progress(), and then serves the links that have something to
 * send. Most calls on a link make a pass for all links. While no calls are made, the mover thread
 * makes passes. */
#include "ucx_pass.h"

#include "ucx_link.h"
#include "ucx_regions.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROUNDS = 16, /* calls of ucp_worker_progress() in a pass                              */
    OWED_PASSES = 8   /* passes for which acknowledgements wait for a message to carry them    */
};

/** Seconds between the mover's checks: the first interval, and the longest. */
static const double first_look = 2e-3, last_look = 50e-3;
/** Seconds until a peer must have finished using lent memory. After that, the endpoint is closed,
 *  and UCX has force_patience seconds to end its requests. */
static const double patience = 1.0, force_patience = 4.0;

/* ---- Answers --------------------------------------------------------------------------------- */

/* Answers the peer's get @p wanted with its data, or refuses it. */
static void serve(ucx_link *l, const ucx_label *wanted)
{
    const void *from = ucx_address(wanted->place, wanted->bytes);
    ucx_posting *p = ucx_posting_new(l);
    if (p == NULL)
        return;
    p->label.number = wanted->number;
    p->label.bytes = wanted->bytes;
    if (from == NULL) {
        ucx_post(p, UCX_REFUSAL, NULL, 0);
        return;
    }
    ucx_posting_lend(p, ucx_region_of(wanted->place), (void *)(uintptr_t)from);
    l->gets.serving++;
    ucx_post(p, UCX_DATA, from, (size_t)wanted->bytes);
}

/* Sends the answers to received messages here, because UCP accepts no sends from its receive
 * callback. @param patient  acknowledgements may wait for a later pass. @return true if they do. */
static bool serve_link(ucx_link *l, bool patient)
{
    while (l->postings.landing != NULL) {
        ucx_posting *p = l->postings.landing;
        l->postings.landing = p->next_landing;
        ucx_land(p);
    }
    if (l->opening.answers) {
        ucx_posting *p = ucx_posting_new(l);
        l->opening.answers = false;
        if (p != NULL)
            ucx_post(p, UCX_HELLO, NULL, 0);
    }
    while (l->gets.asked_count > 0 && l->state == RING_OK) {
        const ucx_label wanted = l->gets.asked[l->gets.asked_first];
        l->gets.asked_first = (l->gets.asked_first + 1) % UCX_GETS;
        l->gets.asked_count--;
        serve(l, &wanted);
    }
    /* Status words wait for a few passes, because another message may carry them. */
    if (patient && l->recv.owes && hub.passes - l->recv.owed_since < OWED_PASSES)
        return true;
    if (l->recv.owes)
        ucx_announce(l, false);
    return false;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

void ucx_link_free(ucx_link *l)
{
    ucx_link **at = &hub.due;
    while (l->due && *at != l)
        at = &(*at)->next_due;
    if (l->due)
        *at = l->next_due;
    if (l->route != NULL)
        ucx_route_release(l->route);
    if (l->number < hub.capacity && hub.links[l->number] == l)
        hub.links[l->number] = NULL;
    ucx_postings_free(l);
    free(l->peer.extents);
    free(l->gets.own);
    free(l->gets.asked);
    free(l->in);
    free(l->out);
    free(l->opening.in_text);
    free(l->opening.address);
    free(l->opening.out_text);
    free(l);
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void serve_due(bool patient)
{
    ucx_link *later = NULL;
    while (hub.due != NULL) {
        ucx_link *l = hub.due;
        hub.due = l->next_due;
        if (serve_link(l, patient)) { /* still due */
            l->next_due = later;
            later = l;
            continue;
        }
        l->due = false;
        if (l->closed && l->postings.flying == 0)
            ucx_link_free(l);
    }
    hub.due = later;
}

static void pass(bool patient)
{
    if (hub.worker == NULL)
        return;
    hub.passes++;
    for (int round = 0; round < MOST_ROUNDS && ucx.ucp_worker_progress(hub.worker) != 0; round++)
        continue;
    serve_due(patient);
}

void ucx_pass(void)
{
    pass(true);
}

void ucx_pass_politely(void)
{
    ucx_pass();
    pthread_mutex_unlock(&hub.lock);
    sched_yield();
    pthread_mutex_lock(&hub.lock);
}

void ucx_settle(void)
{
    pass(false);
}

/* ---- Passes without a caller ----------------------------------------------------------------- */

/* @return true if any link has messages in flight or unacknowledged frames. */
static bool is_unfinished(void)
{
    for (size_t i = 0; i < hub.capacity; i++) {
        const ucx_link *l = hub.links[i];
        if (l != NULL && ((l->postings.flying > 0 && !hub.hurt) ||
                          (l->state == RING_OK && !l->socket.ended &&
                           atomic_load(&l->peer.acked) < l->send.slots)))
            return true;
    }
    return false;
}

/* The mover thread makes passes without a caller: a sender may compute for long while UCX still has
 * the end of its frame. The thread makes a pass only if no other thread has made one since its last
 * check, and doubles the interval each time. */
static void *move(void *unused)
{
    double pause = first_look;
    (void)unused;
    pthread_mutex_lock(&hub.lock);
    for (;;) {
        hub.mover_sleeps = !is_unfinished();
        if (hub.mover_sleeps) {
            pthread_cond_wait(&hub.unfinished, &hub.lock);
            pause = first_look;
        }
        const uint64_t passes = hub.passes;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(pause * 1e9);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&hub.unfinished, &hub.lock, &until);
        pause = hub.passes != passes ? first_look : pause < last_look ? 2 * pause : last_look;
        if (hub.passes == passes)
            ucx_pass();
    }
    return NULL;
}

void ucx_stir(void)
{
    if (!hub.mover_sleeps)
        return;
    hub.mover_sleeps = false;
    pthread_cond_signal(&hub.unfinished);
}

ring_status ucx_start_mover(void)
{
    pthread_t thread;
    if (hub.has_mover)
        return RING_OK;
    if (thread_start(&thread, move, NULL) != 0)
        return fail(RING_ERR_SYSTEM, "cannot start a thread for UCX: %m; see ulimit -u");
    pthread_detach(thread);
    hub.has_mover = true;
    return RING_OK;
}

/* ---- Stopping -------------------------------------------------------------------------------- */

/* Waits until no request of the link uses memory of regions. A request completes when the peer has
 * received its data. If that takes too long, closes the endpoint forcibly, which breaks all links
 * to that process. */
void ucx_stop_now(ucx_link *l, const char *why)
{
    const double start = clock_now();
    if (ucx_is_alive(l)) {
        ucx_doom(l, RING_ERR_ABORTED, "%s", why);
        l->state = l->doom;
    }
    ucx_land_nothing(l);
    l->gets.asked_count = 0;
    while (l->postings.lent > 0 && clock_now() < start + patience + force_patience) {
        if (clock_now() > start + patience && l->route != NULL && l->route->ep != NULL) {
            ucx_route_fail(l->route, "the peer did not fetch the data that was sent to it in time");
            ucx_ep_close(l->route->ep);
            l->route->ep = NULL;
        }
        ucx_pass_politely();
    }
    memset(l->gets.own, 0, UCX_GETS * sizeof *l->gets.own);
}
