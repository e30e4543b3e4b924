/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the engine, which runs works through their programs as far as possible without
 * blocking. An engine turn first advances the held works, and then the works that wait on active
 * channels. engine_look() checks the deadlines.
 */
#include "engine.h"

#include "call_reports.h"
#include "channel_out.h"
#include "channel_table.h"
#include "device_calls.h"
#include "device_pairs.h"
#include "device_proxy.h"
#include "event.h"
#include "mismatch.h"
#include "products.h"
#include "scratch.h"
#include "self_pair.h"
#include "sleep.h"
#include "steps.h"
#include "streams.h"
#include "tagged.h"
#include "tagged_link.h"
#include "tagged_traffic.h"

/* Seconds between two checks of the deadlines. */
static const double look_seconds = 1e-3;
/* Seconds for which a work waits before the health of its accelerator is checked. */
static const double health_seconds = 10e-3;
/* The most seconds between two such checks. */
static const double most_health_pause = 0.1;
/* Seconds by which an accelerator that checks a call's deadline itself may be later than the
 * engine. It knows which rank is missing. */
static const double device_grace = 1;
/* After this many seconds without progress, ranks compare their calls. */
static const double stall_seconds = 0.5;

/* ---- One work ---------------------------------------------------------------------- */

static bool has_post(const channel *c, const work *w)
{
    for (const posted *p = c->posts; p != NULL; p = p->next)
        if (p->work == w)
            return true;
    return false;
}

/* @return a channel with a queued message of the work, or whose link has not flushed the work's
 * frames; NULL if there is none. */
static channel *unsent(const work *w)
{
    for (int32_t i = 0; i < w->program->peer_count; i++) {
        const work_peer *peer = &w->peers[i];
        const transport_link *l = peer->on->link;
        if (l->transport->flushed(l) < peer->flush_mark ||
            (w->step.posted > 0 && has_post(peer->on, w)))
            return peer->on;
    }
    return NULL;
}

static ring_status run_ops(work *w, bool *moved)
{
    const program *p = w->program;
    for (; w->step.slice < p->slices;
         w->step.slice += p->channels, w->step.runs++, w->step.op = 0) {
        for (; w->step.op < p->op_count; w->step.op++) {
            if (comm_turn_is_over(w->comm))
                return work_hold(w);
            RING_TRY(step_run(w, &p->ops[w->step.op], moved));
            w->step.position = 0;
            *moved = true;
        }
    }
    channel *busy = w->lends || w->step.posted > 0 ? unsent(w) : NULL;
    return busy == NULL ? RING_OK : channel_await(w, busy, WAIT_FREE, 0);
}

/* @return true if no gate holds the work back and it has its scratch memory. */
static bool is_open(const work *w)
{
    return !w->gate.closed && (w->scratch != NULL || w->program->scratch == 0);
}

/* Opens the work's gate if its event is set and its stream has reached the stop.
 * @return RING_IN_PROGRESS if it stays closed, or if earlier works use all scratch memory. */
static ring_status open_gate(work *w)
{
    const ring_status gate = w->gate.event != NULL ? event_status(w->gate.event) : RING_OK;
    if (gate != RING_OK && gate != RING_IN_PROGRESS)
        return fail(gate, "the event that the call waits for (ring_call.after) failed: %s",
                    ring_status_string(gate));
    if (work_is_gated(w))
        return RING_IN_PROGRESS;
    event_drop(w->gate.event);
    w->gate.event = NULL;
    work_pass_stop(w);
    if (w->call.on_device)
        stop_drop(&w->stream.stop);
    w->gate.closed = false;
    if (is_open(w))
        return RING_OK;
    return scratch_take(w);
}

static bool failed(ring_status status)
{
    return status != RING_OK && status != RING_IN_PROGRESS;
}

/* Runs of an accelerator end in the order of their numbers, so the first call on a device stands
 * for those with the same or later runs. Calls of a group may be in another order than their runs.
 */
static ring_status advance_run(work *w)
{
    const work *first = work_on_device_from(w->comm->works.first);
    w->stream.queued = w != first && !work_run_is_before(w->stream.run, first->stream.run);
    if (w->stream.queued)
        return RING_IN_PROGRESS;
    const ring_status status = device_call_advance(w);
    return status == RING_IN_PROGRESS ? work_hold(w) : status;
}

static void hold_again(work *w)
{
    w->stream.queued = false;
    w->comm->works.held_again = true;
    (void)work_hold(w);
}

