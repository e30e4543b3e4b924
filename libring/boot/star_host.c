/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 of the rendezvous: seats members as they come, notices who is lost meanwhile, and
 * ends for everybody at the earliest moment at which one of them would give up.
 */
#include "note.h"

#include <string.h>
#include <sys/socket.h>

#define LATECOMER_SECONDS 1.0

typedef struct host {
    boot_world *world;
    doorman door;
    waits waits;
    int seated;
    int refused; /* members who know already that it failed, beside the seated */
} host;

/* ---- Verdicts ---------------------------------------------------------------------- */

static star_verdict verdict_of(const boot_world *w, ring_status status)
{
    star_verdict v;
    memset(&v, 0, sizeof v);
    v.status = (int32_t)status;
    v.cards = w->size;
    v.remaining = w->deadline - clock_now();
    v.timeout = w->settings.timeout;
    v.peer_timeout = w->settings.peer_timeout;
    text_format(v.algo, sizeof v.algo, "%s", w->settings.algo);
    if (status != RING_OK)
        text_format(v.text, sizeof v.text, "%s", fail_text());
    return v;
}

void star_tell(int fd, const void *data, size_t bytes)
{
    const ssize_t put = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)put; /* whoever cannot hear it sees the connection end */
}

ring_status star_lost(const boot_world *w, int rank, const char *when)
{
    return fail(RING_ERR_PEER, "rank %d (%s, pid %d) was lost %s", rank, w->cards[rank].hostname,
                w->cards[rank].pid, when);
}

static ring_status lost(const boot_world *w, int rank)
{
    return star_lost(w, rank, "while ranks were joining");
}

/* Ranks below the lost one have their cards already and wait for a note. */
static void tell_rest(const boot_world *w, int lost_rank, ring_status status)
{
    const star_verdict v = verdict_of(w, status);
    note n = {.status = (int32_t)status};
    text_format(n.text, sizeof n.text, "%s", v.text);
    for (int r = 1; r < lost_rank; r++)
        star_tell(w->control[r], &n, sizeof n);
    for (int r = lost_rank + 1; r < w->size; r++)
        star_tell(w->control[r], &v, sizeof v);
}

static ring_status hand_out(const boot_world *w)
{
    const star_verdict v = verdict_of(w, RING_OK);
    for (int r = 1; r < w->size; r++) {
        const double limit = clock_now() + HAND_SECONDS;
        if (fd_write_all(w->control[r], &v, sizeof v, limit) == RING_OK &&
            fd_write_all(w->control[r], w->cards, (size_t)w->size * sizeof w->cards[0], limit) ==
                RING_OK)
            continue;
        const ring_status status = lost(w, r);
        tell_rest(w, r, status);
        return status;
    }
    return RING_OK;
}

/* ---- Seats ------------------------------------------------------------------------- */

static bool is_missing(const void *context, int rank)
{
    const boot_world *w = context;
    return rank > 0 && w->control[rank] < 0;
}

static ring_status give_up(const host *h)
{
    char ranks[200];
    char place[ADDRESS_TEXT_MAX] = "?";
    boot_address at = {.length = sizeof at.at};
    if (getsockname(h->door.listener, &at.at.any, &at.length) == 0)
        address_text(&at, place);
    const int count = ranks_text(h->world->size, is_missing, h->world, ranks, sizeof ranks);
    return fail(RING_ERR_TIMEOUT, "%s %s of %d did not come to rank 0 (%s at %s) in time "
                "(RING_INIT_TIMEOUT=%g)%s", count == 1 ? "rank" : "ranks", ranks, h->world->size,
                h->world->cards[0].hostname, place, h->world->settings.init_timeout,
                address_is_loopback(&at) ? "; only ranks of this host can reach that address" : "");
}

static ring_status twice(host *h, const boot_card *second, int fd)
{
    const boot_world *w = h->world;
    const boot_card *first = &w->cards[second->rank];
    h->refused++;
    fail(RING_ERR_CONFIG, "two processes say that they are rank %d: pid %d on %s and pid %d on %s",
         second->rank, first->pid, first->hostname, second->pid, second->hostname);
    const star_verdict v = verdict_of(w, RING_ERR_CONFIG);
    star_tell(fd, &v, sizeof v);
    return RING_ERR_CONFIG;
}

