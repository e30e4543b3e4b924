/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements split, dup and shrink, which derive a communicator from a parent. A split gathers the
 * arguments of all ranks with one all_gather over the parent. Derived communicators share the
 * control connections of the parent, and dial links only when a call needs them. No rank gets its
 * communicator before all ranks have created their parts. A nonblocking split starts its calls on
 * the parent in the caller's thread, and does the rest in a thread of its own.
 */
#include "call_group.h"
#include "call_reports.h"
#include "device_seats.h"
#include "engine.h"
#include "init.h"
#include "members.h"

#include <stdlib.h>
#include <string.h>

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

/* A split in progress. Both of its calls are started at once, so that they keep their places in the
 * order of the parent's calls; the all_reduce of the results waits for an event. */
typedef struct split {
    comm_start start; /* of a nonblocking split; its `comm` is NULL for RING_SPLIT_NONE */
    ring_comm *parent;
    settings settings;
    int32_t worst;       /* the worst of all ranks' results */
    ring_event *created; /* this rank's part of the communicator, or not */
    ring_work *gathering, *agreement;
    split_card mine, cards[]; /* [parent->ranks] */
} split;

/* Creates this rank's part of the communicator. */
static ring_status derive(const split *s)
{
    ring_comm *parent = s->parent;
    control_world *world;
    if (s->start.comm == NULL)
        return RING_OK;
    const double started = clock_now();
    int *ranks = malloc((size_t)parent->ranks * sizeof *ranks);
    if (ranks == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while splitting a communicator of %d rank%s",
                    parent->ranks, plural(parent->ranks));
    const int count = choose_ranks(parent, s->cards, ranks);
    const ring_status status = control_derive(parent->world, s->cards[ranks[0]].id, ranks, count,
                                              &world);
    free(ranks);
    RING_TRY(status);
    world->settings = s->settings;
    return comm_begin(s->start.comm, world, parent, NULL, started);
}

/* If the parent ends during the agreement, other ranks may have agreed already.
 * @return the worst of all ranks' results. */
static ring_status agree(split *s, ring_status mine)
{
    ring_comm *comm = s->start.comm;
    s->worst = (int32_t)mine;
    (void)ring_event_set(s->created, RING_OK);
    const ring_status agreed = ring_wait(&s->agreement);
    if (agreed != RING_OK)
        return comm != NULL && comm->world != NULL ? comm_report(comm, agreed) : agreed;
    const ring_status worst = (ring_status)s->worst;
    return worst == RING_OK || mine != RING_OK ? mine
                                               : fail(worst,
                                                      "ring_comm_split: another rank could not "
                                                      "create its part of the communicator: %s",
                                                      ring_status_string(worst));
}

/* From now on a nonblocking split makes calls on its new communicator, or none. If an abort came
 * too late to end the agreement, it ends the new communicator. */
static void leave_parent(split *s, bool agreed)
{
    char reason[CONTROL_TEXT];
    ring_comm *comm = s->start.comm;
    if (comm == NULL || comm->start == NULL)
        return;
    pthread_mutex_lock(&s->start.lock);
    s->start.waits_in = agreed ? comm : NULL;
    text_format(reason, sizeof reason, "%s", s->start.stop.reason);
    pthread_mutex_unlock(&s->start.lock);
    if (agreed && reason[0] != '\0')
        (void)ring_comm_abort(comm, reason);
}

/* Completes a split, after which the parent may be freed. */
static ring_status finish_split(split *s)
{
    ring_comm *parent = s->parent, *comm = s->start.comm;
    ring_status status = ring_wait(&s->gathering);
    if (status == RING_OK)
        status = derive(s);
    status = agree(s, status);
    leave_parent(s, status == RING_OK);
    if (status == RING_OK && comm != NULL)
        status = device_calls_open(comm, parent->accelerator, parent);
    ring_event_destroy(s->created);
    atomic_fetch_sub(&parent->splits, 1);
    members_let_go(parent);
    return status;
}

static ring_status finish_start(comm_start *start)
{
    return finish_split((split *)start);
}

static void *finish_alone(void *context)
{
    (void)finish_split(context);
    free(context);
    return NULL;
}

/* Completes the split in a thread of its own. @return false if it could not be started. */
static bool finish_apart(split *s)
{
    pthread_t thread;
    if (s->start.comm != NULL)
        return comm_start_apart(&s->start) == RING_OK;
    return thread_start(&thread, finish_alone, s) == 0 && pthread_detach(thread) == 0;
}

