/* SPDX-License-Identifier: Apache-2.0
 * Starts ranks, reads their output, writes the input of rank 0, and reports when ranks end. A rank
 * that has ended is not reaped until its output has been read and its process group is empty. Until
 * then no other process can get the number of the group, so that signals reach only processes of
 * the rank. */
#include "local_ranks.h"

#include "command_lookup.h"
#include "rank_start.h"
#include "reaper.h"
#include "spawn.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STREAMS = 2,
    READ_BYTES = 65536,
    PIPE_READS_MAX = 32 /* 2 MiB: more than a pipe holds, but bounded, since a writer may go on */
};

/* After a failure, the other ranks have 1 s to report errors, then get SIGTERM, then SIGKILL. */
#define RANKS_REPORT_SECONDS 1.0
#define RANKS_TERM_SECONDS 0.5

/* When a rank has ended, other processes of its group, such as a "tee", may run for this long. */
#define LINGER_SECONDS 1.0

/* RANK_LINGERS: the rank has ended and is not reaped. RANK_NONE: not started, or reaped. */
enum rank_state { RANK_NONE, RANK_RUNS, RANK_LINGERS };

typedef struct local_ranks local_ranks;

typedef struct stream {
    local_ranks *owner;
    int index, number; /* index of the rank on this host; 1 or 2 */
    int fd;            /* -1: closed                             */
} stream;

typedef struct rank_slot {
    enum rank_state state;
    pid_t pid;    /* also the number of its process group */
    double ended; /* time of its end (clock_now()) */
    stream streams[STREAMS];
} rank_slot;

enum stop_phase { STOP_NONE, STOP_REPORT, STOP_TERM, STOP_KILL };

struct local_ranks {
    host_ranks head;
    rank_slot *ranks;
    reaper guard;
    outlet input; /* input of rank 0; fd -1: closed, or not written here */
    bool patient; /* processes of ended ranks may run until FRAME_KILL */
    enum stop_phase phase;
    double phase_ends; /* HUGE_VAL: this phase has no limit of time */
};

/* Reports an event. @return false if nobody reads this output any more. */
static bool tell(const local_ranks *c, const frame *event)
{
    return c->head.events.take(c->head.events.context, event);
}

static void tell_end(const local_ranks *c, enum frame_type type, const rank_end *end)
{
    const frame f = frames_of_end(type, end);
    tell(c, &f);
}

/* ---- Output and input -------------------------------------------------------------------- */

static bool tell_output(const stream *s, const char *data, size_t count)
{
    const int rank = s->owner->head.s->first_rank + s->index;
    return tell(s->owner, &(frame){FRAME_OUTPUT, s->number, rank, data, count});
}

static void end_stream(stream *s)
{
    if (s->fd < 0)
        return;
    fd_close(&s->fd);
    tell_output(s, NULL, 0);
}

/* @return true if there may be more to read now. */
static bool read_some(stream *s)
{
    static char buffer[READ_BYTES];
    const ssize_t got = s->fd >= 0 ? read_ready(s->fd, buffer, sizeof buffer) : -1;
    if (got == 0)
        end_stream(s);
    if (got > 0 && !tell_output(s, buffer, (size_t)got))
        fd_close(&s->fd);
    return got > 0;
}

static void read_stream(void *context)
{
    read_some(context);
}

/* Reads the output that the pipes of an ended rank hold. */
static void read_rest(rank_slot *rank)
{
    for (int i = 0; i < STREAMS; i++) {
        int reads = PIPE_READS_MAX;
        while (reads-- > 0 && read_some(&rank->streams[i]))
            continue;
    }
}

