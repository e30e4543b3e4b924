/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements joining, by a unique id or by the launcher's environment variables, and reports a
 * failure of this rank to the other ranks. A communicator of one rank needs no socket and no
 * thread.
 */
#include "control.h"

#include "dispatch.h"
#include "gathering.h"
#include "id_listener.h"
#include "id_maker.h"
#include "joining.h"
#include "last_word.h"
#include "membership.h"
#include "numbers.h"
#include "own_address.h"
#include "verdict.h"

#include <sodium.h>

static ring_status prepare(const settings *s)
{
    log_set_level(s->debug);
    return sodium_init() >= 0
               ? RING_OK
               : fail(RING_ERR_SYSTEM, "libsodium failed to start: no source of random numbers");
}

/* ---- Ids --------------------------------------------------------------------------- */

/* Binds a socket to a free port of the address that the user has chosen, else of @p otherwise. */
static ring_status bind_new(const settings *s, net_address otherwise, net_address *at, int *fd)
{
    char text[ADDRESS_TEXT_MAX];
    RING_TRY(address_chosen(s, at));
    if (at->length == 0)
        *at = otherwise;
    const ring_status status = address_bind(at, fd);
    return status != RING_IN_PROGRESS
               ? status
               : fail(RING_ERR_SYSTEM, "no port is free at %s", address_text(at, text));
}

static ring_status make_id(const settings *s, bool served, ring_unique_id *id, int *fd)
{
    net_address at;
    RING_TRY(prepare(s));
    RING_TRY(bind_new(s, address_of_host(), &at, fd));
    credential_make_id(&at, served, id);
    return RING_OK;
}

ring_status control_make_served_id(const settings *s, ring_unique_id *id)
{
    int fd;
    RING_TRY(make_id(s, true, id, &fd));
    return id_maker_serve(id, fd_guard(fd), s->init_timeout);
}

ring_status control_make_id(const settings *s, ring_unique_id *id)
{
    int fd;
    RING_TRY(make_id(s, false, id, &fd));
    control_lock();
    (void)id_listener_expire(clock_now());
    const ring_status status = id_listener_add(id, fd, s->init_timeout);
    control_unlock();
    return status;
}

/* ---- Joining ----------------------------------------------------------------------- */

/** The parameters and state of a rank that joins. */
typedef struct joiner {
    const settings *settings;
    launch_info launch;
    uint32_t transports;
    control_stop *stop; /* or NULL */
    ring_status failed; /* this rank's failure before joining, for control_refuse(); or RING_OK */
    char why[CONTROL_TEXT]; /* the text of that failure */
    double deadline;        /* of the start */
    credential credential;  /* the key, and the addresses of rank 0 */
    int listener; /* at rank 0: the socket that is bound to an address of the credential, until
                     the membership owns it; otherwise -1 */
} joiner;

#define REFUSING_SECONDS 1.0 /* the time in which a failed rank finds the other ranks */

/* Joins: gathers the cards at rank 0, or sends the card to rank 0.
 * @param x  the exchange that the credential is from; NULL if the credential cannot change. */
static ring_status start(joiner *j, membership *m, id_exchange *x)
{
    char limit[NUMBER_LIMIT_MAX];
    m->world.deadline = j->deadline;
    if (m->world.size == 1)
        return RING_OK;
    if (m->world.rank > 0)
        return joining_run(m, &j->credential, x);
    if (j->listener < 0)
        return fail(RING_ERR_USAGE,
                    "rank 0 must join in the process that made the unique id, within "
                    "RING_INIT_TIMEOUT (%s), and an id can be used for one communicator only",
                    number_limit_text(m->world.settings.init_timeout, limit));
    return gathering_run(m, &j->credential, &j->listener);
}

/* Proposes the verdict of an aborted start. The caller holds the lock. */
static void propose_stop(const control_stop *stop)
{
    char text[CONTROL_TEXT];
    const control_world *world = stop->world;
    if (world == NULL || stop->reason[0] == '\0')
        return;
    text_format(text, sizeof text, "aborted by rank %d (%s): %s", world->rank,
                world->cards[world->rank].hostname, stop->reason);
    verdict_propose(group_of(stop->world), RING_ERR_ABORTED, text);
}

/* Sets the world that control_stop_start() aborts. */
static void set_stop(joiner *j, control_world *world)
{
    if (j->stop == NULL)
        return;
    control_lock();
    j->stop->world = world;
    propose_stop(j->stop);
    control_unlock();
}

