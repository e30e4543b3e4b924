/* SPDX-License-Identifier: Apache-2.0
 * Starts, output, input and ends of ranks. An ended rank stays a zombie until its output has been
 * read and its process group is empty, so that its group's number cannot mean another process. */
#include "local_ranks.h"

#include "binding.h"
#include "reaper.h"
#include "spawn.h"
#include "topo.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Processes of an ended rank, e.g. the "tee" of a shell, may finish for this long. */
#define LINGER_SECONDS 1.0

enum { STREAMS = 2 };

enum rank_state { RANK_NOT_STARTED, RANK_RUNS, RANK_LINGERS, RANK_GONE };

typedef struct local_ranks local_ranks;

typedef struct stream {
    local_ranks *owner;
    int index, number; /* rank on this host; 1 or 2 */
    int fd;            /* -1: closed                   */
} stream;

typedef struct rank_slot {
    enum rank_state state;
    pid_t pid;
    double ended;
    stream streams[STREAMS];
} rank_slot;

enum stop_phase { STOP_NONE, STOP_REPORT, STOP_TERM, STOP_KILL };

struct local_ranks {
    host_ranks head;
    int first_rank, count;
    rank_slot *ranks;
    launch_events events;
    reaper guard;
    bytes input; /* for rank 0 */
    int input_fd;
    bool patient; /* processes of ended ranks may go on until kill() */
    enum stop_phase phase;
    double phase_ends;
};

/* ---- Output and input -------------------------------------------------------------------- */

enum {
    READ_BYTES = 65536,
    PIPE_READS_MAX = 32 /* 2 MiB: more than any pipe holds, so less than all of a busy writer's */
};

static void close_stream(stream *s, bool tell)
{
    if (s->fd < 0)
        return;
    fd_close(&s->fd);
    if (tell)
        s->owner->events.output(s->owner->events.context, s->owner->first_rank + s->index,
                                s->number, NULL, 0);
}

static void close_rank(rank_slot *rank)
{
    for (int i = 0; i < STREAMS; i++)
        fd_close(&rank->streams[i].fd);
}

/* @return true if there may be more to read now. */
static bool read_some(stream *s)
{
    static char buffer[READ_BYTES];
    if (s->fd < 0)
        return false;
    const ssize_t got = read(s->fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        close_stream(s, true);
        return false;
    }
    const launch_events *events = &s->owner->events;
    if (!events->output(events->context, s->owner->first_rank + s->index, s->number, buffer,
                        (size_t)got))
        close_stream(s, false);
    return true;
}

static void read_stream(void *context)
{
    read_some(context);
}

static void read_rest(rank_slot *rank)
{
    for (int i = 0; i < STREAMS; i++) {
        int reads = PIPE_READS_MAX;
        while (reads-- > 0 && read_some(&rank->streams[i]))
            continue;
    }
}

static void feed_rank(void *context)
{
    local_ranks *c = context;
    if (c->input_fd < 0)
        return;
    const ssize_t put = write(c->input_fd, bytes_head(&c->input), bytes_count(&c->input));
    if (put >= 0)
        bytes_drop(&c->input, (size_t)put);
    else if (errno != EAGAIN && errno != EINTR)
        fd_close(&c->input_fd);
}

static bool is_hungry(const host_ranks *h)
{
    const local_ranks *c = (const local_ranks *)h;
    return c->input_fd >= 0 && bytes_count(&c->input) == 0;
}

static void feed(host_ranks *h, const char *data, size_t count)
{
    local_ranks *c = (local_ranks *)h;
    if (count == 0)
        fd_close(&c->input_fd);
    if (c->input_fd >= 0)
        bytes_add(&c->input, data, count);
}

void local_ranks_mute(host_ranks *h, int rank, int number)
{
    local_ranks *c = (local_ranks *)h;
    if (rank >= c->first_rank && rank < c->first_rank + c->count)
        close_stream(&c->ranks[rank - c->first_rank].streams[number == 1 ? 0 : 1], false);
}

