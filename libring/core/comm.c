/* SPDX-License-Identifier: Apache-2.0
 * A communicator's birth, questions and death. */
#include "comm.h"

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

ring_status comm_check_own(const ring_comm *comm, const char *call)
{
    if (comm->generation == fork_generation())
        return RING_OK;
    return fail(RING_ERR_USAGE, "ring_%s: the communicator is that of the parent process; a forked "
                "child must make one of its own", call);
}

/* ---- Birth ---------------------------------------------------------------------- */

/* Ranks of this host before and including this one, and hosts as distinct cards. */
static void count_hosts(ring_comm *comm)
{
    const control_card *cards = comm->world->cards;
    for (int p = 0; p < comm->ranks; p++) {
        bool first = true;
        for (int q = 0; q < p && first; q++)
            first = memcmp(cards[p].host, cards[q].host, sizeof cards[p].host) != 0;
        comm->hosts += first;
        if (memcmp(cards[p].host, cards[comm->rank].host, sizeof cards[p].host) != 0)
            continue;
        comm->local_rank += p < comm->rank;
        comm->local_ranks++;
    }
}

static ring_status start_parts(ring_comm *comm)
{
    RING_TRY(sleeper_new(comm));
    RING_TRY(plans_new(&comm->plans));
    RING_TRY(links_open(comm));
    RING_TRY(tuner_new(comm, &comm->tuner));
    control_start(comm->world, sleeper_wake, comm);
    return comm->settings.progress_thread ? progress_start(comm) : RING_OK;
}

static ring_status comm_new(control_world *world, double started, ring_comm **out)
{
    ring_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        control_free(world);
        return fail(RING_ERR_MEMORY, "creating the communicator");
    }
    comm->world = world;
    comm->generation = fork_generation();
    comm->rank = world->rank;
    comm->ranks = world->size;
    comm->settings = world->settings;
    pthread_mutex_init(&comm->lock, NULL);
    comm->peers = calloc((size_t)comm->ranks, sizeof *comm->peers);
    log_set_rank(comm->rank, comm->ranks);
    count_hosts(comm);
    const ring_status status = comm->peers != NULL
                                   ? start_parts(comm)
                                   : fail(RING_ERR_MEMORY, "creating the communicator");
    if (status != RING_OK) {
        control_announce(comm->world, status); /* the others go on with the start */
        ring_comm_destroy(comm);
        return status;
    }
    comm->init_seconds = clock_now() - started;
    log_info("rank %d of %d on %d hosts over %s, %.1f ms", comm->rank, comm->ranks, comm->hosts,
             comm->transport, 1e3 * comm->init_seconds);
    *out = comm;
    return RING_OK;
}

static ring_status read_settings(settings *s, uint32_t *mask)
{
    RING_TRY(settings_read(s));
    const char *simd = getenv("RING_SIMD");
    if (simd != NULL && !kernels_select(simd))
        return fail(RING_ERR_CONFIG, "RING_SIMD=%s: want auto, avx512, avx2 or c, and one that this "
                    "CPU has", simd);
    return links_mask(s, mask);
}

