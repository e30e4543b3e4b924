/* SPDX-License-Identifier: Apache-2.0
 * Starts the processes of ranks: finds the program, and computes the environment and the cores of
 * each rank. */
#include "rank_start.h"

#include "binding.h"
#include "command_lookup.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ring_status rank_start_prepare(const job *j, const share *s, rank_start *out)
{
    *out = (rank_start){.j = j, .s = s, .secret_fd = -1};
    out->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (out->null_fd < 0)
        return fail(RING_ERR_SYSTEM, "cannot open /dev/null: %m");
    if (!command_find(j->argv.items[0], out->path, sizeof out->path) &&
        strchr(j->argv.items[0], '/') == NULL)
        out->path[0] = '\0'; /* execvp() of "" fails with the same error, ENOENT */
    if (j->has_secret) {
        out->secret_fd = job_secret_file(j);
        if (out->secret_fd < 0)
            return RING_ERR_SYSTEM;
    }
    return j->binding != BIND_NONE ? topo_cpu_read(&out->cpu) : RING_OK;
}

void rank_start_free(rank_start *st)
{
    fd_close(&st->secret_fd);
    fd_close(&st->null_fd);
    topo_cpu_free(&st->cpu);
}

pid_t rank_start_process(const rank_start *st, int local, const int fds[3], int ours[3])
{
    texts changes = {0};
    cpu_set_t cpus;
    const core_range range = binding_of(st->j, st->s, local, st->cpu.core_count);
    CPU_ZERO(&cpus);
    for (size_t i = 0; i < range.count; i++)
        CPU_OR(&cpus, &cpus, &st->cpu.cores[range.first + i].cpus);
    job_environment(st->j, st->s, local, st->secret_fd, &changes);
    spawn_plan plan = {.path = st->path,
                       .argv = st->j->argv.items,
                       .changes = changes.items,
                       .fds = {st->null_fd, -1, -1},
                       .ours = ours,
                       .keep_fd = st->secret_fd,
                       .cpus = range.count > 0 ? &cpus : NULL};
    if (fds != NULL)
        memcpy(plan.fds, fds, sizeof plan.fds);
    const pid_t pid = spawn_start(&plan);
    const int error = errno;
    texts_free(&changes);
    errno = error;
    return pid;
}
