/* SPDX-License-Identifier: Apache-2.0
 * One job: starts everything, passes on output, input and signals, and decides what went
 * wrong first. One loop waits for all of it. */
#include "run.h"

#include "crew.h"
#include "remote.h"
#include "setup.h"
#include "spawn.h"
#include "topo.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { CODE_USAGE = 2, CODE_TROUBLE = 3, INPUT_BYTES = 32768, CODE_SIGNAL = 128 };

/* When one rank is killed, the others soon fail because of it, and which of the deaths the
 * kernel tells first is chance. So the verdict waits a little for a signal. */
#define SETTLE_SECONDS 0.2
/* Hosts that have not stopped their ranks by then are cut off. */
#define STOP_SECONDS 1.9

typedef struct run {
    const options *o;
    setup plan;
    console *console;
    launch_events events;
    crew *crew;       /* the ranks of this host, NULL: none */
    remote **remotes; /* the other hosts                    */
    size_t remote_count;
    int signals;
    bool started, input_open;
    int interrupted;  /* the signal, 0: not    */
    bool failed, told;
    rank_end cause;   /* what failed first     */
    double tell_at, cut_at;
} run;

/* ---- To all ranks ----------------------------------------------------------------------- */

static void signal_all(run *r, int signal_number)
{
    if (r->crew != NULL)
        crew_signal(r->crew, signal_number);
    for (size_t i = 0; i < r->remote_count; i++)
        remote_signal(r->remotes[i], signal_number);
}

static void stop_all(run *r)
{
    r->cut_at = clock_now() + STOP_SECONDS;
    if (r->crew != NULL)
        crew_stop(r->crew);
    for (size_t i = 0; i < r->remote_count; i++)
        remote_stop(r->remotes[i]);
}

static void cut_remotes(run *r)
{
    for (size_t i = 0; i < r->remote_count; i++)
        remote_kill(r->remotes[i]);
}

static void kill_all(run *r)
{
    if (r->crew != NULL)
        crew_kill(r->crew);
    cut_remotes(r);
}

static int count_alive(const run *r)
{
    int alive = r->crew != NULL ? crew_alive(r->crew) : 0;
    for (size_t i = 0; i < r->remote_count; i++)
        alive += remote_alive(r->remotes[i]);
    return alive;
}

/* ---- Events of ranks ---------------------------------------------------------------------- */

static bool on_ready(void *context, int stream)
{
    const run *r = context;
    return console_ready(r->console, stream);
}

static bool on_output(void *context, int rank, int stream, const char *data, size_t count)
{
    run *r = context;
    return console_output(r->console, rank, stream, data, count);
}

static void on_ended(void *context, const rank_end *end)
{
    run *r = context;
    const bool clean = end->code == 0 && end->signal == 0 && end->why[0] == '\0';
    if (clean)
        return;
    if (!r->failed) {
        r->failed = true;
        r->cause = *end;
        r->tell_at = clock_now() + SETTLE_SECONDS;
        stop_all(r);
    } else if (!r->told && r->cause.signal == 0 && r->cause.why[0] == '\0' && end->signal != 0) {
        r->cause = *end;
    }
}

static void describe_end(const rank_end *end, char *out, size_t size)
{
    if (end->why[0] != '\0')
        snprintf(out, size, "%s", end->why);
    else if (end->signal == 0)
        snprintf(out, size, "ended with exit code %d", end->code);
    else
        snprintf(out, size, "was killed by signal %d (SIG%s%s)", end->signal,
                 sigabbrev_np(end->signal) != NULL ? sigabbrev_np(end->signal) : "RT",
                 end->signal == SIGKILL ? "; if nobody sent it, memory ran out: see dmesg" : "");
}

/* The one message about a failure. Who interrupts a job needs none. */
static void tell_cause(run *r)
{
    char how[512], here[256], pid[32] = "", others[64] = "";
    const share *of = layout_share_of(&r->plan.places, r->cause.rank);
    const int alive = count_alive(r);
    r->told = true;
    if (r->interrupted != 0)
        return;
    describe_end(&r->cause, how, sizeof how);
    if (r->cause.pid > 0)
        snprintf(pid, sizeof pid, " (pid %d)", r->cause.pid);
    if (alive > 0)
        snprintf(others, sizeof others, "; stopping the other %d", alive);
    topo_hostname(here, sizeof here);
    console_say(r->console, "rank %d on host %s%s %s%s", r->cause.rank,
                of->local ? here : of->host, pid, how, others);
}

