/* SPDX-License-Identifier: Apache-2.0
 * Starting the ranks of a host. */
#include "local_ranks_inside.h"

#include "binding.h"
#include "spawn.h"
#include "topo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct starter {
    const job *j;
    const share *s;
    const int *stdio;
    char path[4096];
    int secret_fd;
    topo_cpu cpu;
} starter;

static void tell_not_started(local_ranks *c, int index, const char *program)
{
    const int error = errno;
    rank_end end = {.rank = c->first_rank + index, .code = spawn_error_code(error)};
    spawn_describe_error(program, error, end.why, sizeof end.why);
    c->events.ended(c->events.context, &end);
    c->head.ops->stop(&c->head);
}

/* Rank 0 may get a descriptor of ours; the other ranks have no input and pipes for output.
 * close_after[] are those that only the child needs. */
static ring_status make_stdio(local_ranks *c, const starter *st, int index, int fds[3],
                              int close_after[3])
{
    const bool is_zero = c->first_rank + index == 0;
    rank_slot *rank = &c->ranks[index];
    for (int i = 0; i < 3; i++) {
        int ends[2];
        close_after[i] = -1;
        fds[i] = is_zero ? st->stdio[i] : -1;
        if (fds[i] >= 0 || (i == STDIN_FILENO && !is_zero))
            continue;
        RING_TRY(spawn_pipe(ends, i == STDIN_FILENO ? 1 : 0));
        fds[i] = close_after[i] = ends[i == STDIN_FILENO ? 0 : 1];
        if (i == STDIN_FILENO)
            c->input_fd = ends[1];
        else
            rank->streams[i - 1].fd = ends[0];
    }
    return RING_OK;
}

/* @return false if it may run on any. */
static bool choose_cpus(const starter *st, int local, cpu_set_t *out)
{
    const core_range range = binding_of(st->j, st->s, local, st->cpu.core_count);
    CPU_ZERO(out);
    for (size_t i = 0; i < range.count; i++)
        CPU_OR(out, out, &st->cpu.cores[range.first + i].cpus);
    return range.count > 0;
}

static pid_t start_rank(const starter *st, int local, const int fds[3])
{
    texts environment = {0};
    job_environment(st->j, st->s, local, st->secret_fd, environ, &environment);
    cpu_set_t cpus;
    const bool bound = choose_cpus(st, local, &cpus);
    const spawn_plan plan = {
        .path = st->path,
        .argv = st->j->argv.items,
        .env = environment.items,
        .fds = {fds[0], fds[1], fds[2]},
        .keep_fd = st->secret_fd,
        .cpus = bound ? &cpus : NULL,
    };
    const pid_t pid = spawn_start(&plan);
    const int error = errno;
    texts_free(&environment);
    errno = error;
    return pid;
}

static ring_status start_one(local_ranks *c, const starter *st, int index, int null_fd)
{
    rank_slot *rank = &c->ranks[index];
    int fds[3], close_after[3] = {-1, -1, -1};
    const ring_status status = make_stdio(c, st, index, fds, close_after);
    if (status == RING_OK) {
        rank->pid = start_rank(st, index, (int[]){fds[0] < 0 ? null_fd : fds[0], fds[1], fds[2]});
        rank->state = rank->pid > 0 ? RANK_RUNS : RANK_NOT_STARTED;
    }
    if (status == RING_OK && rank->pid < 0)
        tell_not_started(c, index, st->j->argv.items[0]);
    for (int i = 0; i < 3; i++)
        fd_close(&close_after[i]);
    if (rank->state == RANK_RUNS)
        c->guard.groups[index] = rank->pid;
    else
        local_ranks_close_rank(rank);
    return status;
}

static ring_status start_all(local_ranks *c, const starter *st)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    ring_status status = null_fd >= 0 ? RING_OK : fail(RING_ERR_SYSTEM, "/dev/null: %m");
    for (int i = 0; i < c->count && status == RING_OK && c->phase == STOP_NONE; i++)
        status = start_one(c, st, i, null_fd);
    fd_close(&null_fd);
    return status;
}

/* The descriptors that the ranks share; then the ranks. */
static ring_status prepare_and_start(local_ranks *c, starter *st)
{
    if (!spawn_find(st->j->argv.items[0], st->path, sizeof st->path)) {
        tell_not_started(c, 0, st->j->argv.items[0]);
        return RING_OK;
    }
    if (st->j->has_secret) {
        st->secret_fd = job_secret_file(st->j);
        if (st->secret_fd < 0)
            return RING_ERR_SYSTEM;
    }
    if (st->j->binding != BIND_NONE)
        RING_TRY(topo_cpu_read(&st->cpu));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    RING_TRY(reaper_start(&c->guard, (size_t)c->count));
    return start_all(c, st);
}

static local_ranks *local_ranks_new(const share *s, const launch_events *events)
{
    local_ranks *c = memory_grow(NULL, 1, sizeof *c);
    *c = (local_ranks){.head.ops = &local_ranks_ops,
                       .first_rank = s->first_rank,
                       .count = s->ranks,
                       .events = *events,
                       .input_fd = -1};
    c->ranks = memory_grow(NULL, (size_t)c->count, sizeof *c->ranks);
    for (int i = 0; i < c->count; i++) {
        c->ranks[i] = (rank_slot){.state = RANK_NOT_STARTED};
        for (int k = 0; k < STREAMS; k++)
            c->ranks[i].streams[k] = (stream){c, i, k + 1, -1};
    }
    return c;
}

ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const launch_events *events, host_ranks **out)
{
    starter st = {.j = j, .s = s, .stdio = stdio, .secret_fd = -1};
    local_ranks *c = local_ranks_new(s, events);
    *out = &c->head;
    const ring_status status = prepare_and_start(c, &st);
    fd_close(&st.secret_fd);
    topo_cpu_free(&st.cpu);
    if (status != RING_OK) {
        c->head.ops->kill(&c->head);
        c->head.ops->free(&c->head);
        *out = NULL;
    }
    return status;
}