/* If a call on a device has ended, holds the next one, and those for which that does not stand. */
static void end_part(work *w)
{
    ring_comm *comm = w->comm;
    const bool on_device = w->call.on_device;
    const uint32_t run = w->stream.run;
    work_part_done(w);
    work *first = on_device ? work_on_device_from(comm->works.first) : NULL;
    if (first == NULL)
        return;
    if (first->stream.queued)
        hold_again(first);
    for (work *next = first; next != NULL && work_run_is_before(run, first->stream.run);
         next = work_on_device_from(next->next))
        if (next->stream.queued && work_run_is_before(next->stream.run, first->stream.run))
            hold_again(next);
}

static ring_status advance(work *w, bool *moved)
{
    ring_assert(!w->result.finished && w->wait.on == NULL && w->step.op <= w->program->op_count);
    ring_status status = is_open(w) ? RING_OK : open_gate(w);
    if (status == RING_OK && w->lead->buffers.products.missing)
        status = products_make(w, moved);
    if (status == RING_IN_PROGRESS)
        return work_hold(w);
    if (status == RING_OK && w->call.on_device)
        status = advance_run(w);
    if (status == RING_OK && w->call.tagged)
        status = tagged_advance(w, moved);
    else if (status == RING_OK && w->program->to_self && !w->call.on_device)
        status = self_pair_meet(&w);
    if (status == RING_OK)
        status = run_ops(w, moved);
    if (status == RING_OK) {
        *moved = true;
        end_part(w);
    } else if (failed(status)) {
        comm_fail(w->comm, w, status);
    }
    return status;
}

/* ---- A turn ------------------------------------------------------------------------ */

/* Advances the works of a list that was taken off the communicator or a channel. */
static ring_status advance_all(work *w, bool *moved)
{
    for (work *next; w != NULL; w = next) {
        next = w->wait.next;
        const ring_status status = advance(w, moved);
        if (failed(status))
            return status;
    }
    return RING_OK;
}

static ring_status run_held(ring_comm *comm, bool *moved)
{
    do {
        work *first = comm->works.held;
        comm->works.held = NULL;
        comm->works.held_end = &comm->works.held;
        comm->works.held_again = false;
        RING_TRY(advance_all(first, moved));
    } while (comm->works.held_again);
    return RING_OK;
}

/* Sends queued messages, then advances the waiting works in message order until one cannot
 * continue. */
static ring_status run_channel(channel *c, bool *moved)
{
    if (c->posts != NULL) {
        const ring_status status = channel_flush(c, moved);
        if (failed(status)) {
            comm_fail(c->comm, c->posts->work, status);
            return status;
        }
    }
    for (wait_kind kind = 0; kind < WAIT_FREE; kind++) {
        work *w;
        bool stepped = true;
        while (stepped && (w = channel_ready(c, kind)) != NULL) {
            stepped = false;
            const ring_status status = advance(w, &stepped);
            *moved |= stepped;
            if (failed(status))
                return status;
        }
    }
    /* Works that wait for free chunks do not wait for each other. */
    return advance_all(channel_take_free(c), moved);
}

static ring_status run_channels(ring_comm *comm, bool *moved)
{
    channel_table *t = &comm->channels;
    for (int32_t i = 0; i < t->active_count;) {
        channel *c = t->active[i];
        RING_TRY(run_channel(c, moved));
        if (!channel_is_idle(c)) {
            i++;
            continue;
        }
        channel *last = t->active[--t->active_count]; /* takes the place of the idle channel */
        c->place = -1;
        t->active[i] = last;
        if (last->place >= 0)
            last->place = i;
    }
    return RING_OK;
}

/* Calls progress() of the active links, because no work could move: it flushes frames that the
 * links hold, and detects broken connections. A broken link ends the communicator if a work waits
 * for it. */
static void push_links(ring_comm *comm)
{
    for (int32_t i = 0; i < comm->channels.active_count; i++) {
        channel *c = comm->channels.active[i];
        const ring_status status = c->link->transport->progress(c->link);
        if (!failed(status))
            continue;
        /* The first failure only sets c->lost, so that the next turn still consumes the frames that
         * arrived before it. */
        const work *w = channel_first_waiter(c);
        const bool again = c->lost;
        c->lost = true;
        if (again && w != NULL) {
            comm_fail_by(comm, w, c, status);
            return;
        }
    }
}

/* Calls progress() of idle links that write to peers' memory. The peer may wait for an announcement
 * of consumed frames, or for the notice that this end has moved to another rail. If an idle link is
 * broken, the next call that uses it reports the error. */
