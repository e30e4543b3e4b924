/* SPDX-License-Identifier: Apache-2.0
 * Creates communicators. The world of a communicator is either joined through the rendezvous, or
 * derived by control from the world of another communicator. */
#include "init.h"

#include "accelerators.h"
#include "call_reports.h"
#include "channel_out.h"
#include "cpus.h"
#include "crowding.h"
#include "device_calls.h"
#include "device_seats.h"
#include "kernels.h"
#include "links.h"
#include "members.h"
#include "program_cache.h"
#include "self_pair.h"
#include "sleep.h"
#include "tagged_traffic.h"
#include "tuner.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parts ---------------------------------------------------------------------- */

/* Numbers the hosts in the order of their lowest ranks, and counts the ranks of this host. */
static ring_status number_hosts(ring_comm *comm)
{
    const control_card *cards = comm->world->cards;
    int32_t *host_of = malloc((size_t)comm->ranks * sizeof *host_of);
    if (host_of == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
    comm->plan_world = (plan_world){.ranks = comm->ranks,
                                    .host_of = host_of,
                                    .rank_order = comm->settings.reproducible};
    for (int p = 0; p < comm->ranks; p++) {
        int q = 0;
        while (memcmp(cards[p].host, cards[q].host, sizeof cards[p].host) != 0)
            q++;
        host_of[p] = q < p ? host_of[q] : comm->plan_world.hosts++;
    }
    for (int p = 0; p < comm->ranks; p++) {
        const bool local = host_of[p] == host_of[comm->rank];
        comm->info.local_rank += local && p < comm->rank;
        comm->info.local_ranks += local;
    }
    comm->crowded |= crowding_found(cards, comm->ranks, comm->rank, cpus_quota(""));
    return RING_OK;
}

static ring_status start_parts(ring_comm *comm)
{
    comm->history.packed = calloc(HISTORY_CALLS, sizeof *comm->history.packed);
    if (comm->history.packed == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
    RING_TRY(channels_keep_posts(comm, SPARE_POSTS));
    RING_TRY(number_hosts(comm));
    RING_TRY(links_map(comm));
    RING_TRY(links_check(comm));
    RING_TRY(sleep_new(comm));
    RING_TRY(programs_new(&comm->programs));
    RING_TRY(tuner_new(comm, &comm->tuner));
    return opening_new(comm);
}

/* The control thread calls this when it has received a message, which may be a verdict. */
static void wake(void *context)
{
    device_calls_wake(context);
    sleep_wake(context);
}

/* Ranks of a derived communicator need no barrier here: control keeps data sockets that a peer
 * opens before this rank has created its part. */
static ring_status start(ring_comm *comm, bool derived)
{
    const ring_status status = start_parts(comm);
    RING_TRY(derived ? status : control_agree(comm->world, status));
    reports_listen(comm);
    control_start(comm->world, wake, comm);
    members_add(comm);
    return RING_OK;
}

/* ---- Making --------------------------------------------------------------------- */

ring_comm *comm_alloc(int rank, int ranks)
{
    ring_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
        return NULL;
    }
    comm->generation = fork_generation();
    comm->rank = rank;
    comm->ranks = ranks;
    comm->works.end = &comm->works.first;
    comm->works.held_end = &comm->works.held;
    self_pair_clear(comm);
    tagged_clear(comm);
    comm->works.done_end = &comm->works.done;
    pthread_mutex_init(&comm->lock, NULL);
    return comm;
}

/* @param world  owned by the communicator from now on. */
static ring_status begin(ring_comm *comm, control_world *world, bool derived, const accelerator *a,
                         double started)
{
    comm->world = world;
    comm->settings = world->settings;
    comm->sleep.by_thread = comm->ranks > 1 && comm->settings.progress != PROGRESS_NONE;
    RING_TRY(start(comm, derived));
    if (!derived)
        RING_TRY(device_calls_open(comm, a, NULL));
    comm->info.init_seconds = clock_now() - started;
    log_info("rank %d of %d on %d host%s over %s, %.1f ms", comm->rank, comm->ranks,
             comm->plan_world.hosts, plural(comm->plan_world.hosts), comm->links.names,
             1e3 * comm->info.init_seconds);
    return RING_OK;
}

ring_status comm_undo(ring_comm **comm, ring_status status)
{
    char text[CONTROL_TEXT];
    text_format(text, sizeof text, "%s", fail_text());
    ring_comm_destroy(*comm);
    *comm = NULL;
    return fail(status, "%s", text);
}

ring_status comm_report(ring_comm *comm, ring_status status)
{
    char text[CONTROL_TEXT];
    text_format(text, sizeof text, "%s", fail_text());
    if (control_verdict(comm->world) == RING_OK)
        control_report(comm->world, status, text);
    return fail(status, "%s", text);
}

ring_status comm_begin(ring_comm *comm, control_world *world, const ring_comm *parent,
                       const accelerator *a, double started)
{
    comm->rank = world->rank;
    comm->ranks = world->size;
    comm->crowded = parent != NULL && parent->crowded;
    comm->accelerator = parent != NULL ? parent->accelerator : a;
    const ring_status status = begin(comm, world, parent != NULL, a, started);
    return status == RING_OK ? RING_OK : comm_report(comm, status);
}

ring_status comm_new(control_world *world, const ring_comm *parent, const accelerator *a,
                     double started, ring_comm **out)
{
    ring_comm *comm = comm_alloc(world->rank, world->size);
    if (comm == NULL) {
        control_free(world);
        return RING_ERR_MEMORY;
    }
    const ring_status status = comm_begin(comm, world, parent, a, started);
    if (status != RING_OK)
        return comm_undo(&comm, status);
    *out = comm;
    return RING_OK;
}

ring_status comm_open_seat(const ring_comm *parent, ring_comm **comm)
{
    const ring_status status = device_calls_open(*comm, parent->accelerator, parent);
    return status == RING_OK ? RING_OK : comm_undo(comm, status);
}

ring_status comm_derive(ring_comm *parent, uint64_t id, const int *ranks, int count,
                        ring_comm **out)
{
    const double started = clock_now();
    control_world *world;
    RING_TRY(control_derive(parent->world, id, ranks, count, &world));
    return comm_new(world, parent, NULL, started, out);
}

/* ---- Nonblocking starts ------------------------------------------------------------- */

static ring_status join_and_begin(comm_start *s)
{
    log_set_rank(s->comm->rank, s->comm->ranks);
    const double started = clock_now();
    control_world *world;
    s->comm->accelerator = s->accelerator;
    RING_TRY(control_join(&s->settings, &s->id, s->comm->ranks, s->comm->rank, s->mask, &s->stop,
                          &world));
    return begin(s->comm, world, false, s->accelerator, started);
}

static void *run_start(void *context)
{
    comm_start *s = context;
    ring_comm *comm = s->comm;
    s->status = s->create(s);
    memset(&s->id, 0, sizeof s->id); /* it contains the job's key */
    /* If the communicator failed during its start, it has a text, which others may be reading. */
    if (s->status != RING_OK && atomic_load(&comm->failure.status) == RING_OK) {
        text_format(comm->failure.text, sizeof comm->failure.text, "%s", fail_text());
        atomic_store_explicit(&comm->failure.status, (int)s->status, memory_order_release);
    }
    pthread_mutex_lock(&s->lock);
    atomic_store_explicit(&comm->starting, false, memory_order_release);
    pthread_cond_broadcast(&s->over);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

ring_status comm_start_apart(comm_start *s)
{
    ring_comm *comm = s->comm;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->over, NULL);
    comm->start = s;
    atomic_store(&comm->starting, true);
    const int error = thread_start(&s->thread, run_start, s);
    if (error == 0)
        return RING_OK;
    comm->start = NULL;
    atomic_store(&comm->starting, false);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    return fail(RING_ERR_SYSTEM, "starting the thread that creates the communicator: %s",
                strerror(error));
}

/* ---- For callers --------------------------------------------------------------------- */

/* Fields that an older caller's struct lacks stay zero; fields of a later version are ignored. */
ring_status comm_read_config(const ring_config *given, const char *call, ring_config *config)
{
    *config = (ring_config)RING_CONFIG_INIT;
    if (given != NULL && given->size == 0)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_config.size is 0; start from RING_CONFIG_INIT", call);
    if (given != NULL)
        memcpy(config, given, min_size(given->size, sizeof *config));
    return RING_OK;
}

/* Finds the accelerator that this thread uses. A failure is only logged; calls then accept host
 * buffers only. @return the accelerator, or NULL. */
static const accelerator *find_accelerator(settings *s)
{
    const accelerator *a = NULL;
    ring_status status = accelerator_current(&a);
    if (status == RING_OK && a != NULL)
        status = accelerators_add(a);
    if (status != RING_OK)
        log_warn("cannot use this thread's GPU: %s", fail_text());
    if (status != RING_OK || a == NULL || a->programs == NULL)
        s->device_programs = false;
    return status == RING_OK ? a : NULL;
}

static ring_status read_settings(const ring_config *config, settings *s, uint32_t *mask)
{
    RING_TRY(settings_read(s));
    RING_TRY(settings_override(s, config->settings));
    const char *simd = getenv("RING_SIMD");
    if (simd != NULL && simd[0] != '\0' && !kernels_select(simd))
        return fail(RING_ERR_CONFIG,
                    "RING_SIMD=%s: must be auto, avx512, avx2 or c, and supported by this CPU",
                    simd);
    RING_TRY(links_mask(s, mask));
    if (s->channels == 0)
        s->channels = -links_rails(s, *mask);
    return RING_OK;
}

ring_status ring_get_unique_id_config(ring_unique_id *id, const ring_config *config)
{
    ring_config given;
    settings s;
    if (id == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_get_unique_id: id is NULL");
    RING_TRY(comm_read_config(config, "get_unique_id_config", &given));
    RING_TRY(settings_read(&s));
    RING_TRY(settings_override(&s, given.settings));
    return given.any_process ? control_make_served_id(&s, id) : control_make_id(&s, id);
}

ring_status ring_get_unique_id(ring_unique_id *id)
{
    return ring_get_unique_id_config(id, NULL);
}

ring_status ring_comm_init(ring_comm **comm, int size, const ring_unique_id *id, int rank)
{
    return ring_comm_init_config(comm, size, id, rank, NULL);
}

static ring_status init_apart(ring_comm **out, int size, const ring_unique_id *id, int rank,
                              const settings *s, uint32_t mask, const accelerator *a)
{
    comm_start *start = calloc(1, sizeof *start);
    ring_comm *comm = start != NULL ? comm_alloc(rank, size) : NULL;
    if (comm == NULL) {
        free(start);
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
    }
    start->create = join_and_begin;
    start->comm = comm;
    start->settings = *s;
    start->id = *id;
    start->mask = mask;
    start->accelerator = a;
    const ring_status status = comm_start_apart(start);
    if (status == RING_OK) {
        *out = comm;
        return RING_OK;
    }
    free(start);
    return comm_undo(&comm, status);
}

/* Logs an error of a start, because a program that ignores the error has no communicator from which
 * it could get the reason later. */
static ring_status log_failure(const ring_config *config, ring_status status)
{
    if (status == RING_OK || config->quiet)
        return status;
    log_set_rank(0, 0); /* ranks that fail for the same reason print the same line */
    log_error("%s", fail_text());
    return status;
}

static ring_status init_by_id(ring_comm **comm, int size, const ring_unique_id *id, int rank,
                              const ring_config *config)
{
    const double started = clock_now();
    control_world *world;
    settings s;
    uint32_t mask;
    if (comm == NULL || id == NULL || size < 1 || rank < 0 || rank >= size)
        return fail(
            RING_ERR_ARGUMENT,
            "ring_comm_init: rank %d of %d; 0 <= rank < size is required, and comm and id must not "
            "be NULL",
            rank, size);
    const ring_status able = read_settings(config, &s, &mask);
    if (able != RING_OK)
        return control_refuse(&s, id, size, rank, able);
    const accelerator *a = find_accelerator(&s);
    settings_note_unfit(&s, links_use_adapters(mask), a != NULL);
    if (config->nonblocking)
        return init_apart(comm, size, id, rank, &s, mask, a);
    RING_TRY(control_join(&s, id, size, rank, mask, NULL, &world));
    return comm_new(world, NULL, a, started, comm);
}

ring_status ring_comm_init_config(ring_comm **comm, int size, const ring_unique_id *id, int rank,
                                  const ring_config *config)
{
    ring_config given;
    if (comm != NULL)
        *comm = NULL;
    const ring_status status = comm_read_config(config, "comm_init_config", &given);
    return log_failure(&given,
                       status == RING_OK ? init_by_id(comm, size, id, rank, &given) : status);
}

static ring_status init_by_env(ring_comm **comm, const ring_config *config)
{
    const double started = clock_now();
    control_world *world;
    settings s;
    uint32_t mask;
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_comm_init_env: comm is NULL");
    *comm = NULL;
    const ring_status able = read_settings(config, &s, &mask);
    if (able != RING_OK)
        return control_refuse(&s, NULL, 0, 0, able);
    const accelerator *a = find_accelerator(&s);
    settings_note_unfit(&s, links_use_adapters(mask), a != NULL);
    RING_TRY(control_join_env(&s, mask, &world));
    return comm_new(world, NULL, a, started, comm);
}

ring_status ring_comm_init_env(ring_comm **comm)
{
    static const ring_config none = RING_CONFIG_INIT;
    return log_failure(&none, init_by_env(comm, &none));
}