void control_stop_start(control_stop *stop, const char *reason)
{
    control_lock();
    if (stop->reason[0] == '\0') {
        text_format(stop->reason, sizeof stop->reason, "%s", reason);
        propose_stop(stop);
    }
    control_unlock();
}

/* Reports the failure to the other ranks, unless they have been notified: the membership has
 * announced it, or a handshake has failed with RING_ERR_CONFIG, whose reason both ranks get. An
 * aborted start ends without searching for other ranks. Frees the membership before the report,
 * since the reason may be a lack of memory or descriptors. */
static ring_status report_failure(joiner *j, membership *m, ring_status status)
{
    char text[CONTROL_TEXT];
    const bool must_report = j->launch.rank == 0
                                 ? j->listener >= 0 && j->launch.size > 1
                                 : m == NULL || (!m->start.at_rank_0 &&
                                                 control_verdict(&m->world) != RING_ERR_CONFIG);
    text_format(text, sizeof text, "%s", fail_text());
    set_stop(j, NULL);
    const last_word word = {j->launch.rank, j->launch.size, status, text, j->deadline};
    control_free(m != NULL ? &m->world : NULL);
    if (must_report && status != RING_ERR_ABORTED && word.rank == 0)
        last_word_to_joiners(&j->credential, &word, j->listener);
    else if (must_report && status != RING_ERR_ABORTED)
        last_word_to_rank_0(&j->credential, &word);
    return fail(status, "%s", text);
}

/* Creates the membership and joins. A failure is reported to the other ranks. */
static ring_status join_membership(joiner *j, id_exchange *x, control_world **out)
{
    membership *m = NULL;
    ring_status status = j->failed != RING_OK ? fail(j->failed, "%s", j->why)
                                              : membership_new(j->settings, &j->launch,
                                                               j->transports, &dispatch_table, &m);
    if (status == RING_OK) {
        set_stop(j, &m->world);
        status = start(j, m, x);
    }
    if (status != RING_OK)
        return report_failure(j, m, status);
    *out = &m->world;
    return RING_OK;
}

/* ---- By an id ---------------------------------------------------------------------- */

/* @return at rank 0 the socket that control_make_id() has bound for the id; -1 if this process does
 * not have it, and at the other ranks. */
static int take_listener(int rank, const ring_unique_id *id)
{
    int bound = -1;
    control_lock();
    (void)id_listener_expire(clock_now());
    if (rank == 0)
        bound = id_listener_take(id);
    else
        id_listener_forget_copy(id);
    control_unlock();
    return bound;
}

/* At rank 0: takes over the listener of an id that this process serves, or opens another one. If
 * the user's choice of its address has failed, it still opens one, to tell the other ranks. */
static ring_status listen_apart(joiner *j, const ring_unique_id *id)
{
    credential *c = &j->credential;
    net_address own;
    j->listener = id_maker_take(id);
    if (j->listener >= 0) {
        c->maker.length = 0;
        return RING_OK;
    }
    if (j->launch.size == 1) { /* the maker then ends the id, since no other rank uses it */
        last_word_to_joiners(c, &(last_word){.size = 1}, -1);
        return RING_OK;
    }
    /* If this fails, the other ranks notice it only at their own deadlines. */
    RING_TRY(address_towards(&c->maker, &own));
    const ring_status status = bind_new(j->settings, own, &c->at[0], &j->listener);
    if (status == RING_OK)
        return RING_OK;
    if (j->failed == RING_OK) {
        text_format(j->why, sizeof j->why, "%s", fail_text());
        j->failed = status;
    }
    c->at[0] = own;
    (void)address_bind(&c->at[0], &j->listener);
    return RING_OK;
}

static ring_status join_by_id(joiner *j, const ring_unique_id *id, control_world **out)
{
    const int rank = j->launch.rank, size = j->launch.size;
    if (size < 1 || rank < 0 || rank >= size)
        return fail(RING_ERR_ARGUMENT, "rank %d of %d: want 0 <= rank < size", rank, size);
    RING_TRY(credential_from_id(id, &j->credential));
    j->listener = take_listener(rank, id);
    if (rank == 0 && j->credential.maker.length > 0)
        RING_TRY(listen_apart(j, id));
    return join_membership(j, NULL, out);
}

/* ---- By the environment ------------------------------------------------------------ */

