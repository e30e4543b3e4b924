/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining: by a unique id, or by what the launcher left in the environment. One rank alone
 * opens no socket and needs no thread.
 */
#include "control.h"

#include "gathering.h"
#include "id_listener.h"
#include "last_word.h"
#include "own_address.h"
#include "visiting.h"

#include <sodium.h>

static ring_status prepare(const settings *s)
{
    log_set_level(s->debug);
    return sodium_init() >= 0 ? RING_OK
                              : fail(RING_ERR_SYSTEM, "libsodium cannot start: no random numbers");
}

/* ---- Ids --------------------------------------------------------------------------- */

/* At the chosen address, or at @p otherwise. */
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

ring_status control_make_id(ring_unique_id *id)
{
    settings s;
    net_address at;
    int fd;
    RING_TRY(settings_read(&s));
    RING_TRY(prepare(&s));
    RING_TRY(bind_new(&s, address_of_host(), &at, &fd));
    credential_make_id(&at, id);
    control_lock();
    (void)id_listener_expire(clock_now());
    const ring_status status = id_listener_add(id, fd, s.init_timeout);
    control_unlock();
    return status;
}

/* ---- Taking part ------------------------------------------------------------------- */

/** A rank on its way in. */
typedef struct joiner {
    const settings *settings;
    const char *launcher;
    int rank, size;
    uint32_t transports;
    double deadline;
    ring_status failed; /* before it came here, else RING_OK */
    const char *why;    /* it failed */
} joiner;

#define REFUSING_SECONDS 1.0 /* to find out whom to tell */

static joiner joiner_of(const settings *s, ring_status failed, const char *why)
{
    const double seconds = failed == RING_OK ? s->init_timeout : REFUSING_SECONDS;
    return (joiner){.settings = s, .deadline = clock_now() + seconds, .failed = failed, .why = why};
}

/* @param listener  rank 0's; -1 once the channel has it. @param x  NULL: none. */
static ring_status start(membership *m, credential *c, int *listener, id_exchange *x)
{
    if (m->world.size == 1)
        return RING_OK;
    if (m->world.rank > 0)
        return visiting_run(m, c, x);
    if (*listener < 0)
        return fail(RING_ERR_USAGE,
                    "rank 0 must be in the process that made the unique id, within "
                    "RING_INIT_TIMEOUT (%g s), and an id serves one communicator",
                    m->world.settings.init_timeout);
    return gathering_run(m, c, listener);
}

/* Another version, say, was named on both sides by the handshake. */
static bool is_unheard(const membership *m, const joiner *j, int listener)
{
    if (j->size == 1 || j->rank == 0)
        return listener >= 0 && j->size > 1;
    return m == NULL || (!m->at_rank_0 && control_verdict(&m->world) != RING_ERR_CONFIG);
}

/* Its membership goes first: what it holds may be what is short. */
static ring_status give_up(const joiner *j, membership *m, const credential *c, int listener,
                           ring_status status)
{
    char text[CONTROL_TEXT];
    const bool unheard = is_unheard(m, j, listener);
    text_format(text, sizeof text, "%s", fail_text());
    const last_word word = {j->rank, j->size, status, text, j->deadline};
    control_free(m != NULL ? &m->world : NULL);
    if (unheard && j->rank == 0)
        last_word_to_visitors(c, &word, listener);
    else if (unheard)
        last_word_to_rank_0(c, &word);
    return fail(status, "%s", text);
}

/* @param listener  rank 0: bound where @p c says; it is closed in the end. */
static ring_status take_part(const joiner *j, credential *c, int listener, id_exchange *x,
                             control_world **out)
{
    membership *m = NULL;
    ring_status status = j->failed;
    if (status != RING_OK)
        fail(status, "%s", j->why);
    else
        status = membership_new(j->settings, j->size, j->rank, j->transports, j->launcher, &m);
    if (status == RING_OK) {
        m->world.deadline = j->deadline;
        status = start(m, c, &listener, x);
    }
    if (status == RING_OK)
        *out = &m->world;
    else
        status = give_up(j, m, c, listener, status);
    fd_close(&listener);
    return status;
}

/* ---- By an id ---------------------------------------------------------------------- */

/* @return the socket that the id leads to, at rank 0. */
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

static ring_status join_by_id(joiner *j, const ring_unique_id *id, control_world **out)
{
    credential c;
    j->launcher = "unique id";
    if (j->size < 1 || j->rank < 0 || j->rank >= j->size)
        return fail(RING_ERR_ARGUMENT, "rank %d of %d: want 0 <= rank < size", j->rank, j->size);
    RING_TRY(credential_from_id(id, &c));
    const ring_status status = take_part(j, &c, take_listener(j->rank, id), NULL, out);
    sodium_memzero(&c, sizeof c);
    return status;
}

ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_world **out)
{
    joiner j = joiner_of(s, RING_OK, NULL);
    j.size = size;
    j.rank = rank;
    j.transports = transports;
    *out = NULL;
    RING_TRY(prepare(s));
    return join_by_id(&j, id, out);
}

