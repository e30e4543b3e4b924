/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress: each lane's works in call order, as far as they go without blocking; now and then,
 * their deadlines, and whether ranks wait in different calls.
 */
#include "comm.h"

/* Turns between two looks at the clock: a fraction of a millisecond, and no part of a short call. */
enum { LOOK_TURNS = 64 };
/* A stall this long makes ranks compare their calls. */
static const double stall_seconds = 0.5;

static void finish_all(ring_comm *comm, ring_status status)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        while (comm->queue[lane].first != NULL)
            work_finish(&comm->queue[lane].first, status);
}

/* ---- One turn ------------------------------------------------------------------ */

static void begin_turn(ring_comm *comm)
{
    comm->turn_bytes = 0;
    for (int p = 0; p < comm->ranks; p++)
        for (int lane = 0; lane < TRANSPORT_LANES; lane++)
            comm->peers[p].turn[lane] = (link_turn){0};
}

/* Works behind this one may use only what it leaves. @return true if that is nothing. */
static bool take_directions(const ring_work *work)
{
    bool all = work->comm->ranks > 1;
    for (int p = 0; p < work->comm->ranks; p++) {
        link_turn *turn = &work->comm->peers[p].turn[work->lane];
        turn->sends_taken |= message_sends_left(work, p);
        turn->recvs_taken |= message_recvs_left(work, p);
        all &= p == work->comm->rank || (turn->sends_taken && turn->recvs_taken);
    }
    return all;
}

static void advance_lane(ring_comm *comm, int lane, bool *moved)
{
    ring_work **at = &comm->queue[lane].first;
    bool stepped = false;
    while (*at != NULL) {
        ring_work *work = *at;
        const ring_status status = work_advance(work, &stepped);
        if (status == RING_OK) {
            work_finish(at, RING_OK);
            continue;
        }
        if (status != RING_IN_PROGRESS) {
            comm_fail(comm, work, status);
            break;
        }
        if (work->next == NULL || take_directions(work))
            break;
        at = &work->next;
    }
    comm->stall.moves += stepped && lane == TRANSPORT_COLLECTIVE;
    *moved |= stepped;
}

/* Pushes what links hold back, for those that somebody waits on. */
static ring_status push_links(ring_comm *comm)
{
    for (int p = 0; p < comm->ranks; p++) {
        for (int lane = 0; lane < TRANSPORT_LANES; lane++) {
            transport_link *l = comm->peers[p].lanes[lane];
            if (l != NULL && link_is_wanted(&comm->peers[p].turn[lane]))
                RING_TRY(l->transport->progress(l));
        }
    }
    return RING_OK;
}

/* The verdict comes first: after it peers may have taken their buffers back. */
void comm_progress(ring_comm *comm, bool *moved)
{
    begin_turn(comm);
    for (int lane = 0; lane < TRANSPORT_LANES && comm_verdict(comm) == RING_OK; lane++)
        advance_lane(comm, lane, moved);
    const ring_status verdict = comm_verdict(comm);
    if (verdict != RING_OK)
        finish_all(comm, verdict);
    else if (!*moved && push_links(comm) != RING_OK)
        log_debug("%s", fail_text()); /* it shows again where a work needs the link */
    if (*moved)
        sleeper_stir(comm);
    if (++comm->turns % LOOK_TURNS == 0 || comm_turn_is_over(comm))
        comm_look_after(comm);
}

/* ---- Clocks ---------------------------------------------------------------------- */

static ring_status timed_out(const ring_work *work)
{
    if (work->waits_for < 0)
        return fail(RING_ERR_TIMEOUT, "not finished before its deadline (RING_TIMEOUT or "
                    "ring_call.timeout)");
    return fail(RING_ERR_TIMEOUT, "not finished before its deadline (RING_TIMEOUT or "
                "ring_call.timeout), waiting for rank %d (%s)", work->waits_for,
                work->comm->world->cards[work->waits_for].hostname);
}

static ring_work *find_overdue(const ring_comm *comm, double now)
{
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        for (ring_work *w = comm->queue[lane].first; w != NULL; w = w->next)
            if (now >= w->deadline)
                return w;
    return NULL;
}

/* Compares again and again: a peer's notice may come later than this rank's look. */
static ring_status check_stall(ring_comm *comm, ring_work *first, double now)
{
    comm_stall *stall = &comm->stall;
    if (first == NULL || stall->moves != stall->moves_seen) {
        stall->moves_seen = stall->moves;
        stall->since = now;
    }
    if (first == NULL || now - stall->since < stall_seconds)
        return RING_OK;
    stall->since = now;
    return message_compare_calls(first);
}

void comm_look_after(ring_comm *comm)
{
    const double now = clock_now();
    ring_work *first = comm->queue[TRANSPORT_COLLECTIVE].first, *overdue = find_overdue(comm, now);
    if (overdue != NULL) {
        comm_fail(comm, overdue, timed_out(overdue));
    } else {
        const ring_status status = check_stall(comm, first, now);
        if (status != RING_OK)
            comm_fail(comm, first, status);
    }
    const ring_status verdict = comm_verdict(comm);
    if (verdict != RING_OK)
        finish_all(comm, verdict);
}