static void push_idle_links(ring_comm *comm)
{
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;)
        if (c->place < 0 && (c->link->transport->powers & TRANSPORT_REACHES) != 0)
            (void)c->link->transport->progress(c->link);
}

/* Stops all transfers before the works end, because their buffers then belong to the callers again
 * and must not be touched any more. */
static void end_all(ring_comm *comm, ring_status status)
{
    channel_table *t = &comm->channels;
    channel *c;
    device_calls_abort(comm);
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;)
        if (c->link->transport->stop != NULL)
            c->link->transport->stop(c->link);
    for (work *w = comm->works.first; w != NULL; w = w->next)
        work_settle(w);
    for (int32_t i = 0; i < t->active_count; i++) {
        channel_clear(t->active[i]);
        t->active[i]->place = -1;
    }
    t->active_count = 0;
    comm->works.held = NULL;
    comm->works.held_end = &comm->works.held;
    self_pair_clear(comm);
    tagged_clear(comm);
    while (comm->works.first != NULL)
        work_finish(comm->works.first, status);
}

/* Ends works only once the verdict is known. Until then, peers may still access this rank's
 * buffers, which its callers may reuse when their calls end. If there are no works, runs of device
 * calls may still hold streams. */
void engine_end_if_failed(ring_comm *comm)
{
    failure_settle(comm);
    if (comm_is_fine(comm))
        return;
    if (comm->works.first != NULL)
        end_all(comm, comm_verdict(comm));
    else
        device_calls_abort(comm);
}

void engine_release_streams(ring_comm *comm)
{
    const accelerator *a = comm->streams.held_of;
    comm->streams.released = true;
    comm->streams.held_of = NULL;
    engine_end_if_failed(comm);
    works_release_streams(comm);
    if (a != NULL)
        a->programs->count_holders(a, -1);
}

static void begin_turn(ring_comm *comm, size_t most_bytes)
{
    comm->turn.bytes = 0;
    /* On a single rank no other thread would run the ops that exceed the limit. */
    comm->turn.most = comm->ranks > 1 ? most_bytes : SIZE_MAX;
}

bool engine_turn(ring_comm *comm, size_t most_bytes)
{
    bool moved = false;
    begin_turn(comm, most_bytes);
    sleep_look(comm);
    opening_turn(comm, &moved);
    engine_end_if_failed(comm);
    if (comm->failure.pending)
        return moved;
    if (tagged_turn(comm, &moved) == RING_OK && device_proxy_turn(comm, &moved) == RING_OK &&
        run_held(comm, &moved) == RING_OK && run_channels(comm, &moved) == RING_OK && !moved)
        push_links(comm);
    engine_end_if_failed(comm);
    if (moved) {
        comm->stall.moves++;
        comm->streams.step = 0;
        sleep_wake_callers(comm);
    }
    return moved;
}

void engine_start(work *w)
{
    ring_comm *comm = w->comm;
    bool moved = false;
    work *next = w;
    begin_turn(comm, TURN_BYTES);
    for (int32_t parts = comm->failure.pending ? 0 : w->parts; parts > 0; parts--) {
        work *part = next;
        next = part->next; /* parts that have ended leave the list */
        if (failed(advance(part, &moved))) {
            engine_end_if_failed(comm);
            break;
        }
    }
    if (!w->result.finished)
        sleep_wake_callers(comm); /* callers that sleep do not poll this work's channel yet */
}

/* ---- Clocks ------------------------------------------------------------------------ */

static ring_status timed_out(const work *w)
{
    if (w->call.tagged && !w->tagged.met)
        return tagged_timed_out(w);
    if (w->program->to_self && w->partner == NULL && !w->call.on_device)
        return fail(RING_ERR_TIMEOUT,
                    "not finished before its deadline (RING_TIMEOUT or ring_call.timeout): this "
                    "rank has not made the matching ring_%s to itself; start one of the two with "
                    "ring_call.work, or both in a group",
                    w->call.collective == PLAN_SEND ? "recv" : "send");
    const int missing = device_call_missing(w);
    if (missing >= 0)
        return fail(RING_ERR_TIMEOUT,
                    "not finished before its deadline (RING_TIMEOUT or ring_call.timeout): rank %d "
                    "of this process, which shares the GPU, has not made the call; a thread that "
                    "makes calls for several ranks must make them in a group (ring_group_start)",
                    missing);
    const char *why = "";
    if (w->call.on_device && w->stream.is_given)
        why =
            ": the GPU has not completed the call, perhaps because its stream has not reached it; "
            "the buffers are in use until the stream has passed the call";
    else if (w->call.on_device)
        why = ": the GPU has not completed the call, perhaps because work that its default stream "
              "had at the call has not ended; that stream also waits for other blocking streams of "
              "this process, which may be stopped at a call of another rank";
    else if (work_awaits_stream(w))
        why = w->stream.stop->is_mark
                  ? ": work that the GPU's default stream had at the call has not ended; that "
                    "stream also waits for other blocking streams of this process, which may be "
                    "stopped at a call of another rank"
                  : ": the call's stream (ring_call.stream) has not reached it";
    if (w->wait.last == NULL)
        return fail(RING_ERR_TIMEOUT,
                    "not finished before its deadline (RING_TIMEOUT or ring_call.timeout)%s", why);
    return fail(RING_ERR_TIMEOUT,
                "not finished before its deadline (RING_TIMEOUT or ring_call.timeout), waiting for "
                "rank %d (%s)",
                w->wait.last->rank, comm_host(w->comm, w->wait.last->rank));
}

