/* SPDX-License-Identifier: Apache-2.0
 * A communicator's birth, questions and death. */
#include "comm.h"

#include "kernels.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ring_status comm_check_own(const ring_comm *comm, const char *call)
{
    if (comm->generation == fork_generation())
        return RING_OK;
    return fail(RING_ERR_USAGE, "ring_%s: the communicator is that of the parent process; a forked "
                "child must make one of its own", call);
}

/* ---- Birth ---------------------------------------------------------------------- */

/* Hosts are numbered by their first ranks. */
static ring_status number_hosts(ring_comm *comm)
{
    const control_card *cards = comm->world->cards;
    int32_t *host_of = malloc((size_t)comm->ranks * sizeof *host_of);
    if (host_of == NULL)
        return fail(RING_ERR_MEMORY, "creating the communicator");
    comm->plan_world = (plan_world){.ranks = comm->ranks, .host_of = host_of};
    for (int p = 0; p < comm->ranks; p++) {
        int q = 0;
        while (memcmp(cards[p].host, cards[q].host, sizeof cards[p].host) != 0)
            q++;
        host_of[p] = q < p ? host_of[q] : comm->plan_world.hosts++;
    }
    comm->hosts = comm->plan_world.hosts;
    for (int p = 0; p < comm->ranks; p++) {
        const bool local = host_of[p] == host_of[comm->rank];
        comm->local_rank += local && p < comm->rank;
        comm->local_ranks += local;
    }
    comm->crowded = comm->local_ranks > sysconf(_SC_NPROCESSORS_ONLN);
    return RING_OK;
}

static ring_status make_channels(ring_comm *comm)
{
    const size_t ranks = (size_t)comm->ranks, count = TRANSPORT_LANES * ranks;
    comm->channels = calloc(count, sizeof *comm->channels);
    comm->active = calloc(count, sizeof(channel *));
    comm->pair_calls = calloc(2 * ranks, sizeof *comm->pair_calls);
    comm->history = calloc(HISTORY_CALLS, sizeof *comm->history);
    if (comm->channels == NULL || comm->active == NULL || comm->pair_calls == NULL ||
        comm->history == NULL)
        return fail(RING_ERR_MEMORY, "creating the communicator of %d ranks", comm->ranks);
    RING_TRY(channels_keep_posts(comm, SPARE_POSTS));
    for (size_t i = 0; i < count; i++)
        comm->channels[i] = (channel){.comm = comm, .rank = (int32_t)(i % ranks), .place = -1};
    return RING_OK;
}

