/* SPDX-License-Identifier: Apache-2.0
 * Notes on the control connections, and the barrier made of them. */
#include "note.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REASON_SECONDS 0.2 /* for a better reason than a lost connection to arrive */

note note_of(const boot_world *w, ring_status status)
{
    note n;
    memset(&n, 0, sizeof n);
    n.status = (int32_t)status;
    if (status != RING_OK)
        text_format(n.text, sizeof n.text, "rank %d (%s): %s", w->rank,
                    w->cards[w->rank].hostname, fail_text());
    return n;
}

ring_status note_status(const note *n)
{
    return n->status == RING_OK ? RING_OK : fail((ring_status)n->status, "%s", n->text);
}

void note_send(const boot_world *w, const note *n)
{
    const int controls = w->rank == 0 ? w->size : 1;
    for (int i = 0; i < controls; i++)
        if (w->control[i] >= 0) /* whoever is gone is found out when it is waited for */
            star_tell(w->control[i], n, sizeof *n);
}

ring_status note_read(const boot_world *w, int rank, double deadline, note *out)
{
    const int fd = w->control[w->rank == 0 ? rank : 0];
    const ring_status status = fd_read_all(fd, out, sizeof *out, deadline);
    out->text[sizeof out->text - 1] = '\0';
    return status == RING_ERR_PEER ? star_lost(w, rank, "while links were made") : status;
}

/* @return true if a note of that rank is here, whole, and tells a reason. */
static bool find_reason(const boot_world *w, int rank, note *out)
{
    if (recv(w->control[rank], out, sizeof *out, MSG_PEEK | MSG_DONTWAIT) != sizeof *out)
        return false;
    out->text[sizeof out->text - 1] = '\0';
    return out->status != RING_OK && out->status != RING_ERR_PEER;
}

ring_status note_reason(const boot_world *w, ring_status status)
{
    const double until = clock_now() + REASON_SECONDS;
    note n;
    while (status == RING_ERR_PEER && clock_now() < until) {
        for (int r = 1; r < w->size; r++)
            if (find_reason(w, r, &n))
                return note_status(&n);
        clock_sleep(0.005);
    }
    return status;
}

/* ---- The barrier ------------------------------------------------------------------- */

typedef struct roll_call {
    const boot_world *world;
    bool *spoken;
    int silent;
    waits waits;
} roll_call;

static bool is_silent(const void *context, int rank)
{
    const roll_call *roll = context;
    return rank > 0 && !roll->spoken[rank];
}

static ring_status too_late(const roll_call *roll)
{
    char ranks[200];
    const int count = ranks_text(roll->world->size, is_silent, roll, ranks, sizeof ranks);
    return fail(RING_ERR_TIMEOUT, "%s %s of %d did not finish the start in time "
                "(RING_INIT_TIMEOUT)", count == 1 ? "rank" : "ranks", ranks, roll->world->size);
}

static ring_status wait_for_notes(roll_call *roll)
{
    const boot_world *w = roll->world;
    waits_start(&roll->waits, w->deadline);
    for (int r = 1; r < w->size; r++)
        if (!roll->spoken[r])
            RING_TRY(waits_add(&roll->waits, w->control[r], POLLIN));
    return waits_poll(&roll->waits);
}

static ring_status read_notes(roll_call *roll)
{
    const boot_world *w = roll->world;
    note n;
    size_t entry = 0;
    for (int r = 1; r < w->size; r++) {
        if (roll->spoken[r] || roll->waits.entries[entry++].revents == 0)
            continue;
        RING_TRY(note_read(w, r, w->deadline, &n));
        RING_TRY(note_status(&n));
        roll->spoken[r] = true;
        roll->silent--;
    }
    return RING_OK;
}

static ring_status call_roll(roll_call *roll)
{
    while (roll->silent > 0) {
        if (clock_now() >= roll->world->deadline)
            return too_late(roll);
        RING_TRY(wait_for_notes(roll));
        RING_TRY(read_notes(roll));
    }
    return RING_OK;
}

/* Rank 0: the first bad note is everybody's, without waiting for the others. */
static ring_status agree_as_host(boot_world *w, const note *mine)
{
    roll_call roll = {.world = w, .silent = w->size - 1,
                      .spoken = calloc((size_t)w->size, sizeof *roll.spoken)};
    note verdict = *mine;
    ring_status status = note_status(mine);
    if (roll.spoken == NULL)
        status = fail(RING_ERR_MEMORY, "asking %d ranks", w->size);
    if (status == RING_OK)
        status = call_roll(&roll);
    status = note_reason(w, status);
    verdict.status = (int32_t)status;
    if (status != RING_OK)
        text_format(verdict.text, sizeof verdict.text, "%s", fail_text());
    note_send(w, &verdict);
    waits_free(&roll.waits);
    free(roll.spoken);
    return status;
}

void boot_announce(boot_world *world, ring_status status)
{
    if (world->rank == 0)
        return; /* whose word is the last one anyway */
    const note mine = note_of(world, status);
    note_send(world, &mine);
    world->announced = true;
}

ring_status boot_agree(boot_world *world, ring_status status)
{
    const note mine = note_of(world, status);
    note verdict;
    if (world->size == 1)
        return status;
    if (world->rank == 0)
        return agree_as_host(world, &mine);
    if (!world->announced)
        note_send(world, &mine);
    const double limit = world->deadline + VERDICT_PATIENCE;
    const ring_status heard = note_read(world, 0, limit, &verdict);
    if (heard == RING_OK)
        return note_status(&verdict);
    if (heard != RING_ERR_TIMEOUT)
        return heard;
    return fail(heard, "rank 0 (%s) did not answer in time (RING_INIT_TIMEOUT)",
                world->cards[0].hostname);
}