/* A work's timeout starts at the first check, which follows the first turn without progress. It
 * includes the time that a stream takes to reach the call. */
static work *find_overdue(const ring_comm *comm, double now)
{
    for (work *w = comm->works.first; w != NULL; w = w->next) {
        /* A lead that has run its ops waits for its other parts, which have their own deadlines. */
        const bool waits_for_parts = w->program->channels > 1 &&
                                     w->step.slice >= w->program->slices && w->wait.on == NULL;
        if (work_awaits_event(w) || waits_for_parts)
            continue;
        if (w->wait.deadline <= 0)
            w->wait.deadline = now + w->wait.timeout;
        if (now >= w->wait.deadline &&
            (now >= w->wait.deadline + device_grace || !device_call_is_timed(w)))
            return w;
    }
    return NULL;
}

/* @return the first call that this rank reports to other ranks if it stalls. */
static work *first_reported(const ring_comm *comm)
{
    for (work *w = comm->works.first; w != NULL; w = w->next)
        if (w->gate.event == NULL && !w->stream.pending &&
            (!w->program->facts->pairwise || w->call.on_device))
            return w;
    return NULL;
}

/* After each interval without progress, reports this rank's call to all ranks and checks the frame
 * that has arrived. The check is repeated because a peer may make a different call later. */
static ring_status check_stall(ring_comm *comm, work *w, double now)
{
    comm_stall *stall = &comm->stall;
    if (w == NULL || stall->moves != stall->moves_seen) {
        stall->moves_seen = stall->moves;
        stall->since = now;
    }
    if (w == NULL || now - stall->since < stall_seconds)
        return RING_OK;
    stall->since = now;
    reports_wait(w);
    RING_TRY(mismatch_check_stalled(w));
    return device_pairs_check_stalled(comm);
}

/* Checks the health of the accelerators for whose streams or folds works wait, ever more rarely: a
 * check calls the driver.
 * @param[out] affected  a work that waits for a failed accelerator. */
static ring_status check_accelerators(ring_comm *comm, double now, work **affected)
{
    const accelerator *last = NULL;
    if (now < comm->turn.health)
        return RING_OK;
    for (work *w = comm->works.first; w != NULL; w = w->next) {
        const accelerator *a = w->stream.stop != NULL ? w->stream.stop->by : w->by;
        const double waited = now + w->wait.timeout - w->wait.deadline;
        if (a == NULL || a == last || a->health == NULL || waited < health_seconds)
            continue;
        last = a;
        *affected = w;
        comm->turn.health = now + (waited / 2 < most_health_pause ? waited / 2 : most_health_pause);
        const ring_status status = a->health(a);
        if (status != RING_OK)
            return fail(RING_ERR_SYSTEM, "the accelerator %s failed: %s", a->name, fail_text());
    }
    return RING_OK;
}

void engine_look(ring_comm *comm, double now)
{
    if (now < comm->turn.looked + look_seconds && now >= comm->turn.looked)
        return;
    comm->turn.looked = now;
    if (comm->failure.pending)
        return;
    if (comm->links.reaches)
        push_idle_links(comm);
    work *w = first_reported(comm), *at = find_overdue(comm, now);
    ring_status status = at != NULL ? timed_out(at) : check_accelerators(comm, now, &at);
    if (status == RING_OK) {
        at = w;
        status = reports_check(comm);
        if (status == RING_OK)
            status = check_stall(comm, w, now);
    }
    if (status != RING_OK)
        comm_fail(comm, at, status);
    engine_end_if_failed(comm);
}