static ring_status start_parts(ring_comm *comm)
{
    RING_TRY(number_hosts(comm));
    RING_TRY(make_channels(comm));
    RING_TRY(sleeper_new(comm));
    RING_TRY(plans_new(&comm->plans));
    RING_TRY(programs_new(&comm->programs));
    comm->maps_all = links_all_map(comm, false);
    RING_TRY(links_open(comm));
    RING_TRY(tuner_new(comm, &comm->tuner));
    refusals_listen(comm);
    control_start(comm->world, sleeper_wake, comm);
    members_add(comm);
    return RING_OK;
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
    comm->end = &comm->first;
    comm->held_end = &comm->held;
    comm->done_end = &comm->done;
    pthread_mutex_init(&comm->lock, NULL);
    log_set_rank(comm->rank, comm->ranks);
    const ring_status status = start_parts(comm);
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

static ring_status read_settings(const ring_config *config, settings *s, uint32_t *mask)
{
    ring_config given = RING_CONFIG_INIT;
    if (config != NULL && config->size == 0)
        return fail(RING_ERR_ARGUMENT, "ring_comm_init_config: ring_config.size is 0; start from "
                    "RING_CONFIG_INIT");
    if (config != NULL)
        memcpy(&given, config, min_size(config->size, sizeof given));
    RING_TRY(settings_read(s));
    RING_TRY(settings_override(s, given.settings));
    const char *simd = getenv("RING_SIMD");
    if (simd != NULL && !kernels_select(simd))
        return fail(RING_ERR_CONFIG, "RING_SIMD=%s: want auto, avx512, avx2 or c, and one that "
                    "this CPU has", simd);
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
    return ring_comm_init_config(comm, size, id, rank, NULL);
}

ring_status ring_comm_init_config(ring_comm **comm, int size, const ring_unique_id *id, int rank,
                                  const ring_config *config)
{
    const double started = clock_now();
    control_world *world;
    settings s;
    uint32_t mask;
    if (comm == NULL || id == NULL || size < 1 || rank < 0 || rank >= size)
        return fail(RING_ERR_ARGUMENT, "ring_comm_init: rank %d of %d; want 0 <= rank < size, and "
                    "comm and id not NULL", rank, size);
    *comm = NULL;
    RING_TRY(read_settings(config, &s, &mask));
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
    RING_TRY(read_settings(NULL, &s, &mask));
    RING_TRY(control_join_env(&s, mask, &world));
    return comm_new(world, started, comm);
}

/* ---- Death ---------------------------------------------------------------------- */

/* Peers may still read and write this rank's buffers for works that it will not wait for. */
static void abort_unfinished(ring_comm *comm)
{
    char text[160];
    if (comm->first == NULL)
        return;
    text_format(text, sizeof text, "rank %d (%s) destroyed the communicator with unfinished calls",
                comm->rank, comm_host(comm, comm->rank));
    if (control_verdict(comm->world) == RING_OK)
        control_report(comm->world, RING_ERR_ABORTED, text);
    pthread_mutex_lock(&comm->lock);
    engine_end_all(comm, RING_ERR_ABORTED);
    comm_unlock(comm);
}

/* Small messages are sent without waiting for their receivers, so that ranks disagreed about a call
 * may show only now. */
static void look_for_left_over(ring_comm *comm)
{
    for (int p = 0; comm->channels != NULL && p < comm->ranks; p++) {
        channel *c = comm_channel(comm, TRANSPORT_COLLECTIVE, p);
        if (c->link != NULL && control_verdict(comm->world) == RING_OK &&
            channel_check_left_over(c) != RING_OK) {
            log_error("%s", fail_text());
            return;
        }
    }
}

void ring_comm_destroy(ring_comm *comm)
{
    if (comm == NULL || comm_check_own(comm, "comm_destroy") != RING_OK)
        return;
    members_remove(comm);
    refusals_stop(comm);
    abort_unfinished(comm);
    look_for_left_over(comm);
    control_leave(comm->world);
    links_close(comm);
    programs_free(comm->programs);
    works_free(comm);
    scratch_free(comm);
    tuner_free(comm->tuner);
    plans_free(comm->plans);
    sleeper_free(comm);
    free(comm->channels);
    free(comm->active);
    free(comm->pair_calls);
    free(comm->history);
    free((void *)(uintptr_t)comm->plan_world.host_of);
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
         comm_host(comm, comm->rank), reason != NULL ? reason : "no reason given");
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
    const size_t channels = TRANSPORT_LANES * (size_t)comm->ranks;
    uint64_t bytes = sizeof *comm + channels * (sizeof(channel) + sizeof(channel *)) +
                     (size_t)comm->ranks * sizeof(control_card) + HISTORY_CALLS * sizeof(uint64_t);
    for (size_t i = 0; i < channels; i++)
        if (comm->channels[i].link != NULL)
            bytes += comm->channels[i].link->transport->memory(comm->channels[i].link);
    for (const scratch *s = comm->scratches; s != NULL; s = s->next)
        bytes += s->bytes;
    return bytes;
}

static ring_comm_info info_of(ring_comm *comm)
{
    ring_comm_info info = {
        .rank = comm->rank, .ranks = comm->ranks, .local_rank = comm->local_rank,
        .local_ranks = comm->local_ranks, .hosts = comm->hosts,
        .bytes_sent = comm->bytes_sent, .bytes_received = comm->bytes_received,
        .messages_sent = comm->messages_sent, .memory = memory_of(comm),
        .init_seconds = comm->init_seconds, .lowered = programs_lowered(comm->programs),
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
