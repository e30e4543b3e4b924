/* SPDX-License-Identifier: Apache-2.0
 *
 * One socket a (peer, lane): every rank connects to the lower ranks and takes in the higher
 * ones, all at once in one loop, so no order of arrival can deadlock. Meanwhile the control
 * connections are watched: who fails or dies ends it for everybody.
 */
#include "note.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef struct linking {
    boot_world *world;
    const bool *by_unix;
    int lanes;
    int **fds;
    knock *knocks; /* [lanes * rank] */
    size_t knock_count;
    size_t open;   /* sockets still to come */
    bool *through; /* rank 0: [size] who has finished already */
    bool heard;    /* the failure is another rank's; its text says whose */
    waits waits;
} linking;

/* ---- Outgoing ---------------------------------------------------------------------- */

static ring_status aim(const linking *l, int peer, int lane, knock *k)
{
    const boot_card *card = &l->world->cards[peer];
    *k = (knock){.peer = peer, .lane = lane, .purpose = HAND_LINK, .most_pause = 0.05};
    if (l->by_unix[peer])
        k->to = address_unix(card->unix_name);
    else if (!address_unpack(card->address, &k->to))
        return fail(RING_ERR_INTERNAL, "the card of rank %d has no address", peer);
    return RING_OK;
}

static ring_status aim_all(linking *l)
{
    for (int peer = 0; peer < l->world->rank; peer++)
        for (int lane = 0; lane < l->lanes; lane++)
            RING_TRY(aim(l, peer, lane, &l->knocks[l->knock_count++]));
    return RING_OK;
}

/* Links are handed on as plain blocking sockets. */
static void take_link(linking *l, int peer, int lane, int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    l->fds[lane][peer] = fd;
    l->open--;
}

/* A descriptor for one of us is worth more than a stranger's.
 * @return false if no stranger has one. */
static bool send_stranger_away(linking *l)
{
    boot_doors *doors = l->world->doors;
    return doorman_yield(&doors->tcp) || doorman_yield(&doors->local);
}

static ring_status knock_once(linking *l, knock *k)
{
    ring_status status;
    while ((status = knock_step(k, &l->world->doors->terms)) == RING_ERR_SYSTEM &&
           send_stranger_away(l))
        k->again = 0;
    return status;
}

static ring_status knock_all(linking *l)
{
    for (size_t i = 0; i < l->knock_count; i++) {
        knock *k = &l->knocks[i];
        if (k->done)
            continue;
        const ring_status status = knock_once(l, k);
        if (status == RING_OK)
            take_link(l, k->peer, k->lane, k->hand.fd);
        else if (status != RING_IN_PROGRESS)
            return status;
    }
    return RING_OK;
}

/* ---- Incoming ---------------------------------------------------------------------- */

static bool expected(const linking *l, const hand_hello *hello, bool local)
{
    return hello->rank > l->world->rank && hello->lane < l->lanes &&
           l->by_unix[hello->rank] == local && l->fds[hello->lane][hello->rank] < 0;
}

static ring_status open_once(linking *l, doorman *d, int *fd, hand_hello *hello)
{
    ring_status status;
    while ((status = doorman_step(d, fd, hello)) == RING_ERR_SYSTEM && send_stranger_away(l))
        continue;
    return status;
}

static ring_status take_in(linking *l, doorman *d, bool local)
{
    int fd;
    hand_hello hello;
    ring_status status;
    while ((status = open_once(l, d, &fd, &hello)) == RING_OK) {
        if (expected(l, &hello, local)) {
            take_link(l, hello.rank, hello.lane, fd);
        } else {
            log_debug("rank %d came unexpectedly (lane %d)", hello.rank, hello.lane);
            fd_close(&fd);
        }
    }
    return status == RING_IN_PROGRESS ? RING_OK : status;
}

/* ---- Bad news ---------------------------------------------------------------------- */

static bool has_ended(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLRDHUP};
    return poll(&entry, 1, 0) > 0;
}

/* A rank that is through may say so before rank 0 asks; that note is left where it is. */
static ring_status check_control(linking *l, int rank)
{
    const boot_world *w = l->world;
    const int fd = w->control[w->rank == 0 ? rank : 0];
    note n;
    const ssize_t got = recv(fd, &n, sizeof n, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 && got < (ssize_t)sizeof n && !has_ended(fd)) {
        clock_sleep(0.001); /* the rest is on its way, and poll() would not wait for it */
        return RING_OK;
    }
    if (got == (ssize_t)sizeof n && n.status == RING_OK && w->rank == 0) {
        l->through[rank] = true;
        return RING_OK;
    }
    l->heard = true;
    RING_TRY(note_read(w, rank, w->deadline, &n));
    RING_TRY(note_status(&n));
    return fail(RING_ERR_INTERNAL, "rank %d agreed too early", rank);
}