/* ---- By the environment: MASTER_ADDR is known -------------------------------------- */

static ring_status join_with(const joiner *j, const launch_info *launch, credential *c,
                             control_world **out)
{
    int fd = -1;
    RING_TRY(credential_from_launch(launch, j->settings, j->deadline, c));
    if (j->rank == 0)
        RING_TRY(credential_listen(c, launch, j->settings, j->deadline, &fd));
    return take_part(j, c, fd, NULL, out);
}

static ring_status join_at_address(const joiner *j, const launch_info *launch, control_world **out)
{
    credential c;
    const ring_status status = join_with(j, launch, &c, out);
    sodium_memzero(&c, sizeof c);
    return status;
}

/* ---- By the environment: rank 0 makes an id and passes it on ----------------------- */

static ring_status make_place(const joiner *j, const launch_info *launch, id_exchange *x,
                              ring_unique_id *id, int *fd)
{
    net_address at;
    const net_address otherwise = launch_on_one_host(launch) ? address_loopback(0)
                                                             : address_of_host();
    RING_TRY(bind_new(j->settings, otherwise, &at, fd));
    credential_make_id(&at, id);
    const ring_status status = id_exchange_publish(x, id);
    if (status != RING_OK)
        fd_close(fd);
    return status;
}

static ring_status host_exchange(const joiner *j, const launch_info *launch, id_exchange *x,
                                 ring_unique_id *id, control_world **out)
{
    credential c;
    int fd;
    ring_status status = make_place(j, launch, x, id, &fd);
    if (status != RING_OK)
        return id_exchange_refuse(x, status);
    RING_TRY(credential_from_id(id, &c));
    status = take_part(j, &c, fd, NULL, out);
    sodium_memzero(&c, sizeof c);
    return status;
}

static ring_status visit_exchange(const joiner *j, id_exchange *x, ring_unique_id *id,
                                  control_world **out)
{
    credential c;
    ring_status status = id_exchange_wait(x, j->deadline, id);
    if (status == RING_ERR_TIMEOUT)
        return fail(status,
                    "rank %d did not learn within %g s (RING_INIT_TIMEOUT) where rank 0 is: %s",
                    j->rank, j->settings->init_timeout, fail_text());
    RING_TRY(status);
    RING_TRY(credential_from_id(id, &c));
    status = take_part(j, &c, -1, x, out);
    sodium_memzero(&c, sizeof c);
    return status;
}

static ring_status join_by_exchange(const joiner *j, const launch_info *launch, control_world **out)
{
    id_exchange *x;
    ring_unique_id id;
    RING_TRY(id_exchange_open(launch, j->settings, j->deadline, &x));
    const ring_status status = j->rank == 0 ? host_exchange(j, launch, x, &id, out)
                                            : visit_exchange(j, x, &id, out);
    id_exchange_close(x);
    sodium_memzero(&id, sizeof id);
    return status;
}

static ring_status join_by_env(joiner *j, control_world **out)
{
    launch_info launch;
    RING_TRY(launch_detect(&launch));
    j->launcher = launch.launcher;
    j->rank = launch.rank;
    j->size = launch.size;
    if (j->size == 1)
        return take_part(j, NULL, -1, NULL, out);
    return launch.address[0] != '\0' ? join_at_address(j, &launch, out)
                                     : join_by_exchange(j, &launch, out);
}

ring_status control_join_env(const settings *s, uint32_t transports, control_world **out)
{
    joiner j = joiner_of(s, RING_OK, NULL);
    j.transports = transports;
    *out = NULL;
    RING_TRY(prepare(s));
    return join_by_env(&j, out);
}

ring_status control_refuse(const settings *s, const ring_unique_id *id, int size, int rank,
                           ring_status status)
{
    char why[CONTROL_TEXT];
    control_world *none;
    text_format(why, sizeof why, "%s", fail_text());
    joiner j = joiner_of(s, status, why);
    j.size = size;
    j.rank = rank;
    if (prepare(s) == RING_OK)
        (void)(id != NULL ? join_by_id(&j, id, &none) : join_by_env(&j, &none));
    return fail(status, "%s", why);
}

/* ---- After the start --------------------------------------------------------------- */

control_counts control_count(const control_world *world)
{
    const membership *m = group_at(world)->member;
    control_lock();
    control_counts counts = {.messages = m->messages_sent, .bytes = m->bytes_sent};
    for (const connection *c = m->connections; c != NULL; c = c->next)
        counts.connections += connection_is_open(c);
    control_unlock();
    return counts;
}
