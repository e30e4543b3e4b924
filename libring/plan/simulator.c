/* SPDX-License-Identifier: Apache-2.0
 * Runs all ranks' plans, in turn, until no rank can execute another step. */
#include "simulator.h"

#include "array.h"
#include "simulator_steps.h"

/* ---- Running ------------------------------------------------------------------- */

/* @return true if there is a message that may be taken in the current round. */
static bool arrived(const simulation *s, int from, int to)
{
    const queue_message *first = queue_first(&s->queues, from, to);
    if (first == NULL || !s->mode.by_rounds)
        return first != NULL;
    return first->round < s->round && queue_between(&s->queues, from, to)->round != s->round;
}

/* @return a rank for which the step must wait; -1 if the step can be executed. */
static int missing(const simulation *s, int rank, const plan_step *step)
{
    if (step->kind == PLAN_STEP_WAIT && !queue_is_taken(&s->queues, rank, step->peer, step->back))
        return step->peer;
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(&s->cursors[rank], step, i).rank;
        if (from != rank && !arrived(s, from, rank))
            return from;
    }
    return -1;
}

static ring_status record(simulation *s, int rank, const plan_step *step)
{
    sim_event *events = array_with_room(s->events, &s->event_cap, (int64_t)s->event_count + 1,
                                        sizeof *events);
    if (events == NULL)
        return sim_no_memory(s);
    s->events = events;
    int32_t *taken = array_with_room(s->taken, &s->taken_cap, (int64_t)s->taken_count + step->ins,
                                     sizeof *taken);
    if (taken == NULL)
        return sim_no_memory(s);
    s->taken = taken;
    s->events[s->event_count++] = (sim_event){.at = s->cursors[rank],
                                              .rank = rank,
                                              .index = s->done[rank] + 1,
                                              .first_taken = s->taken_count};
    return RING_OK;
}

/* Executes a rank's steps until one must wait. @param[out] moved  true if any was executed. */
static ring_status run_rank(simulation *s, int rank, bool *moved)
{
    const plan_step *step;
    while ((step = plan_at(&s->cursors[rank])) != NULL && missing(s, rank, step) < 0) {
        RING_TRY(record(s, rank, step));
        sim_event *event = &s->events[s->event_count - 1];
        RING_TRY(sim_execute(s, rank, step));
        event->taken = s->taken_count - event->first_taken;
        plan_next(&s->cursors[rank]);
        s->done[rank]++;
        *moved = true;
    }
    return RING_OK;
}

static ring_status run_until_all_wait(simulation *s)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < s->ranks; rank++)
            RING_TRY(run_rank(s, rank, &moved));
    }
    return RING_OK;
}

ring_status sim_round(simulation *s, bool *moved)
{
    const int32_t before = s->taken_count;
    RING_TRY(run_until_all_wait(s));
    *moved = s->taken_count > before;
    s->round++;
    return RING_OK;
}

ring_status sim_finish(const simulation *s)
{
    for (int rank = 0; rank < s->ranks; rank++)
        if (plan_at(&s->cursors[rank]) != NULL)
            return sim_offence(s, rank, "waits for ever for rank %d",
                               missing(s, rank, plan_at(&s->cursors[rank])));
    for (int32_t i = 0; i < s->queues.count; i++) {
        const queue_message *m = &s->queues.messages[i];
        if (m->taker == QUEUE_NONE)
            return sim_wrong(s, "rank %d never takes the chunk %d that rank %d sends in step %d",
                             m->to, m->loc.chunk, m->from, s->events[m->sender].index - 1);
    }
    return RING_OK;
}

ring_status sim_to_end(simulation *s)
{
    RING_TRY(run_until_all_wait(s));
    return sim_finish(s);
}