static ring_status check_controls(linking *l)
{
    const boot_world *w = l->world;
    size_t entry = 0;
    if (w->rank > 0)
        return l->waits.entries[0].revents != 0 ? check_control(l, 0) : RING_OK;
    for (int r = 1; r < w->size; r++)
        if (!l->through[r] && l->waits.entries[entry++].revents != 0)
            RING_TRY(check_control(l, r));
    return RING_OK;
}

static ring_status wait_controls(linking *l)
{
    const boot_world *w = l->world;
    if (w->rank > 0)
        return waits_add(&l->waits, w->control[0], POLLIN);
    for (int r = 1; r < w->size; r++)
        if (!l->through[r])
            RING_TRY(waits_add(&l->waits, w->control[r], POLLIN));
    return RING_OK;
}

/* ---- The loop ---------------------------------------------------------------------- */

static bool is_missing(const void *context, int rank)
{
    const linking *l = context;
    for (int lane = 0; lane < l->lanes; lane++)
        if (rank != l->world->rank && l->fds[lane][rank] < 0)
            return true;
    return false;
}

static ring_status too_late(const linking *l)
{
    char ranks[200];
    const char *why = "";
    for (size_t i = 0; i < l->knock_count; i++)
        if (!l->knocks[i].done && l->knocks[i].why != RING_OK)
            why = l->knocks[i].text;
    ranks_text(l->world->size, is_missing, l, ranks, sizeof ranks);
    return fail(RING_ERR_TIMEOUT, "no connection with rank %s in time (RING_INIT_TIMEOUT)%s%s; "
                "does a firewall block ports between the hosts?", ranks, *why != '\0' ? ": " : "",
                why);
}

static ring_status wait_a_little(linking *l)
{
    const boot_doors *doors = l->world->doors;
    waits_start(&l->waits, l->world->deadline);
    RING_TRY(wait_controls(l)); /* first: check_controls() counts on it */
    for (size_t i = 0; i < l->knock_count; i++)
        RING_TRY(knock_wait(&l->knocks[i], &l->waits));
    RING_TRY(doorman_wait(&doors->tcp, &l->waits));
    RING_TRY(doorman_wait(&doors->local, &l->waits));
    return waits_poll(&l->waits);
}

static ring_status link_all(linking *l)
{
    boot_doors *doors = l->world->doors;
    RING_TRY(aim_all(l));
    for (;;) {
        RING_TRY(knock_all(l));
        RING_TRY(take_in(l, &doors->tcp, false));
        RING_TRY(take_in(l, &doors->local, true));
        if (l->open == 0)
            return RING_OK;
        if (clock_now() >= l->world->deadline)
            return too_late(l);
        RING_TRY(wait_a_little(l));
        RING_TRY(check_controls(l));
    }
}

static void tell_others(const linking *l, ring_status status)
{
    note bad = note_of(l->world, status);
    if (l->heard && l->world->rank > 0)
        return; /* from rank 0, who tells everybody */
    if (l->heard)
        text_format(bad.text, sizeof bad.text, "%s", fail_text());
    note_send(l->world, &bad);
}

/* The one reason for all. */
static ring_status settle(linking *l, ring_status status)
{
    if (l->heard && l->world->rank == 0)
        status = note_reason(l->world, status);
    tell_others(l, status);
    return status;
}

static void close_links(const linking *l)
{
    for (int lane = 0; lane < l->lanes; lane++)
        for (int r = 0; r < l->world->size; r++)
            fd_close(&l->fds[lane][r]);
}

static void clear_links(const boot_world *world, int lanes, int **fds)
{
    for (int lane = 0; lane < lanes; lane++)
        for (int r = 0; r < world->size; r++)
            fds[lane][r] = -1;
}

/* What is left of a linking, done or not. */
static ring_status finish(linking *l, ring_status status)
{
    for (size_t i = 0; i < l->knock_count; i++)
        knock_drop(&l->knocks[i]);
    if (status != RING_OK) {
        status = settle(l, status);
        close_links(l);
    }
    doors_free(l->world);
    waits_free(&l->waits);
    free(l->knocks);
    free(l->through);
    return status;
}

ring_status boot_connect(boot_world *world, const bool *by_unix, int lanes, int **fds)
{
    const size_t knocks = (size_t)lanes * (size_t)world->rank;
    clear_links(world, lanes, fds);
    if (world->size == 1)
        return RING_OK;
    linking l = {.world = world, .by_unix = by_unix, .lanes = lanes, .fds = fds,
                 .open = (size_t)lanes * (size_t)(world->size - 1),
                 .knocks = calloc(knocks + 1, sizeof *l.knocks),
                 .through = calloc((size_t)world->size, sizeof *l.through)};
    if (l.knocks == NULL || l.through == NULL)
        return finish(&l, fail(RING_ERR_MEMORY, "linking %d ranks", world->size));
    return finish(&l, link_all(&l));
}
