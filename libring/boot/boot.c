/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining: by a unique id, or by what the launcher left in the environment. One rank alone
 * opens no socket.
 */
#include "boot.h"
#include "meet.h"
#include "pending.h"
#include "world.h"

ring_status boot_make_id(ring_unique_id *id)
{
    settings s;
    boot_address at;
    int fd;
    RING_TRY(world_settings(&s));
    RING_TRY(world_listen(&s, address_of_host(), &at, &fd));
    pass_make_id(&at, id);
    return pending_add(id, fd);
}

static ring_status finish(boot_world *world, ring_status status, boot_world **out)
{
    if (status == RING_OK)
        *out = world;
    else
        boot_free(world);
    return status;
}

/* ---- By a unique id ------------------------------------------------------------------ */

static ring_status host_by_id(boot_world *world, const ring_unique_id *id, const pass *p)
{
    int listener = pending_take(id);
    if (world->size == 1) {
        fd_close(&listener);
        return RING_OK;
    }
    if (listener < 0)
        return fail(RING_ERR_USAGE, "rank 0 must be in the process that made the unique id, and an "
                    "id serves one communicator");
    return world_host(world, p, listener);
}

static ring_status join_by_id(boot_world *world, const ring_unique_id *id)
{
    pass p;
    RING_TRY(pass_from_id(id, &p));
    if (world->rank == 0)
        return host_by_id(world, id, &p);
    pending_forget_copy(id);
    return star_visit(world, &p, NULL, NULL);
}

ring_status boot_join(const ring_unique_id *id, int size, int rank, uint32_t transports,
                      boot_world **out)
{
    boot_world *world;
    *out = NULL;
    if (size < 1 || rank < 0 || rank >= size)
        return fail(RING_ERR_ARGUMENT, "rank %d of %d: want 0 <= rank < size", rank, size);
    RING_TRY(world_new(size, rank, transports, "unique id", &world));
    return finish(world, join_by_id(world, id), out);
}

/* ---- By the environment: MASTER_ADDR is known ------------------------------------------ */

static ring_status join_at_address(boot_world *world, const boot_launch *launch)
{
    pass p;
    int fd;
    RING_TRY(pass_from_launch(launch, &world->settings, world->deadline, &p));
    if (world->rank > 0)
        return star_visit(world, &p, NULL, NULL);
    RING_TRY(pass_listen(&p, launch, &world->settings, world->deadline, &fd));
    return world_host(world, &p, fd);
}

/* ---- By the environment: rank 0 makes an id and passes it on ---------------------------- */

static ring_status host_meeting(boot_world *world, const boot_launch *launch, meeting *m)
{
    ring_unique_id id;
    boot_address at;
    pass p;
    int fd;
    const boot_address otherwise = meet_one_host(launch) ? address_loopback(0) : address_of_host();
    RING_TRY(world_listen(&world->settings, otherwise, &at, &fd));
    pass_make_id(&at, &id);
    ring_status status = pass_from_id(&id, &p);
    if (status == RING_OK)
        status = meet_publish(m, &id);
    if (status == RING_OK)
        return world_host(world, &p, fd);
    fd_close(&fd);
    return status;
}

static ring_status look_for_id(void *context, pass *out)
{
    ring_unique_id id;
    RING_TRY(meet_look(context, &id));
    return pass_from_id(&id, out) == RING_OK ? RING_OK : RING_IN_PROGRESS;
}

static ring_status join_by_meeting(boot_world *world, const boot_launch *launch)
{
    meeting *m;
    pass p;
    RING_TRY(meet_open(launch, &world->settings, world->deadline, &m));
    const ring_status status = world->rank == 0 ? host_meeting(world, launch, m)
                                                : star_visit(world, &p, look_for_id, m);
    meet_close(m);
    return status;
}

static ring_status join_launched(boot_world *world, const boot_launch *launch)
{
    if (world->size == 1)
        return RING_OK;
    return launch->address[0] != '\0' ? join_at_address(world, launch)
                                      : join_by_meeting(world, launch);
}

ring_status boot_join_env(uint32_t transports, boot_world **out)
{
    boot_launch launch;
    boot_world *world;
    *out = NULL;
    RING_TRY(boot_detect(&launch));
    RING_TRY(world_new(launch.size, launch.rank, transports, launch.launcher, &world));
    return finish(world, join_launched(world, &launch), out);
}