/* ---- Signals and input ---------------------------------------------------------------------- */

/* The first one is passed on, so that ranks can end well; the second ends them. */
static void interrupt(run *r, int signal_number)
{
    if (r->interrupted != 0 || r->failed || !r->started) {
        kill_all(r);
    } else {
        signal_all(r, signal_number);
        console_say(r->console, "SIG%s passed on to the ranks; once more kills them",
                    sigabbrev_np(signal_number));
    }
    if (r->interrupted == 0)
        r->interrupted = signal_number;
}

static void collect_all(run *r)
{
    if (r->crew != NULL)
        crew_collect(r->crew);
    for (size_t i = 0; i < r->remote_count; i++)
        remote_collect(r->remotes[i]);
}

static void take_signal(run *r, int signal_number)
{
    switch (signal_number) {
    case SIGCHLD:
        collect_all(r);
        break;
    case SIGTSTP: /* ranks are not in the terminal's group: stop with us, go on with us */
        signal_all(r, SIGSTOP);
        raise(SIGSTOP);
        break;
    case SIGCONT:
    case SIGUSR1:
    case SIGUSR2:
        signal_all(r, signal_number);
        break;
    default:
        interrupt(r, signal_number);
        break;
    }
}

static void read_signals(void *context)
{
    run *r = context;
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(r, (int)info.ssi_signo);
}

static const share *rank_zero_share(const run *r)
{
    return r->plan.first == 0 ? &r->plan.places.shares[0] : NULL;
}

static void read_input(void *context)
{
    run *r = context;
    char buffer[INPUT_BYTES];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    const size_t count = got > 0 ? (size_t)got : 0;
    r->input_open = count > 0;
    if (rank_zero_share(r)->local)
        crew_feed(r->crew, buffer, count);
    else
        remote_feed(r->remotes[0], buffer, count);
}

/* Only when rank 0 can take it, and a terminal's only when it is ours to read. */
static bool wants_input(const run *r)
{
    const share *zero = rank_zero_share(r);
    if (!r->started || !r->input_open || zero == NULL)
        return false;
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp())
        return false;
    if (zero->local)
        return r->crew != NULL && crew_hungry(r->crew);
    return remote_hungry(r->remotes[0]);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static double next_due(const run *r)
{
    double due = r->crew != NULL ? crew_due(r->crew) : HUGE_VAL;
    if (r->failed && !r->told)
        due = fmin(due, r->tell_at);
    return fmin(due, r->cut_at);
}

static void one_turn(run *r, poll_set *set)
{
    poll_set_clear(set);
    poll_set_add(set, r->signals, POLLIN, read_signals, r);
    if (r->crew != NULL)
        crew_watch(r->crew, set);
    for (size_t i = 0; i < r->remote_count; i++)
        remote_watch(r->remotes[i], set);
    if (wants_input(r))
        poll_set_add(set, STDIN_FILENO, POLLIN, read_input, r);
    console_watch(r->console, set);
    poll_set_run(set, next_due(r));
    if (r->crew != NULL)
        crew_tick(r->crew);
    if (r->failed && !r->told && clock_now() >= r->tell_at)
        tell_cause(r);
    if (clock_now() >= r->cut_at) {
        r->cut_at = HUGE_VAL;
        cut_remotes(r);
    }
}

static bool all_ready(const run *r)
{
    for (size_t i = 0; i < r->remote_count; i++) {
        if (!remote_ready(r->remotes[i]))
            return false;
    }
    return true;
}

static bool all_done(const run *r)
{
    for (size_t i = 0; i < r->remote_count; i++) {
        if (!remote_done(r->remotes[i]))
            return false;
    }
    return r->crew == NULL || crew_done(r->crew);
}

/* ---- Start and end -------------------------------------------------------------------------- */