static void watch(host_ranks *h, poll_set *set)
{
    local_ranks *c = (local_ranks *)h;
    bool ready[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        ready[i] = c->events.ready(c->events.context, i + 1);
    for (int i = 0; i < c->count; i++) {
        for (int k = 0; k < STREAMS; k++) {
            stream *s = &c->ranks[i].streams[k];
            if (s->fd >= 0 && ready[k])
                poll_set_add(set, s->fd, POLLIN, read_stream, s);
        }
    }
    if (c->input_fd >= 0 && bytes_count(&c->input) > 0)
        poll_set_add(set, c->input_fd, POLLOUT, feed_rank, c);
}

/* ---- Life --------------------------------------------------------------------------------- */

static void free_ranks(host_ranks *h)
{
    local_ranks *c = (local_ranks *)h;
    reaper_stop(&c->guard);
    for (int i = 0; i < c->count; i++)
        close_rank(&c->ranks[i]);
    fd_close(&c->input_fd);
    bytes_free(&c->input);
    free(c->ranks);
    free(c);
}

/* ---- End ------------------------------------------------------------------------------ */

/* Has the group members beside its zombie leader? Orphans are our children, so waiting for stopped
 * ones shows it; the zombie itself cannot be stopped any more. */
static bool group_lives(pid_t group)
{
    siginfo_t info;
    return waitid(P_PGID, (id_t)group, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

static void finish_rank(local_ranks *c, int index)
{
    rank_slot *rank = &c->ranks[index];
    kill(-rank->pid, SIGKILL);
    read_rest(rank);
    for (int i = 0; i < STREAMS; i++)
        close_stream(&rank->streams[i], true);
    spawn_reap(rank->pid);
    c->guard.groups[index] = 0;
    rank->state = RANK_GONE;
}

static double linger_end(const local_ranks *c, const rank_slot *rank)
{
    return c->patient ? HUGE_VAL : rank->ended + LINGER_SECONDS;
}

static bool may_linger(const local_ranks *c, const rank_slot *rank)
{
    const bool open = rank->streams[0].fd >= 0 || rank->streams[1].fd >= 0;
    return c->phase != STOP_KILL && clock_now() < linger_end(c, rank) &&
           (open || group_lives(rank->pid));
}

static void note_end(local_ranks *c, int index, const siginfo_t *info)
{
    rank_slot *rank = &c->ranks[index];
    rank_end end = {.rank = c->first_rank + index, .pid = rank->pid};
    if (info->si_code == CLD_EXITED)
        end.code = info->si_status;
    else
        end.signal = info->si_status;
    rank->state = RANK_LINGERS;
    rank->ended = clock_now();
    read_rest(rank);
    c->events.ended(c->events.context, &end);
}

/* A rank killed by a signal is reported first: others fail because of it, and the order of two
 * deaths seen at once is not known. */
static void collect_ranks(local_ranks *c, bool signals)
{
    for (int i = 0; i < c->count; i++) {
        siginfo_t info = {.si_pid = 0};
        if (c->ranks[i].state == RANK_RUNS &&
            waitid(P_PID, (id_t)c->ranks[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0 && (!signals || info.si_code != CLD_EXITED))
            note_end(c, i, &info);
    }
}

/* A program may undo spawn_start()'s protection of the terminal: shells with job control do. */
static void notice_stops(const local_ranks *c)
{
    for (int i = 0; i < c->count && c->events.stopped != NULL; i++) {
        const rank_slot *rank = &c->ranks[i];
        siginfo_t info = {.si_pid = 0};
        if (rank->state == RANK_RUNS &&
            waitid(P_PID, (id_t)rank->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0 &&
            (info.si_status == SIGTTIN || info.si_status == SIGTTOU))
            c->events.stopped(c->events.context, c->first_rank + i, rank->pid, info.si_status);
    }
}

static void collect(host_ranks *h)
{
    local_ranks *c = (local_ranks *)h;
    collect_ranks(c, true);
    collect_ranks(c, false);
    notice_stops(c);
}

/* A shell dies of SIGTERM at once, though the program that it runs may still be saving. Of SIGINT
 * it dies after its program, and its background processes ignore that. */
static void send_signal(host_ranks *h, int signal_number)
{
    local_ranks *c = (local_ranks *)h;
    c->patient = c->patient || signal_number == SIGTERM || signal_number == SIGHUP;
    for (int i = 0; i < c->count; i++) {
        const rank_slot *rank = &c->ranks[i];
        if (rank->state == RANK_RUNS || rank->state == RANK_LINGERS)
            kill(-rank->pid, signal_number);
    }
}

static void enter_phase(local_ranks *c, enum stop_phase phase, double seconds)
{
    if (c->phase >= phase)
        return;
    c->phase = phase;
    c->phase_ends = clock_now() + seconds;
    if (phase == STOP_TERM)
        send_signal(&c->head, SIGTERM);
    if (phase == STOP_KILL)
        send_signal(&c->head, SIGKILL);
}

static void stop(host_ranks *h)
{
    enter_phase((local_ranks *)h, STOP_REPORT, RANKS_REPORT_SECONDS);
}

static void kill_ranks(host_ranks *h)
{
    enter_phase((local_ranks *)h, STOP_KILL, HUGE_VAL);
}

static void tick(host_ranks *h)
{
    local_ranks *c = (local_ranks *)h;
    if (c->phase != STOP_NONE && c->phase != STOP_KILL && clock_now() >= c->phase_ends)
        enter_phase(c, c->phase + 1, RANKS_TERM_SECONDS);
    for (int i = 0; i < c->count; i++) {
        if (c->ranks[i].state == RANK_LINGERS && !may_linger(c, &c->ranks[i]))
            finish_rank(c, i);
    }
    spawn_reap_orphans();
}

static double due_next(const host_ranks *h)
{
    const local_ranks *c = (const local_ranks *)h;
    double due = c->phase != STOP_NONE && c->phase != STOP_KILL ? c->phase_ends : HUGE_VAL;
    for (int i = 0; i < c->count; i++) {
        if (c->ranks[i].state == RANK_LINGERS)
            due = fmin(due, linger_end(c, &c->ranks[i]));
    }
    return due;
}

static int count_alive(const host_ranks *h)
{
    const local_ranks *c = (const local_ranks *)h;
    int alive = 0;
    for (int i = 0; i < c->count; i++)
        alive += c->ranks[i].state == RANK_RUNS;
    return alive;
}

static bool are_done(const host_ranks *h)
{
    const local_ranks *c = (const local_ranks *)h;
    for (int i = 0; i < c->count; i++) {
        if (c->ranks[i].state == RANK_RUNS || c->ranks[i].state == RANK_LINGERS)
            return false;
    }
    return true;
}

static const host_ranks_ops operations = {
    .free = free_ranks,
    .watch = watch,
    .collect = collect,
    .tick = tick,
    .due = due_next,
    .signal = send_signal,
    .stop = stop,
    .kill = kill_ranks,
    .hungry = is_hungry,
    .feed = feed,
    .alive = count_alive,
    .done = are_done,
};

/* ---- Start -------------------------------------------------------------------------------- */

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
        close_rank(rank);
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
    *c = (local_ranks){.head.ops = &operations,
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