ring_status ring_get_unique_id(ring_unique_id *id)
{
    if (id == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_get_unique_id: id is NULL");
    return control_make_id(id);
}

ring_status ring_comm_init(ring_comm **comm, int size, const ring_unique_id *id, int rank)
{
    const double started = clock_now();
    control_world *world;
    settings s;
    uint32_t mask;
    if (comm == NULL || id == NULL || size < 1 || rank < 0 || rank >= size)
        return fail(RING_ERR_ARGUMENT, "ring_comm_init: rank %d of %d; want 0 <= rank < size, and "
                    "comm and id not NULL", rank, size);
    *comm = NULL;
    RING_TRY(read_settings(&s, &mask));
    RING_TRY(control_join(&s, id, size, rank, mask, &world));
    return comm_new(world, started, comm);
}

ring_status ring_comm_init_env(ring_comm **comm)
{
    const double started = clock_now();
    control_world *world;
    settings s;
    uint32_t mask;
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_init_env: comm is NULL");
    *comm = NULL;
    RING_TRY(read_settings(&s, &mask));
    RING_TRY(control_join_env(&s, mask, &world));
    return comm_new(world, started, comm);
}

/* ---- Death ---------------------------------------------------------------------- */

/* Peers may still read and write this rank's buffers for works that it will not wait for. */
static void abort_unfinished(ring_comm *comm)
{
    char text[160];
    bool unfinished = false;
    for (int lane = 0; lane < TRANSPORT_LANES; lane++)
        unfinished |= comm->queue[lane].first != NULL;
    if (!unfinished || control_verdict(comm->world) != RING_OK)
        return;
    text_format(text, sizeof text, "rank %d (%s) destroyed the communicator with unfinished calls",
                comm->rank, comm->world->cards[comm->rank].hostname);
    control_report(comm->world, RING_ERR_ABORTED, text);
}

void ring_comm_destroy(ring_comm *comm)
{
    if (comm == NULL || comm_check_own(comm, "comm_destroy") != RING_OK)
        return;
    progress_stop(comm);
    abort_unfinished(comm);
    control_leave(comm->world);
    links_close(comm);
    work_free_all(comm);
    tuner_free(comm->tuner);
    plans_free(comm->plans);
    sleeper_free(comm);
    free(comm->peers);
    pthread_mutex_destroy(&comm->lock);
    control_free(comm->world);
    free(comm);
}

ring_status ring_comm_abort(ring_comm *comm, const char *reason)
{
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_abort: comm is NULL");
    RING_TRY(comm_check_own(comm, "comm_abort"));
    fail(RING_ERR_ABORTED, "aborted by rank %d (%s): %s", comm->rank,
         comm->world->cards[comm->rank].hostname, reason != NULL ? reason : "no reason given");
    control_report(comm->world, RING_ERR_ABORTED, fail_text());
    pthread_mutex_lock(&comm->lock);
    comm_verdict(comm);
    pthread_mutex_unlock(&comm->lock);
    sleeper_wake(comm);
    return RING_OK;
}

/* ---- Questions ------------------------------------------------------------------- */

ring_status ring_comm_status(const ring_comm *comm)
{
    if (comm == NULL)
        return RING_ERR_ARGUMENT;
    const int broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    return broken != RING_OK ? (ring_status)broken : control_verdict(comm->world);
}

int ring_comm_rank(const ring_comm *comm)
{
    return comm != NULL ? comm->rank : -1;
}

int ring_comm_size(const ring_comm *comm)
{
    return comm != NULL ? comm->ranks : -1;
}

const char *ring_last_error(const ring_comm *comm)
{
    if (comm == NULL)
        return fail_text();
    if (atomic_load_explicit(&comm->broken, memory_order_acquire) != RING_OK)
        return comm->error;
    return control_text(comm->world);
}

static uint64_t memory_of(const ring_comm *comm)
{
    const size_t a_rank = sizeof(comm_peer) + sizeof(control_card);
    uint64_t bytes = sizeof *comm + (size_t)comm->ranks * a_rank;
    for (int p = 0; p < comm->ranks; p++)
        for (int lane = 0; lane < TRANSPORT_LANES; lane++)
            if (comm->peers[p].lanes[lane] != NULL)
                bytes += comm->peers[p].lanes[lane]->transport->memory(comm->peers[p].lanes[lane]);
    return bytes;
}

static ring_comm_info info_of(ring_comm *comm)
{
    ring_comm_info info = {
        .rank = comm->rank, .ranks = comm->ranks, .local_rank = comm->local_rank,
        .local_ranks = comm->local_ranks, .hosts = comm->hosts,
        .bytes_sent = comm->bytes_sent, .bytes_received = comm->bytes_received,
        .messages_sent = comm->messages_sent, .memory = memory_of(comm),
        .init_seconds = comm->init_seconds,
    };
    text_format(info.transport, sizeof info.transport, "%s", comm->transport);
    text_format(info.launcher, sizeof info.launcher, "%s", comm->world->launcher);
    if (comm->algorithm == NULL)
        return info;
    text_format(info.algorithm, sizeof info.algorithm, "%s", comm->algorithm);
    info.predicted_us = 1e6 * tuner_predict(comm->tuner, &comm->latest);
    return info;
}

ring_status ring_comm_get_info(const ring_comm *comm, ring_comm_info *info)
{
    if (comm == NULL || info == NULL || info->size == 0)
        return fail(RING_ERR_ARGUMENT, "ring_comm_get_info: want comm, info and info->size");
    RING_TRY(comm_check_own(comm, "comm_get_info"));
    ring_comm *changing = (ring_comm *)(uintptr_t)comm; /* only its lock and caches change */
    const size_t size = min_size(info->size, sizeof *info);
    pthread_mutex_lock(&changing->lock);
    ring_comm_info all = info_of(changing);
    pthread_mutex_unlock(&changing->lock);
    all.size = size;
    memcpy(info, &all, size);
    return RING_OK;
}