static void clean_card(boot_card *card)
{
    card->hostname[sizeof card->hostname - 1] = '\0';
    card->unix_name[sizeof card->unix_name - 1] = '\0';
}

/* Rank 0 has no control connection to itself: a second rank 0 needs a look of its own. */
static ring_status take_seat(host *h, int fd, const star_request *request)
{
    boot_world *w = h->world;
    const int rank = request->card.rank;
    if (rank == 0 || w->control[rank] >= 0)
        return twice(h, &request->card, fd);
    w->control[rank] = fd;
    w->cards[rank] = request->card;
    h->seated++;
    const double deadline = clock_now() + request->remaining;
    if (deadline < w->deadline)
        w->deadline = deadline;
    log_debug("rank %d (%s, pid %d) joined", rank, request->card.hostname, request->card.pid);
    return RING_OK;
}

/* The request travels with the proof. Who is lost before it is here never joined. */
static ring_status seat(host *h, int fd, const hand_hello *hello)
{
    star_request request;
    ring_status status = RING_OK;
    const bool came = fd_read_all(fd, &request, sizeof request, clock_now() + HAND_SECONDS) ==
                          RING_OK && request.card.rank == hello->rank;
    clean_card(&request.card);
    if (came)
        status = take_seat(h, fd, &request);
    if (!came || status != RING_OK)
        fd_close(&fd);
    return status;
}

/* ---- The loop ---------------------------------------------------------------------- */

static ring_status wait_for_more(host *h)
{
    const boot_world *w = h->world;
    waits_start(&h->waits, w->deadline);
    for (int r = 1; r < w->size; r++)
        if (w->control[r] >= 0)
            RING_TRY(waits_add(&h->waits, w->control[r], POLLIN));
    RING_TRY(doorman_wait(&h->door, &h->waits));
    return waits_poll(&h->waits);
}

/* A seated rank says nothing until the verdict, so whatever comes is its end. */
static ring_status check_seats(const host *h)
{
    const boot_world *w = h->world;
    size_t entry = 0;
    for (int r = 1; r < w->size; r++)
        if (w->control[r] >= 0 && h->waits.entries[entry++].revents != 0)
            return lost(w, r);
    return RING_OK;
}

static ring_status gather(host *h)
{
    int fd;
    hand_hello hello;
    while (h->seated < h->world->size - 1) {
        const ring_status status = doorman_step(&h->door, &fd, &hello);
        if (status == RING_OK) {
            RING_TRY(seat(h, fd, &hello));
            continue;
        }
        h->refused += status == RING_ERR_CONFIG;
        if (status != RING_IN_PROGRESS)
            return status;
        if (clock_now() >= h->world->deadline)
            return give_up(h);
        RING_TRY(wait_for_more(h));
        RING_TRY(check_seats(h));
    }
    return RING_OK;
}

/* Members who come a moment later would else knock in vain until their deadline. */
static void tell_latecomers(host *h, const star_verdict *v)
{
    const double until = clock_now() + LATECOMER_SECONDS;
    int fd;
    hand_hello hello;
    while (h->seated + h->refused < h->world->size - 1 && clock_now() < until) {
        const ring_status status = doorman_step(&h->door, &fd, &hello);
        if (status == RING_OK) {
            star_tell(fd, v, sizeof *v);
            fd_close(&fd);
        }
        if (status == RING_ERR_SYSTEM)
            return;
        h->refused += status == RING_OK || status == RING_ERR_CONFIG;
        waits_start(&h->waits, until);
        if (doorman_wait(&h->door, &h->waits) != RING_OK || waits_poll(&h->waits) != RING_OK)
            return;
    }
}

static void tell_all(host *h, ring_status status)
{
    const star_verdict v = verdict_of(h->world, status);
    for (int r = 1; r < h->world->size; r++)
        if (h->world->control[r] >= 0)
            star_tell(h->world->control[r], &v, sizeof v);
    if (status != RING_ERR_TIMEOUT)
        tell_latecomers(h, &v);
    fail(status, "%s", v.text); /* the latecomers' troubles are not the reason */
}

ring_status star_host(boot_world *world, int listener)
{
    host h = {.world = world};
    doorman_open(&h.door, listener, HAND_JOIN, &world->doors->terms);
    const ring_status status = gather(&h);
    if (status != RING_OK)
        tell_all(&h, status);
    doorman_close(&h.door);
    waits_free(&h.waits);
    return status == RING_OK ? hand_out(world) : status;
}