/* At rank 0: binds the listener, makes an id and publishes it. */
static ring_status publish_id(joiner *j, id_exchange *x, ring_unique_id *id)
{
    net_address at;
    const net_address otherwise = launch_on_one_host(&j->launch) ? address_loopback(0)
                                                                 : address_of_host();
    RING_TRY(bind_new(j->settings, otherwise, &at, &j->listener));
    credential_make_id(&at, false, id);
    return id_exchange_publish(x, id);
}

static ring_status join_by_exchange(joiner *j, control_world **out)
{
    char limit[NUMBER_LIMIT_MAX];
    id_exchange *x;
    ring_unique_id id;
    RING_TRY(id_exchange_open(&j->launch, j->settings, j->deadline, &x));
    ring_status status;
    if (j->launch.rank == 0) {
        status = publish_id(j, x, &id);
        if (status != RING_OK)
            status = id_exchange_refuse(x, status);
    } else {
        status = id_exchange_wait(x, j->deadline, &id);
        if (status == RING_ERR_TIMEOUT)
            fail(status, "rank %d did not get rank 0's address in time (RING_INIT_TIMEOUT=%s): %s",
                 j->launch.rank, number_limit_text(j->settings->init_timeout, limit), fail_text());
    }
    if (status == RING_OK)
        status = credential_from_id(&id, &j->credential);
    if (status == RING_OK)
        status = join_membership(j, x, out);
    id_exchange_close(x);
    sodium_memzero(&id, sizeof id);
    return status;
}

static ring_status join_by_env(joiner *j, control_world **out)
{
    RING_TRY(launch_detect(&j->launch));
    if (j->launch.size == 1)
        return join_membership(j, NULL, out);
    if (j->launch.address[0] == '\0')
        return join_by_exchange(j, out);
    RING_TRY(credential_from_launch(&j->launch, j->settings, j->deadline, &j->credential));
    if (j->launch.rank == 0)
        RING_TRY(
            credential_listen(&j->credential, &j->launch, j->settings, j->deadline, &j->listener));
    return join_membership(j, NULL, out);
}

/* ---- For callers ------------------------------------------------------------------- */

/* Joins by a unique id, or by the environment if @p id is NULL. */
static ring_status join(joiner *j, const ring_unique_id *id, control_world **out)
{
    *out = NULL;
    j->listener = -1;
    j->deadline = clock_now() +
                  (j->failed == RING_OK ? j->settings->init_timeout : REFUSING_SECONDS);
    RING_TRY(prepare(j->settings));
    const ring_status status = id != NULL ? join_by_id(j, id, out) : join_by_env(j, out);
    fd_close(&j->listener);
    sodium_memzero(&j->credential, sizeof j->credential);
    return status;
}

ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_stop *stop, control_world **out)
{
    joiner j = {.settings = s,
                .launch = {.size = size, .rank = rank, .launcher = "unique id"},
                .transports = transports,
                .stop = stop};
    return join(&j, id, out);
}

ring_status control_join_env(const settings *s, uint32_t transports, control_world **out)
{
    joiner j = {.settings = s, .transports = transports};
    return join(&j, NULL, out);
}

ring_status control_refuse(const settings *s, const ring_unique_id *id, int size, int rank,
                           ring_status status)
{
    control_world *none;
    joiner j = {.settings = s, .launch = {.size = size, .rank = rank}, .failed = status};
    text_format(j.why, sizeof j.why, "%s", fail_text());
    (void)join(&j, id, &none);
    return fail(status, "%s", j.why);
}

/* ---- After the start --------------------------------------------------------------- */

void control_start(control_world *world, void (*wake)(void *), void *context)
{
    group *g = group_of(world);
    membership *m = g->member;
    control_lock();
    g->wake = wake;
    g->wake_context = context;
    if (g == &m->all) {
        m->started = true;
        m->state = STATE_RUNNING;
        sodium_memzero(m->job->key, sizeof m->job->key); /* no rank can join any more */
        if (m->served)
            membership_due(m, 0); /* neighbours may have left before the start has ended */
    }
    if (group_is_decided(g))
        wake(context);
    control_unlock();
}

control_counts control_count(const control_world *world)
{
    const membership *m = group_at(world)->member;
    control_lock();
    control_counts counts = {.messages = m->sent.messages,
                             .bytes = m->sent.bytes,
                             .beats = m->sent.beats};
    for (const connection *c = m->connections; c != NULL; c = c->next)
        counts.connections += connection_is_open(c);
    control_unlock();
    return counts;
}
