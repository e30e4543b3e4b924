/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements split, dup and shrink, which derive a communicator from a parent. A split gathers the
 * arguments of all ranks with one all_gather over the parent. Derived communicators share the
 * control connections of the parent, and dial links only when a call needs them. No rank returns
 * its communicator before all ranks have created their parts.
 */
#include "call_group.h"
#include "call_reports.h"
#include "engine.h"
#include "init.h"

#include <stdlib.h>

/* A rank's arguments of a split, gathered as two numbers. */
typedef struct split_card {
    int32_t colour, key;
    uint64_t id; /* proposed for its communicator, used if it becomes the first rank there */
} split_card;

enum { CARD_NUMBERS = sizeof(split_card) / sizeof(uint64_t) };
_Static_assert(sizeof(split_card) == CARD_NUMBERS * sizeof(uint64_t), "a card is whole numbers");

/* Sorts the ranks of this rank's colour by key, then by rank, with an insertion sort.
 * @param[out] ranks  [parent->ranks] the sorted ranks. @return their number. */
static int choose_ranks(const ring_comm *parent, const split_card *cards, int *ranks)
{
    int count = 0;
    for (int r = 0; r < parent->ranks; r++) {
        int at = count;
        if (cards[r].colour != cards[parent->rank].colour)
            continue;
        /* Ranks of equal keys stay in order, because r is higher than those sorted so far. */
        for (; at > 0 && cards[r].key < cards[ranks[at - 1]].key; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = r;
        count++;
    }
    return count;
}

/* Creates this rank's part of the communicator. */
static ring_status derive(ring_comm *parent, const split_card *cards, ring_comm **out)
{
    if (cards[parent->rank].colour < 0)
        return RING_OK;
    int *ranks = malloc((size_t)parent->ranks * sizeof *ranks);
    if (ranks == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while splitting a communicator of %d rank%s",
                    parent->ranks, plural(parent->ranks));
    const int count = choose_ranks(parent, cards, ranks);
    const ring_status status = comm_derive(parent, cards[ranks[0]].id, ranks, count, out);
    free(ranks);
    return status;
}

/* @return the worst of all ranks' results. */
static ring_status agree(ring_comm *parent, ring_status mine)
{
    int32_t worst = (int32_t)mine;
    RING_TRY(ring_all_reduce(&worst, &worst, 1, RING_INT32, RING_MAX, parent, NULL));
    return worst == RING_OK || mine != RING_OK ? mine
                                               : fail((ring_status)worst,
                                                      "ring_comm_split: another rank could not "
                                                      "create its part of the communicator: %s",
                                                      ring_status_string((ring_status)worst));
}

static ring_status split(ring_comm *parent, split_card *cards, const split_card *mine,
                         ring_comm **out)
{
    RING_TRY(ring_all_gather(mine, cards, CARD_NUMBERS, RING_INT64, parent, NULL));
    const ring_status status = agree(parent, derive(parent, cards, out));
    if (status != RING_OK)
        return comm_undo(out, status);
    return *out != NULL ? comm_open_seat(parent, out) : RING_OK;
}

/* Reports the all_gather as refused, because the other ranks would wait in it for this rank. */
static ring_status refuse(ring_comm *parent, ring_status status)
{
    const call_signature gathering = {.collective = PLAN_ALL_GATHER,
                                      .dtype = RING_INT64,
                                      .count = CARD_NUMBERS};
    comm_lock(parent);
    reports_refuse(parent, &gathering);
    comm_unlock(parent);
    return status;
}

ring_status ring_comm_split(ring_comm *parent, int colour, int key, ring_comm **out)
{
    if (parent == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_split: parent is NULL");
    RING_TRY(comm_check_own(parent, "comm_split"));
    if (out == NULL)
        return refuse(parent, fail(RING_ERR_ARGUMENT, "ring_comm_split: out is NULL"));
    *out = NULL;
    ring_status open = call_group_refuse("comm_split");
    if (open != RING_OK)
        return refuse(parent, open);
    split_card *cards = malloc((size_t)parent->ranks * sizeof *cards);
    if (cards == NULL)
        return refuse(parent, fail(RING_ERR_MEMORY,
                                   "out of memory while splitting a communicator of %d rank%s",
                                   parent->ranks, plural(parent->ranks)));
    const split_card mine = {.colour = colour, .key = key, .id = control_new_id(parent->world)};
    const ring_status status = split(parent, cards, &mine, out);
    free(cards);
    return status;
}

ring_status ring_comm_dup(ring_comm *parent, ring_comm **out)
{
    return ring_comm_split(parent, 0, 0, out);
}

/* Ends this rank's calls on the failed communicator. Once all survivors have entered the shrink, no
 * rank accesses the buffers of these calls any more. */
static ring_status end_calls(ring_comm *broken)
{
    comm_lock(broken);
    failure_await(broken);
    const ring_status verdict = comm_verdict(broken);
    if (verdict != RING_OK)
        engine_release_streams(broken);
    comm_unlock(broken);
    if (verdict != RING_OK)
        return RING_OK;
    return fail(RING_ERR_USAGE, "ring_comm_shrink: the communicator has not failed; "
                                "use ring_comm_exclude() to leave ranks out of it");
}

ring_status ring_comm_shrink(ring_comm *broken, ring_comm **out)
{
    const double started = clock_now();
    control_world *world;
    if (broken == NULL || out == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_shrink: broken or out is NULL");
    *out = NULL;
    RING_TRY(comm_check_own(broken, "comm_shrink"));
    RING_TRY(end_calls(broken));
    RING_TRY(control_shrink(broken->world, started + broken->settings.timeout, &world));
    RING_TRY(comm_new(world, broken, NULL, started, out));
    return comm_open_seat(broken, out);
}