/* Starts both calls. If the second one cannot be started, the parent has failed. */
static ring_status start_calls(split *s)
{
    ring_call gather = RING_CALL_INIT, reduce = RING_CALL_INIT;
    gather.work = &s->gathering;
    reduce.work = &s->agreement;
    reduce.after = s->created;
    RING_TRY(ring_all_gather(&s->mine, s->cards, CARD_NUMBERS, RING_INT64, s->parent, &gather));
    return ring_all_reduce(&s->worst, &s->worst, 1, RING_INT32, RING_MAX, s->parent, &reduce);
}

static void free_split(split *s)
{
    if (s == NULL)
        return;
    ring_comm_destroy(s->start.comm);
    ring_event_destroy(s->created);
    free(s);
}

/* @return NULL if there is no memory. */
static split *new_split(ring_comm *parent, const split_card *mine, const settings *with)
{
    split *s = calloc(1, sizeof *s + (size_t)parent->ranks * sizeof *s->cards);
    if (s == NULL)
        return NULL;
    s->parent = parent;
    s->settings = *with;
    s->mine = *mine;
    s->start.create = finish_start;
    s->start.derived = true;
    s->start.waits_in = parent;
    s->start.comm = mine->colour >= 0 ? comm_alloc(-1, -1) : NULL;
    if ((s->start.comm != NULL || mine->colour < 0) && ring_event_create(&s->created) == RING_OK)
        return s;
    free_split(s);
    return NULL;
}

static ring_status run_split(split *s, bool nonblocking, ring_comm **out)
{
    ring_comm *comm = s->start.comm;
    ring_status status = start_calls(s);
    if (status != RING_OK) {
        (void)ring_wait(&s->gathering); /* it has failed, too */
        free_split(s);
        return status;
    }
    members_hold(s->parent);
    atomic_fetch_add(&s->parent->splits, 1);
    *out = comm;
    if (nonblocking && finish_apart(s))
        return RING_OK;
    status = finish_split(s);
    free(s);
    return status == RING_OK ? RING_OK : comm_undo(out, status);
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

/* Reads the settings in which a derived communicator may differ from its parent. */
static ring_status read_own_settings(const char *const *entries, settings *s)
{
    static const char *const own[] = {"RING_EXIT=", "RING_NVTX=", "RING_PROGRESS="};
    for (const char *const *e = entries; e != NULL && *e != NULL; e++) {
        size_t i = 0;
        while (i < sizeof own / sizeof own[0] && strncmp(*e, own[i], strlen(own[i])) != 0)
            i++;
        if (i == sizeof own / sizeof own[0])
            return fail(RING_ERR_CONFIG,
                        "ring_comm_split_config: %.100s: a derived communicator has the settings "
                        "of its parent, except RING_EXIT, RING_NVTX and RING_PROGRESS",
                        *e);
    }
    return settings_override(s, entries);
}

static ring_status prepare_split(ring_comm *parent, const split_card *mine,
                                 const ring_config *config, ring_config *given, split **s)
{
    settings with = parent->world->settings;
    RING_TRY(call_group_refuse("comm_split"));
    RING_TRY(comm_read_config(config, "comm_split_config", given));
    RING_TRY(read_own_settings(given->settings, &with));
    *s = new_split(parent, mine, &with);
    return *s != NULL
               ? RING_OK
               : fail(RING_ERR_MEMORY, "out of memory while splitting a communicator of %d rank%s",
                      parent->ranks, plural(parent->ranks));
}

ring_status ring_comm_split_config(ring_comm *parent, int colour, int key,
                                   const ring_config *config, ring_comm **out)
{
    ring_config given;
    split *s;
    if (parent == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_split: parent is NULL");
    RING_TRY(comm_check_own(parent, "comm_split"));
    if (out == NULL)
        return refuse(parent, fail(RING_ERR_ARGUMENT, "ring_comm_split: out is NULL"));
    *out = NULL;
    const split_card mine = {.colour = colour, .key = key, .id = control_new_id(parent->world)};
    const ring_status status = prepare_split(parent, &mine, config, &given, &s);
    return status == RING_OK ? run_split(s, given.nonblocking, out) : refuse(parent, status);
}

ring_status ring_comm_split(ring_comm *parent, int colour, int key, ring_comm **out)
{
    return ring_comm_split_config(parent, colour, key, NULL, out);
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