static ring_status connect_hosts(run *r)
{
    r->remotes = memory_grow(NULL, r->plan.places.count, sizeof *r->remotes);
    for (size_t i = r->plan.first; i < r->plan.end; i++) {
        const share *s = &r->plan.places.shares[i];
        texts command = {0};
        if (s->local)
            continue;
        remote_command(s->host, r->o->ssh_port, r->plan.ringrun, &command);
        const ring_status status =
            remote_open(s, &command, &r->events, r->console, &r->remotes[r->remote_count++]);
        texts_free(&command);
        RING_TRY(status);
    }
    return RING_OK;
}

static const share *local_share(const run *r)
{
    for (size_t i = r->plan.first; i < r->plan.end; i++) {
        if (r->plan.places.shares[i].local)
            return &r->plan.places.shares[i];
    }
    return NULL;
}

/* All hosts answer: now ranks can start everywhere. */
static ring_status start_ranks(run *r)
{
    const share *here = local_share(r);
    const int stdio[3] = {isatty(STDIN_FILENO) ? -1 : STDIN_FILENO,
                          console_passes(r->console, STDOUT_FILENO) ? STDOUT_FILENO : -1,
                          console_passes(r->console, STDERR_FILENO) ? STDERR_FILENO : -1};
    r->started = true;
    if (r->plan.ask_address) {
        const char *address = remote_address(r->remotes[0]);
        free(r->plan.j.address);
        r->plan.j.address = memory_text(address, strlen(address));
    }
    for (size_t i = 0; i < r->remote_count; i++)
        remote_start(r->remotes[i], &r->plan.j);
    return here != NULL ? crew_start(&r->plan.j, here, stdio, &r->events, &r->crew) : RING_OK;
}

static ring_status run_all(run *r)
{
    poll_set set = {0};
    ring_status status = connect_hosts(r);
    while (status == RING_OK && !all_ready(r) && !r->failed && r->interrupted == 0)
        one_turn(r, &set);
    if (status == RING_OK && all_ready(r) && !r->failed && r->interrupted == 0)
        status = start_ranks(r);
    else
        cut_remotes(r);
    while (status == RING_OK && !all_done(r))
        one_turn(r, &set);
    if (r->failed && !r->told)
        tell_cause(r);
    poll_set_free(&set);
    return status;
}

static int exit_code(const run *r)
{
    if (r->interrupted != 0)
        return CODE_SIGNAL + r->interrupted;
    if (!r->failed)
        return 0;
    return r->cause.signal != 0 ? CODE_SIGNAL + r->cause.signal : r->cause.code;
}

static int code_of(ring_status status)
{
    return status == RING_ERR_CONFIG ? CODE_USAGE : CODE_TROUBLE;
}

static int run_planned(run *r)
{
    r->signals = spawn_signal_fd();
    ring_status status =
        r->signals >= 0 ? RING_OK : fail(RING_ERR_SYSTEM, "watching for signals: %m");
    if (status == RING_OK)
        status = run_all(r);
    if (status != RING_OK)
        console_say(r->console, "%s", fail_text());
    crew_free(r->crew);
    for (size_t i = 0; i < r->remote_count; i++)
        remote_free(r->remotes[i]);
    free(r->remotes);
    fd_close(&r->signals);
    spawn_sweep();
    return status == RING_OK ? exit_code(r) : code_of(status);
}

int run_job(const options *o)
{
    run r = {.o = o, .input_open = true, .cut_at = HUGE_VAL};
    int code = 0;
    spawn_prepare();
    r.events = (launch_events){&r, on_ready, on_output, on_ended};
    ring_status status = setup_make(o, &r.plan);
    if (status == RING_OK && o->dry_run) {
        setup_print(&r.plan, o);
        setup_free(&r.plan);
        return 0;
    }
    if (status == RING_OK)
        status = console_open(r.plan.j.ranks, o->tag_output, o->log_dir, &r.console);
    if (status == RING_OK) {
        code = run_planned(&r);
        console_close(r.console);
    } else {
        fprintf(stderr, "ringrun: %s\n", fail_text());
        code = code_of(status);
    }
    setup_free(&r.plan);
    return code;
}
