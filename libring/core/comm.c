/* SPDX-License-Identifier: Apache-2.0
 * Implements the public calls that destroy, abort and query communicators. */
#include "comm.h"

#include "automatic.h"
#include "call_reports.h"
#include "channel_table.h"
#include "device_calls.h"
#include "device_proxy.h"
#include "engine.h"
#include "members.h"
#include "mismatch.h"
#include "prepared.h"
#include "program_cache.h"
#include "scratch.h"
#include "sleep.h"
#include "tagged_traffic.h"
#include "tuner.h"

#include <stdlib.h>
#include <string.h>

static ring_status await_start(const ring_comm *comm)
{
    comm_start *s = comm->start;
    if (s == NULL)
        return RING_OK;
    if (atomic_load_explicit(&comm->starting, memory_order_acquire)) {
        pthread_mutex_lock(&s->lock);
        while (atomic_load(&comm->starting)) /* for RING_INIT_TIMEOUT, or until it is aborted */
            pthread_cond_wait(&s->over, &s->lock);
        pthread_mutex_unlock(&s->lock);
    }
    return s->status == RING_OK ? RING_OK : fail(s->status, "%s", comm->failure.text);
}

ring_status comm_check_own(const ring_comm *comm, const char *call)
{
    if (comm->generation == fork_generation())
        return await_start(comm);
    return fail(RING_ERR_USAGE,
                "ring_%s: the communicator belongs to the parent process; a forked child must "
                "create its own",
                call);
}

/* ---- Destroying ----------------------------------------------------------------- */

/* Aborts the communicator if works are unfinished: peers may still read and write this rank's
 * buffers for them. */
static void abort_unfinished(ring_comm *comm)
{
    char text[160];
    comm_lock(comm);
    engine_end_if_failed(comm);
    comm_unlock(comm);
    if (comm->works.first == NULL)
        return;
    text_format(text, sizeof text, "rank %d (%s) destroyed the communicator with unfinished calls",
                comm->rank, comm_host(comm, comm->rank));
    if (control_verdict(comm->world) == RING_OK)
        control_report(comm->world, RING_ERR_ABORTED, text);
    comm_lock(comm);
    engine_end_if_failed(comm); /* the verdict may be the report of another rank */
    comm_unlock(comm);
}

/* Logs an error if a frame has arrived that no call has consumed. Such a frame shows that ranks
 * made different calls; an eager send does not wait for its receiver, so no call has noticed. */
static void look_for_left_over(ring_comm *comm)
{
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;) {
        if (c->traffic == TRAFFIC_COLLECTIVE && control_verdict(comm->world) == RING_OK &&
            mismatch_check_left_over(c) != RING_OK) {
            log_error("%s", fail_text());
            return;
        }
    }
}

/* Waits up to half a second until all links have announced the frames that this rank has consumed,
 * because peers may wait for this room. */
static void await_announced(ring_comm *comm)
{
    const double deadline = clock_now() + 0.5;
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;)
        while (c->link->transport->announced != NULL && !c->link->transport->announced(c->link) &&
               clock_now() < deadline)
            (void)c->link->transport->progress(c->link);
}

/* Waits up to ten seconds until ranks on other hosts have taken all that this rank's accelerator
 * has sent, or two seconds if calls are unfinished. */
static void await_proxy(ring_comm *comm)
{
    const double since = clock_now();
    comm_lock(comm);
    device_proxy_end(comm);
    while (comm_is_fine(comm) && device_proxy_busy(comm) != NULL &&
           clock_now() < since + (comm->works.first != NULL ? 2 : 10))
        if (!engine_turn(comm, TURN_BYTES))
            clock_sleep(1e-5);
    comm_unlock(comm);
}

/* Frees all parts of a communicator. Parts that a failed start did not create are NULL. */
static void end_parts(ring_comm *comm)
{
    prepared_forget(comm);
    members_remove(comm);
    comm_lock(comm);
    failure_await(comm); /* while call reports can still arrive and explain the failure */
    engine_release_streams(comm);
    if (comm->device_calls != NULL) /* runs may have ended without being collected */
        (void)engine_turn(comm, TURN_BYTES);
    comm_unlock(comm);
    await_proxy(comm);
    reports_stop(comm);
    opening_stop(comm);
    abort_unfinished(comm);
    look_for_left_over(comm);
    await_announced(comm);
    control_leave(comm->world);
    channels_free(comm);
    tagged_free(comm);
    if (comm->links.registers)
        automatic_leave();
    programs_free(comm->programs);
    works_free(comm);
    scratch_free(comm);
    device_calls_close(comm);
    free(comm->memory.list_blocks);
    tuner_free(comm->tuner);
    sleep_free(comm);
    free(comm->history.packed);
    free((void *)(uintptr_t)comm->plan_world.host_of);
    control_free(comm->world);
}

static void join_start(ring_comm *comm)
{
    if (comm->start == NULL)
        return;
    if (!comm->start->derived && atomic_load(&comm->starting))
        control_stop_start(&comm->start->stop, "the communicator was destroyed during its start");
    pthread_join(comm->start->thread, NULL);
    pthread_cond_destroy(&comm->start->over);
    pthread_mutex_destroy(&comm->start->lock);
    free(comm->start);
    comm->start = NULL;
}

