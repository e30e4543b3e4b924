/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining: by a unique id, or by what the launcher left in the environment. One rank alone
 * opens no socket and needs no thread.
 */
#include "control.h"

#include "gathering.h"
#include "id_listener.h"
#include "own_address.h"
#include "verdict.h"
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

static ring_status host_by_id(membership *m, const credential *c, int bound)
{
    if (m->world.size == 1) {
        fd_close(&bound);
        return RING_OK;
    }
    if (bound < 0)
        return fail(RING_ERR_USAGE,
                    "rank 0 must be in the process that made the unique id, within "
                    "RING_INIT_TIMEOUT (%g s), and an id serves one communicator",
                    m->world.settings.init_timeout);
    return gathering_run(m, c, bound);
}

/* @return the socket that the id leads to, at rank 0. */
static int take_listener(const membership *m, const ring_unique_id *id)
{
    int bound = -1;
    control_lock();
    (void)id_listener_expire(clock_now());
    if (m->world.rank == 0)
        bound = id_listener_take(id);
    else
        id_listener_forget_copy(id);
    control_unlock();
    return bound;
}

static ring_status join_by_id(membership *m, const ring_unique_id *id)
{
    credential c;
    RING_TRY(credential_from_id(id, &c));
    const int bound = take_listener(m, id);
    const ring_status status = m->world.rank == 0 ? host_by_id(m, &c, bound)
                                                  : visiting_run(m, &c, NULL);
    sodium_memzero(&c, sizeof c);
    return status;
}

static ring_status finish(membership *m, ring_status status, control_world **out)
{
    char text[CONTROL_TEXT];
    if (status == RING_OK) {
        *out = &m->world;
        return RING_OK;
    }
    text_format(text, sizeof text, "%s", fail_text());
    control_free(&m->world);
    return fail(status, "%s", text);
}

ring_status control_join(const settings *s, const ring_unique_id *id, int size, int rank,
                         uint32_t transports, control_world **out)
{
    membership *m;
    *out = NULL;
    if (size < 1 || rank < 0 || rank >= size)
        return fail(RING_ERR_ARGUMENT, "rank %d of %d: want 0 <= rank < size", rank, size);
    RING_TRY(prepare(s));
    RING_TRY(membership_new(s, size, rank, transports, "unique id", &m));
    return finish(m, join_by_id(m, id), out);
}

/* ---- By the environment: MASTER_ADDR is known -------------------------------------- */

static ring_status join_with(membership *m, const launch_info *launch, credential *c)
{
    int fd;
    const settings *s = &m->world.settings;
    RING_TRY(credential_from_launch(launch, s, m->world.deadline, c));
    if (m->world.rank > 0)
        return visiting_run(m, c, NULL);
    RING_TRY(credential_listen(c, launch, s, m->world.deadline, &fd));
    return gathering_run(m, c, fd);
}

static ring_status join_at_address(membership *m, const launch_info *launch)
{
    credential c;
    const ring_status status = join_with(m, launch, &c);
    sodium_memzero(&c, sizeof c);
    return status;
}

/* ---- By the environment: rank 0 makes an id and passes it on ----------------------- */

static ring_status host_exchange(membership *m, const launch_info *launch, id_exchange *x)
{
    ring_unique_id id;
    net_address at;
    credential c;
    int fd;
    const net_address otherwise = launch_on_one_host(launch) ? address_loopback(0)
                                                             : address_of_host();
    RING_TRY(bind_new(&m->world.settings, otherwise, &at, &fd));
    credential_make_id(&at, &id);
    ring_status status = credential_from_id(&id, &c);
    if (status == RING_OK)
        status = id_exchange_publish(x, &id);
    if (status == RING_OK)
        status = gathering_run(m, &c, fd);
    else
        fd_close(&fd);
    sodium_memzero(&c, sizeof c);
    sodium_memzero(&id, sizeof id);
    return status;
}

static ring_status visit_exchange(membership *m, id_exchange *x)
{
    ring_unique_id id;
    credential c;
    ring_status status = id_exchange_wait(x, m->world.deadline, &id);
    if (status == RING_ERR_TIMEOUT)
        return fail(status,
                    "rank %d did not learn within %g s (RING_INIT_TIMEOUT) where rank 0 is: %s",
                    m->world.rank, m->world.settings.init_timeout, fail_text());
    if (status == RING_OK)
        status = credential_from_id(&id, &c);
    if (status == RING_OK)
        status = visiting_run(m, &c, x);
    sodium_memzero(&c, sizeof c);
    sodium_memzero(&id, sizeof id);
    return status;
}

static ring_status join_by_exchange(membership *m, const launch_info *launch)
{
    id_exchange *x;
    RING_TRY(id_exchange_open(launch, &m->world.settings, m->world.deadline, &x));
    const ring_status status = m->world.rank == 0 ? host_exchange(m, launch, x)
                                                  : visit_exchange(m, x);
    id_exchange_close(x);
    return status;
}

static ring_status join_launched(membership *m, const launch_info *launch)
{
    if (m->world.size == 1)
        return RING_OK;
    return launch->address[0] != '\0' ? join_at_address(m, launch) : join_by_exchange(m, launch);
}

ring_status control_join_env(const settings *s, uint32_t transports, control_world **out)
{
    launch_info launch;
    membership *m;
    *out = NULL;
    RING_TRY(prepare(s));
    RING_TRY(launch_detect(&launch));
    RING_TRY(membership_new(s, launch.size, launch.rank, transports, launch.launcher, &m));
    return finish(m, join_launched(m, &launch), out);
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
