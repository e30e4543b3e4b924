/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict and those who ask for it. The text is complete before the verdict is stored
 * with release order, and never changes afterwards.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ECHO_SECONDS 0.2    /* for rank 0 to answer a report, or to tell all */
#define SUSPECT_SECONDS 0.3 /* for the real culprit to be known */

/* ---- The verdict ------------------------------------------------------------------- */

ring_status health_verdict(const health *h)
{
    return (ring_status)atomic_load_explicit(&h->verdict, memory_order_acquire);
}

const char *health_text(const health *h)
{
    return health_verdict(h) != RING_OK ? h->text : "";
}

bool health_left(const health *h, int peer)
{
    return atomic_load_explicit(&h->left[peer], memory_order_acquire);
}

void health_name(const health *h, int rank, char *out, size_t size)
{
    const boot_card *card = &h->world->cards[rank];
    text_format(out, size, "rank %d (%s, pid %d)", rank, card->hostname, card->pid);
}

static void decide_locked(health *h, ring_status status, const char *text)
{
    if (health_verdict(h) != RING_OK)
        return;
    text_format(h->text, sizeof h->text, "%s", text);
    atomic_store_explicit(&h->verdict, (int)status, memory_order_release);
    pthread_cond_broadcast(&h->changed);
}

void health_decide(health *h, ring_status status, const char *text)
{
    pthread_mutex_lock(&h->lock);
    decide_locked(h, status, text);
    pthread_mutex_unlock(&h->lock);
}

static void ring_bell(health *h)
{
    const uint64_t one = 1;
    const ssize_t put = write(h->bell, &one, sizeof one);
    (void)put; /* full only when it rings already */
}

static bool is_decided(const health *h)
{
    return health_verdict(h) != RING_OK;
}

static bool is_told(const health *h)
{
    return h->told;
}

/* Locked. @return is_so(). */
static bool await(health *h, bool (*is_so)(const health *h), double seconds)
{
    const double deadline = clock_now() + seconds;
    const struct timespec until = {.tv_sec = (time_t)deadline,
                                   .tv_nsec = (long)((deadline - (double)(time_t)deadline) * 1e9)};
    while (!is_so(h))
        if (pthread_cond_timedwait(&h->changed, &h->lock, &until) == ETIMEDOUT)
            break;
    return is_so(h);
}

static void propose_locked(health *h, ring_status status, const char *text)
{
    if (h->proposed)
        return;
    h->proposal = (health_message){.kind = HEALTH_REPORT, .rank = h->world->rank,
                                   .status = (int32_t)status};
    text_format(h->proposal.text, sizeof h->proposal.text, "%s", text);
    h->proposed = true;
}

/* Two ranks may report different errors at the same moment: rank 0's answer is the same text
 * for all. Without an answer this rank's own first report holds. */
static void report_through_root(health *h, ring_status status, const char *text)
{
    propose_locked(h, status, text);
    ring_bell(h);
    if (!await(h, is_decided, ECHO_SECONDS))
        decide_locked(h, (ring_status)h->proposal.status, h->proposal.text);
}

void health_report(health *h, ring_status status, const char *text)
{
    if (health_verdict(h) != RING_OK || status == RING_OK)
        return;
    pthread_mutex_lock(&h->lock);
    if (h->running && h->world->rank > 0 && !health_left(h, 0))
        report_through_root(h, status, text);
    else
        decide_locked(h, status, text);
    if (h->running)
        ring_bell(h); /* the thread floods and wakes */
    if (h->running && h->world->rank == 0)
        (void)await(h, is_told, ECHO_SECONDS);
    pthread_mutex_unlock(&h->lock);
    if (!h->running)
        h->wake(h->context);
}

void health_suspect(health *h, int peer, const char *what)
{
    char name[128], text[HEALTH_TEXT];
    pthread_mutex_lock(&h->lock);
    const bool known = await(h, is_decided, h->running ? SUSPECT_SECONDS : 0);
    pthread_mutex_unlock(&h->lock);
    if (known)
        return;
    health_name(h, peer, name, sizeof name);
    text_format(text, sizeof text, "%s %s: %s", name,
                health_left(h, peer) ? "left the communicator while it was needed" : "was lost",
                what);
    health_report(h, RING_ERR_PEER, text);
}

/* ---- Life -------------------------------------------------------------------------- */

static void health_free(health *h)
{
    fd_close(&h->bell);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h->leavers);
    free(h->wires);
    free(h->left);
    free(h);
}

static void wires_init(health *h)
{
    const boot_world *world = h->world;
    const double now = clock_now();
    for (int i = 0; i < h->wire_count; i++) {
        wire *w = &h->wires[i];
        w->peer = world->rank == 0 ? i + 1 : 0;
        w->fd = world->control[world->rank == 0 ? i + 1 : 0];
        w->open = w->fd >= 0;
        w->heard = now;
        w->sent = sizeof w->out;
    }
    h->latest_turn = now;
}

static void locks_init(health *h)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&h->lock, NULL);
}

static ring_status start_thread(health *h)
{
    errno = thread_start(&h->thread, pulse_run, h);
    if (errno != 0)
        return fail(RING_ERR_SYSTEM, "starting the thread that beats: %m");
    return RING_OK;
}

static ring_status health_fill(health *h)
{
    const size_t ranks = (size_t)h->world->size;
    h->wire_count = h->world->rank == 0 ? h->world->size - 1 : 1;
    h->left = calloc(ranks, sizeof *h->left);
    h->leavers = calloc(ranks, sizeof *h->leavers);
    h->wires = calloc((size_t)h->wire_count + 1, sizeof *h->wires);
    if (h->left == NULL || h->leavers == NULL || h->wires == NULL)
        return fail(RING_ERR_MEMORY, "watching over %zu ranks", ranks);
    h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->bell < 0)
        return fail(RING_ERR_SYSTEM, "eventfd: %m");
    if (ranks == 1)
        return RING_OK;
    wires_init(h);
    h->running = true; /* before the thread reads it */
    return start_thread(h);
}

ring_status health_start(boot_world *world, void (*wake)(void *), void *context, health **out)
{
    const double interval = world->settings.peer_timeout / 5;
    health *h = calloc(1, sizeof *h);
    *out = NULL;
    if (h == NULL)
        return fail(RING_ERR_MEMORY, "watching over %d ranks", world->size);
    h->world = world;
    h->wake = wake;
    h->context = context;
    h->interval = interval < 1 ? interval : 1;
    h->bell = -1;
    locks_init(h);
    const ring_status status = health_fill(h);
    if (status == RING_OK)
        *out = h;
    else
        health_free(h);
    return status;
}

void health_stop(health *h)
{
    if (h->running) {
        pthread_mutex_lock(&h->lock);
        h->stopping = true;
        pthread_mutex_unlock(&h->lock);
        ring_bell(h);
        pthread_join(h->thread, NULL);
    }
    health_free(h);
}
