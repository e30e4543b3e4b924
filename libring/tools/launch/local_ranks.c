/* SPDX-License-Identifier: Apache-2.0
 * Ends of ranks. An ended rank stays a zombie until its output has been read and its process group
 * is empty, so that its group's number cannot mean another process. */
#include "local_ranks_inside.h"

#include "spawn.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Processes of an ended rank, e.g. the "tee" of a shell, may finish for this long. */
#define LINGER_SECONDS 1.0

static void free_ranks(host_ranks *h)
{
    local_ranks *c = (local_ranks *)h;
    reaper_stop(&c->guard);
    for (int i = 0; i < c->count; i++)
        local_ranks_close_rank(&c->ranks[i]);
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
    local_ranks_read_rest(rank);
    for (int i = 0; i < STREAMS; i++)
        local_ranks_close_stream(&rank->streams[i], true);
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
    local_ranks_read_rest(rank);
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

const host_ranks_ops local_ranks_ops = {
    .free = free_ranks,
    .watch = local_ranks_watch,
    .collect = collect,
    .tick = tick,
    .due = due_next,
    .signal = send_signal,
    .stop = stop,
    .kill = kill_ranks,
    .hungry = local_ranks_hungry,
    .feed = local_ranks_feed,
    .alive = count_alive,
    .done = are_done,
};