void ring_comm_destroy(ring_comm *comm)
{
    if (comm == NULL || comm->generation != fork_generation())
        return;
    if (atomic_load(&comm->splits) > 0) {
        abort_unfinished(comm);
        members_remove(comm); /* waits for the splits, which end now */
    }
    join_start(comm);
    if (comm->world != NULL)
        end_parts(comm);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* ---- Aborting -------------------------------------------------------------------- */

static void abort_started(ring_comm *comm, const char *reason)
{
    fail(RING_ERR_ABORTED, "aborted by rank %d (%s): %s", comm->rank, comm_host(comm, comm->rank),
         reason);
    control_report(comm->world, RING_ERR_ABORTED, fail_text());
    comm_lock(comm);
    comm_verdict(comm);
    engine_release_streams(comm);
    comm_unlock(comm);
    sleep_wake(comm);
}

/* Aborts a nonblocking start. @return false if it has ended. */
static bool abort_start(ring_comm *comm, const char *reason)
{
    comm_start *s = comm->start;
    if (s == NULL || !atomic_load(&comm->starting))
        return false;
    if (!s->derived) {
        control_stop_start(&s->stop, reason);
        return true;
    }
    pthread_mutex_lock(&s->lock);
    ring_comm *waits_in = s->waits_in;
    if (waits_in != NULL) {
        members_hold(waits_in);
        text_format(s->stop.reason, sizeof s->stop.reason, "%s", reason);
    }
    pthread_mutex_unlock(&s->lock);
    if (waits_in == NULL)
        return false;
    abort_started(waits_in, reason);
    members_let_go(waits_in);
    return true;
}

ring_status ring_comm_abort(ring_comm *comm, const char *reason)
{
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_abort: comm is NULL");
    if (reason == NULL || reason[0] == '\0')
        reason = "no reason given";
    if (comm->generation == fork_generation() && abort_start(comm, reason))
        return RING_OK;
    RING_TRY(comm_check_own(comm, "comm_abort"));
    abort_started(comm, reason);
    return RING_OK;
}

/* ---- Queries ---------------------------------------------------------------------- */

ring_status ring_comm_status(const ring_comm *comm)
{
    if (comm == NULL)
        return RING_ERR_ARGUMENT;
    if (atomic_load_explicit(&comm->starting, memory_order_acquire))
        return RING_IN_PROGRESS;
    ring_comm *of = (ring_comm *)(uintptr_t)comm;
    if (of->device_calls != NULL && comm_try_lock(of)) {
        device_calls_collect(of);
        comm_unlock(of);
    }
    const int broken = atomic_load_explicit(&comm->failure.status, memory_order_acquire);
    return broken != RING_OK ? (ring_status)broken : control_verdict(comm->world);
}

static bool has_rank(const ring_comm *comm)
{
    return comm != NULL &&
           !(atomic_load_explicit(&comm->starting, memory_order_acquire) && comm->start->derived);
}

int ring_comm_rank(const ring_comm *comm)
{
    return has_rank(comm) ? comm->rank : -1;
}

int ring_comm_size(const ring_comm *comm)
{
    return has_rank(comm) ? comm->ranks : -1;
}

const char *ring_last_error(const ring_comm *comm)
{
    if (comm == NULL)
        return fail_text();
    if (atomic_load_explicit(&comm->failure.status, memory_order_acquire) != RING_OK)
        return comm->failure.text;
    return atomic_load_explicit(&comm->starting, memory_order_acquire) ? ""
                                                                       : control_text(comm->world);
}

static uint64_t memory_of(const ring_comm *comm)
{
    const channel *c;
    uint64_t bytes = sizeof *comm + comm->channels.capacity * sizeof(channel *) +
                     (size_t)comm->ranks * sizeof(control_card) + HISTORY_CALLS * sizeof(uint64_t);
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;)
        bytes += sizeof *c + c->link->transport->memory(c->link);
    for (const scratch *s = comm->memory.scratches; s != NULL; s = s->next)
        bytes += s->bytes;
    for (const scratch *s = comm->memory.products; s != NULL; s = s->next)
        bytes += s->bytes;
    return bytes + comm->tagged.bytes;
}

static ring_comm_info info_of(ring_comm *comm)
{
    ring_comm_info info = {
        .rank = comm->rank,
        .ranks = comm->ranks,
        .local_rank = comm->info.local_rank,
        .local_ranks = comm->info.local_ranks,
        .hosts = comm->plan_world.hosts,
        .bytes_sent = comm->info.bytes_sent,
        .bytes_received = comm->info.bytes_received,
        .messages_sent = comm->info.messages_sent,
        .memory = memory_of(comm),
        .init_seconds = comm->info.init_seconds,
        .lowered = programs_lowered(comm->programs),
    };
    text_format(info.transport, sizeof info.transport, "%s", comm->links.names);
    text_format(info.launcher, sizeof info.launcher, "%s", comm->world->launcher);
    if (comm->info.algorithm == NULL)
        return info;
    text_format(info.algorithm, sizeof info.algorithm, "%s", comm->info.algorithm);
    if (!comm->crowded)
        info.predicted_us = 1e6 *
                            tuner_predict(comm->tuner, &comm->info.latest, comm->info.longest);
    return info;
}

ring_status ring_comm_get_info(const ring_comm *comm, ring_comm_info *info)
{
    if (comm == NULL || info == NULL || info->size == 0)
        return fail(RING_ERR_ARGUMENT,
                    "ring_comm_get_info: comm or info is NULL, or info->size is 0");
    RING_TRY(comm_check_own(comm, "comm_get_info"));
    ring_comm *changing = (ring_comm *)(uintptr_t)comm; /* only its lock and caches change */
    const size_t size = min_size(info->size, sizeof *info);
    comm_lock(changing);
    ring_comm_info all = info_of(changing);
    comm_unlock(changing);
    all.size = size;
    memcpy(info, &all, size);
    return RING_OK;
}