static void watch(host_ranks *h, poll_set *set)
{
    local_ranks *c = (local_ranks *)h;
    bool ready[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        ready[i] = h->events.ready(h->events.context, i + 1);
    for (int i = 0; i < h->s->ranks; i++) {
        for (int k = 0; k < STREAMS; k++) {
            stream *s = &c->ranks[i].streams[k];
            if (s->fd >= 0 && ready[k])
                poll_set_add(set, s->fd, POLLIN, read_stream, s);
        }
    }
    outlet_watch(&c->input, set);
}

/* ---- Ends --------------------------------------------------------------------------------- */

/* @return true if the group has processes besides its leader, which is a zombie. Orphans become
 * children of this process, so waitid() for stopped children fails (ECHILD) unless there is such a
 * process; a zombie is not waited for, since it cannot be stopped. */
static bool group_lives(pid_t group)
{
    siginfo_t info;
    return waitid(P_PGID, (id_t)group, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

/* Kills the group of an ended rank, reads its last output, and reaps the rank. */
static void finish_rank(local_ranks *c, int index)
{
    rank_slot *rank = &c->ranks[index];
    kill(-rank->pid, SIGKILL);
    read_rest(rank);
    for (int i = 0; i < STREAMS; i++)
        end_stream(&rank->streams[i]);
    spawn_reap(rank->pid);
    c->guard.groups[index] = 0;
    rank->state = RANK_NONE;
}

/* @return the time until which processes of an ended rank may run. */
static double linger_end(const local_ranks *c, const rank_slot *rank)
{
    return c->patient ? HUGE_VAL : rank->ended + LINGER_SECONDS;
}

/* @return true if an ended rank must not be reaped yet: its group has processes, or its output is
 * open. */
static bool may_linger(const local_ranks *c, const rank_slot *rank)
{
    const bool open = rank->streams[0].fd >= 0 || rank->streams[1].fd >= 0;
    return c->phase != STOP_KILL && clock_now() < linger_end(c, rank) &&
           (open || group_lives(rank->pid));
}

/* Reports the end of a rank after its output. */
static void note_end(local_ranks *c, int index, const siginfo_t *info)
{
    rank_slot *rank = &c->ranks[index];
    rank_end end = {.rank = c->head.s->first_rank + index, .pid = rank->pid};
    if (info->si_code == CLD_EXITED)
        end.code = info->si_status;
    else
        end.signal = info->si_status;
    rank->state = RANK_LINGERS;
    rank->ended = clock_now();
    read_rest(rank);
    tell_end(c, FRAME_ENDED, &end);
}

/* @return true if a running rank has an event of the kind `what` (waitid). */
static bool has_event(const rank_slot *rank, int what, siginfo_t *info)
{
    *info = (siginfo_t){.si_pid = 0};
    return rank->state == RANK_RUNS && waitid(P_PID, (id_t)rank->pid, info, what | WNOHANG) == 0 &&
           info->si_pid != 0;
}

/* Reports ranks that have ended. The caller reports ranks that a signal killed first (@p signals):
 * the order in which several ranks ended is unknown, and other ranks often fail because one was
 * killed. */
static void collect_ranks(local_ranks *c, bool signals)
{
    siginfo_t info;
    for (int i = 0; i < c->head.s->ranks; i++) {
        if (has_event(&c->ranks[i], WEXITED | WNOWAIT, &info) &&
            (!signals || info.si_code != CLD_EXITED))
            note_end(c, i, &info);
    }
}

/* Reports ranks that the terminal stopped. spawn_start() protects ranks from that, but a program
 * can undo the protection, as shells with job control do. */
static void notice_stops(const local_ranks *c)
{
    siginfo_t info;
    for (int i = 0; i < c->head.s->ranks; i++) {
        if (!has_event(&c->ranks[i], WSTOPPED, &info) ||
            (info.si_status != SIGTTIN && info.si_status != SIGTTOU))
            continue;
        tell_end(c, FRAME_STOPPED,
                 &(rank_end){.rank = c->head.s->first_rank + i,
                             .pid = info.si_pid,
                             .signal = info.si_status});
    }
}

/* Sends a signal to the groups of all ranks. SIGTERM and SIGHUP end a shell at once, while the
 * program that it runs may still be saving its state; so the program is allowed to run on. After
 * SIGINT this is not needed: a shell waits for its program, and background processes of the shell
 * ignore SIGINT. */
static void send_signal(local_ranks *c, int number)
{
    c->patient = c->patient || number == SIGTERM || number == SIGHUP;
    for (int i = 0; i < c->head.s->ranks; i++) {
        if (c->ranks[i].state != RANK_NONE)
            kill(-c->ranks[i].pid, number);
    }
}

/* Begins a later phase of ending the ranks; does nothing if that phase has begun. */
static void enter_phase(local_ranks *c, enum stop_phase phase)
{
    static const struct {
        double seconds;
        int signal;
    } phases[] = {[STOP_REPORT] = {RANKS_REPORT_SECONDS, 0},
                  [STOP_TERM] = {RANKS_TERM_SECONDS, SIGTERM},
                  [STOP_KILL] = {HUGE_VAL, SIGKILL}};
    if (c->phase >= phase)
        return;
    c->phase = phase;
    c->phase_ends = clock_now() + phases[phase].seconds;
    if (phases[phase].signal != 0)
        send_signal(c, phases[phase].signal);
}

static void order(host_ranks *h, const frame *f)
{
    local_ranks *c = (local_ranks *)h;
    const int index = f->rank - h->s->first_rank;
    if (f->type == FRAME_INPUT && f->bytes == 0) {
        fd_close(&c->input.fd);
    } else if (f->type == FRAME_INPUT) {
        if (c->input.fd >= 0 && c->input.error == 0)
            bytes_add(&c->input.waiting, f->data, f->bytes);
    } else if (f->type == FRAME_MUTE) {
        if (index >= 0 && index < h->s->ranks)
            fd_close(&c->ranks[index].streams[f->stream == 1 ? 0 : 1].fd);
    } else if (f->type == FRAME_SIGNAL && f->rank > 0 && f->rank < NSIG) {
        send_signal(c, f->rank);
    } else if (f->type == FRAME_STOP) {
        enter_phase(c, STOP_REPORT);
    } else if (f->type == FRAME_KILL) {
        enter_phase(c, STOP_KILL);
    }
}

static void tick(host_ranks *h, bool children)
{
    local_ranks *c = (local_ranks *)h;
    if (children) {
        collect_ranks(c, true);
        collect_ranks(c, false);
        notice_stops(c);
    }
    if (clock_now() >= c->phase_ends)
        enter_phase(c, c->phase + 1);
    h->due = c->phase_ends;
    h->alive = 0;
    h->done = true;
    for (int i = 0; i < h->s->ranks; i++) {
        rank_slot *rank = &c->ranks[i];
        if (rank->state == RANK_LINGERS && !may_linger(c, rank))
            finish_rank(c, i);
        if (rank->state == RANK_LINGERS)
            h->due = fmin(h->due, linger_end(c, rank));
        h->alive += rank->state == RANK_RUNS;
        h->done = h->done && rank->state == RANK_NONE;
    }
    h->hungry = c->input.fd >= 0 && c->input.error == 0 && bytes_count(&c->input.waiting) == 0;
    spawn_reap_orphans();
}

static void free_ranks(host_ranks *h)
{
    local_ranks *c = (local_ranks *)h;
    reaper_stop(&c->guard);
    for (int i = 0; i < h->s->ranks * STREAMS; i++)
        fd_close(&c->ranks[i / STREAMS].streams[i % STREAMS].fd);
    fd_close(&c->input.fd);
    bytes_free(&c->input.waiting);
    free(c->ranks);
    free(c);
}

static const host_ranks_ops operations = {.free = free_ranks,
                                          .watch = watch,
                                          .tick = tick,
                                          .order = order};

/* ---- Start -------------------------------------------------------------------------------- */

/* Starts a rank. Rank 0 may get descriptors of this process, @p stdio. If a rank cannot be started,
 * reports that and begins to end the others. */
static void start_one(local_ranks *c, const rank_start *st, int index, const int stdio[3])
{
    rank_slot *rank = &c->ranks[index];
    const bool is_zero = c->head.s->first_rank + index == 0;
    int ours[3];
    rank->pid = rank_start_process(st, index, is_zero ? stdio : NULL, ours);
    if (rank->pid < 0) {
        const int error = errno;
        rank_end end = {.rank = c->head.s->first_rank + index, .code = command_error_code(error)};
        command_describe_error(st->j->argv.items[0], error, end.why, sizeof end.why);
        tell_end(c, FRAME_ENDED, &end);
        enter_phase(c, STOP_REPORT);
        return;
    }
    rank->state = RANK_RUNS;
    c->guard.groups[index] = rank->pid;
    for (int i = 0; i < STREAMS; i++)
        rank->streams[i].fd = ours[i + 1];
    if (is_zero)
        c->input.fd = ours[STDIN_FILENO];
}

static local_ranks *local_ranks_new(const share *s, const rank_events *events)
{
    local_ranks *c = memory_zeroed(1, sizeof *c);
    c->head = (host_ranks){.ops = &operations, .s = s, .events = *events, .ready = true};
    c->input.fd = -1;
    c->phase_ends = HUGE_VAL;
    c->ranks = memory_zeroed((size_t)s->ranks, sizeof *c->ranks);
    for (int i = 0; i < s->ranks; i++) {
        for (int k = 0; k < STREAMS; k++)
            c->ranks[i].streams[k] = (stream){c, i, k + 1, -1};
    }
    return c;
}

ring_status local_ranks_start(const job *j, const share *s, const int stdio[3],
                              const rank_events *events, host_ranks **out)
{
    rank_start st;
    local_ranks *c = local_ranks_new(s, events);
    *out = &c->head;
    ring_status status = rank_start_prepare(j, s, &st);
    if (status == RING_OK) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        status = reaper_start(&c->guard, (size_t)s->ranks);
    }
    for (int i = 0; status == RING_OK && i < s->ranks && c->phase == STOP_NONE; i++)
        start_one(c, &st, i, stdio);
    rank_start_free(&st);
    if (status != RING_OK) {
        enter_phase(c, STOP_KILL);
        free_ranks(&c->head);
        *out = NULL;
    }
    return status;
}
