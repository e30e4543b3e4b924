/* SPDX-License-Identifier: Apache-2.0
 * Runs one job: starts all ranks, forwards output, input and signals, and reports the first
 * failure. A single loop waits for all descriptors and deadlines. */
#include "run_job.h"

#include "dry_run.h"
#include "job_hosts.h"
#include "setup.h"
#include "spawn.h"
#include "topo.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { CODE_USAGE = 2, CODE_TROUBLE = 3, INPUT_BYTES = 32768, CODE_SIGNAL = 128, CODE_LOST = 255 };

/* When a signal kills a rank, other ranks soon fail because of it, and their ends may be noticed
 * first. So the report of a failure waits for this time: a rank that was killed replaces the cause.
 */
#define SETTLE_SECONDS 0.2
/* Time after a failure until connections to hosts that have not stopped their ranks are closed. */
#define STOP_SECONDS 1.9
/* Within this time, a request to stop may arrive as several signals, which count as one. Ctrl-C of
 * a terminal reaches both ringrun and a launcher that passes it on to ringrun. timeout(1) signals
 * ringrun, then its process group, and then sends SIGCONT to both; so a second signal of the same
 * process counts only if no SIGCONT of that process follows. */
#define REPEAT_SECONDS 1.0

enum run_phase {
    PHASE_CONNECT, /* waiting for the answers of other hosts      */
    PHASE_RANKS,   /* ranks run                                   */
    PHASE_OUTPUT   /* waiting until the remaining output is written */
};

typedef struct run {
    const options *o;
    setup plan;
    console *console;
    rank_events events;
    job_hosts job_hosts;
    poll_set set;
    int signals;
    enum run_phase phase;
    bool input_open;
    bool drop;            /* a signal has requested to discard the remaining output */
    int interrupted;      /* the signal that interrupted the job; 0: none       */
    pid_t interrupted_by; /* the process that sent it; 0: the terminal          */
    double interrupted_at;
    bool failed, reported; /* a rank has failed, and this was reported */
    rank_end cause;        /* the first failure */
    /* Times (clock_now()); HUGE_VAL: never. */
    double report_at; /* the failure is reported                   */
    double cut_at;    /* connections are closed                    */
    double kill_at;   /* the ranks are killed                      */
    double repeat_at; /* from then on another signal is a new one  */
} run;

/* ---- Events of ranks ---------------------------------------------------------------------- */

static bool on_ready(void *context, int stream)
{
    const run *r = context;
    return console_ready(r->console, stream);
}

/* Notes the end of a rank. If it is the first failure, begins to end the other ranks. */
static void note_end(run *r, const rank_end *end)
{
    const bool clean = end->code == 0 && end->signal == 0 && end->why[0] == '\0';
    if (clean || r->interrupted != 0)
        return; /* after an interrupt, ranks may end in any way */
    if (!r->failed) {
        r->failed = true;
        r->cause = *end;
        r->report_at = clock_now() + SETTLE_SECONDS;
        r->cut_at = clock_now() + STOP_SECONDS;
        job_hosts_order(&r->job_hosts, FRAME_STOP, 0);
    } else if (!r->reported && r->cause.signal == 0 && r->cause.why[0] == '\0' &&
               end->signal != 0) {
        r->cause = *end;
    }
}

/* @return the name of the host of a rank; @p here receives the name of this host. */
static const char *host_of(const run *r, int rank, char *here, size_t size)
{
    const share *of = layout_share_of(&r->plan.places, rank);
    topo_hostname(here, size);
    return of->local ? here : of->host;
}

static void report_stop(run *r, const rank_end *stop)
{
    char here[256];
    console_say(
        r->console,
        "rank %d on host %s (pid %d) was stopped by SIG%s: it accessed the terminal, which ranks "
        "may not; rank 0 gets the keyboard as standard input. Ctrl-C ends the job",
        stop->rank, host_of(r, stop->rank, here, sizeof here), stop->pid,
        sigabbrev_np(stop->signal));
}

static bool on_event(void *context, const frame *f)
{
    run *r = context;
    rank_end end;
    if (f->type == FRAME_OUTPUT)
        return console_output(r->console, f->rank, f->stream, f->data, f->bytes);
    if (!frames_get_end(f, &end))
        return true;
    if (f->type == FRAME_ENDED)
        note_end(r, &end);
    else
        report_stop(r, &end);
    return true;
}

/* Writes how a rank ended, as the end of a sentence that begins with "rank N". */
static void describe_end(const rank_end *end, char *out, size_t size)
{
    if (end->why[0] != '\0')
        snprintf(out, size, "%s", end->why);
    else if (end->signal == 0)
        snprintf(out, size, "ended with exit code %d", end->code);
    else
        snprintf(out, size, "was killed by signal %d (SIG%s%s)", end->signal,
                 sigabbrev_np(end->signal) != NULL ? sigabbrev_np(end->signal) : "RT",
                 end->signal == SIGKILL ? "; if nobody sent it, memory has run out: see dmesg"
                                        : "");
}

/* Prints the message about the first failure, unless the user has interrupted the job. */
static void report_cause(run *r)
{
    char how[512], here[256], pid[32] = "", others[64] = "";
    const char *last = console_last_line(r->console, r->cause.rank);
    r->reported = true;
    if (r->interrupted != 0)
        return;
    describe_end(&r->cause, how, sizeof how);
    if (r->cause.pid > 0)
        snprintf(pid, sizeof pid, " (pid %d)", r->cause.pid);
    if (r->job_hosts.alive > 0)
        snprintf(others, sizeof others, "; stopping the other %d", r->job_hosts.alive);
    console_say(r->console, "rank %d on host %s%s %s%s%s%s", r->cause.rank,
                host_of(r, r->cause.rank, here, sizeof here), pid, how, others,
                last[0] != '\0' ? "; its last line: " : "", last);
}

/* ---- Signals and input ---------------------------------------------------------------------- */

/* Kills the ranks; if they have ended already, discards the remaining output. */
static void end_now(run *r)
{
    r->repeat_at = HUGE_VAL;
    if (r->phase == PHASE_OUTPUT)
        r->drop = true;
    else
        job_hosts_order(&r->job_hosts, FRAME_KILL, 0);
}

/* Handles a signal after the first one. The job ends at once if the signal has another number, is
 * sent by the terminal or after REPEAT_SECONDS, or if two different processes have sent the two
 * signals. If one process has sent both, the second counts when REPEAT_SECONDS are over. A process
 * that repeats a signal of the terminal only passes it on, and is ignored. */
static void repeat(run *r, int number, pid_t by)
{
    const double until = r->interrupted_at + REPEAT_SECONDS;
    if (number != r->interrupted || by == 0 || clock_now() >= until)
        end_now(r);
    else if (by == r->interrupted_by)
        r->repeat_at = until;
    else if (r->interrupted_by != 0)
        end_now(r);
}

/* Handles a signal that ends the job. The first one is passed on to the ranks, and also continues
 * stopped ranks, so that they can end in order. A second one kills the ranks. @param by  its
 * sender. */
static void interrupt(run *r, int number, pid_t by)
{
    if (r->interrupted != 0) {
        repeat(r, number, by);
        return;
    }
    r->interrupted = number;
    r->interrupted_by = by;
    r->interrupted_at = clock_now();
    if (r->phase != PHASE_RANKS || r->failed) {
        end_now(r);
        return;
    }
    r->kill_at = clock_now() + r->o->kill_wait;
    job_hosts_order(&r->job_hosts, FRAME_SIGNAL, number);
    job_hosts_order(&r->job_hosts, FRAME_SIGNAL, SIGCONT);
    console_say(r->console,
                "passed SIG%s on to the ranks, which have %d s to end; a second signal kills them",
                sigabbrev_np(number), r->o->kill_wait);
}

/* Kills the ranks and processes that have not ended within --kill-wait. */
static void kill_late(run *r)
{
    r->kill_at = HUGE_VAL;
    if (!r->job_hosts.done)
        console_say(r->console,
                    "killed the processes that still ran %d s after SIG%s; --kill-wait allows more "
                    "time",
                    r->o->kill_wait, sigabbrev_np(r->interrupted));
    job_hosts_order(&r->job_hosts, FRAME_KILL, 0);
    job_hosts_tick(&r->job_hosts);
}

static void take_signal(run *r, const struct signalfd_siginfo *info)
{
    /* A code above 0 means that the kernel has sent the signal, for the terminal. */
    const pid_t by = info->ssi_code <= 0 ? (pid_t)info->ssi_pid : 0;
    switch (info->ssi_signo) {
    case SIGCHLD:
        r->job_hosts.children = true;
        break;
    case SIGTSTP: /* ranks are not in the terminal's process group, so ringrun stops them */
        job_hosts_order(&r->job_hosts, FRAME_SIGNAL, SIGSTOP);
        raise(SIGSTOP);
        break;
    case SIGCONT:
        if (by != 0 && by == r->interrupted_by)
            r->repeat_at = HUGE_VAL;
        job_hosts_order(&r->job_hosts, FRAME_SIGNAL, SIGCONT);
        break;
    case SIGUSR1:
    case SIGUSR2:
        job_hosts_order(&r->job_hosts, FRAME_SIGNAL, (int)info->ssi_signo);
        break;
    default:
        interrupt(r, (int)info->ssi_signo, by);
        break;
    }
}

static void read_signals(void *context)
{
    run *r = context;
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(r, &info);
}

/* Reads standard input and passes it on to rank 0. */
static void read_input(void *context)
{
    run *r = context;
    char buffer[INPUT_BYTES];
    host_ranks *zero = r->job_hosts.hungry;
    const ssize_t got = read_ready(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0)
        return;
    r->input_open = got > 0;
    zero->ops->order(zero, &(frame){FRAME_INPUT, .data = buffer, .bytes = (size_t)got});
}

/* @return true if standard input must be read: rank 0 can take input, and ringrun is in the
 * foreground of the terminal, if the input is one. */
static bool wants_input(const run *r)
{
    if (r->phase != PHASE_RANKS || !r->input_open || r->job_hosts.hungry == NULL)
        return false;
    return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void do_what_is_due(run *r)
{
    if (clock_now() >= r->repeat_at)
        end_now(r);
    job_hosts_tick(&r->job_hosts);
    console_tick(r->console);
    if (r->failed && !r->reported && clock_now() >= r->report_at)
        report_cause(r);
    if (clock_now() >= r->cut_at) {
        r->cut_at = HUGE_VAL;
        job_hosts_cut(&r->job_hosts);
        job_hosts_tick(&r->job_hosts);
    }
    if (clock_now() >= r->kill_at)
        kill_late(r);
}

/* Waits for events until something is due, at most until @p until, and handles it. */
static void wait_once(run *r, double until)
{
    poll_set_clear(&r->set);
    poll_set_add(&r->set, r->signals, POLLIN, read_signals, r);
    job_hosts_watch(&r->job_hosts, &r->set);
    if (wants_input(r))
        poll_set_add(&r->set, STDIN_FILENO, POLLIN, read_input, r);
    console_watch(r->console, &r->set);
    until = fmin(fmin(until, r->job_hosts.due), console_due(r->console));
    until = fmin(fmin(until, r->repeat_at), fmin(r->cut_at, r->kill_at));
    poll_set_run(&r->set, r->failed && !r->reported ? fmin(until, r->report_at) : until);
    do_what_is_due(r);
}

/* ---- The phases ------------------------------------------------------------------------------ */

/* @return true if the job has neither failed nor been interrupted. */
static bool goes_on(const run *r)
{
    return !r->failed && r->interrupted == 0;
}

/* Connects to the other hosts and waits until all have answered. */
static ring_status connect_hosts(run *r)
{
    char silent[256];
    const double until = clock_now() + r->plan.patience;
    RING_TRY(job_hosts_connect(&r->job_hosts, &r->plan, r->o, &r->events, r->console));
    while (goes_on(r) && !job_hosts_ready(&r->job_hosts) && clock_now() < until)
        wait_once(r, until);
    if (!goes_on(r) || job_hosts_ready(&r->job_hosts))
        return RING_OK;
    job_hosts_silent_hosts(&r->job_hosts, silent, sizeof silent);
    return fail(
        RING_ERR_TIMEOUT,
        "no answer within %g s from %s: 'ssh HOST true' must work for these without asking for "
        "a password; RING_INIT_TIMEOUT gives more time",
        r->plan.patience, silent);
}

/* Starts the ranks of all hosts, after these have answered. */
static ring_status start_ranks(run *r)
{
    const int stdio[3] = {isatty(STDIN_FILENO) ? -1 : STDIN_FILENO,
                          console_passes(r->console, STDOUT_FILENO) ? STDOUT_FILENO : -1,
                          console_passes(r->console, STDERR_FILENO) ? STDERR_FILENO : -1};
    r->phase = PHASE_RANKS;
    if (r->plan.ask_address) {
        const char *address = r->job_hosts.hosts[0]->address;
        free(r->plan.j.address);
        r->plan.j.address = memory_text(address, strlen(address));
    }
    return job_hosts_start(&r->job_hosts, &r->plan, stdio, &r->events);
}

static ring_status run_ranks(run *r)
{
    RING_TRY(connect_hosts(r));
    if (goes_on(r))
        RING_TRY(start_ranks(r));
    else
        job_hosts_cut(&r->job_hosts);
    job_hosts_tick(&r->job_hosts);
    while (!r->job_hosts.done)
        wait_once(r, HUGE_VAL);
    if (r->failed && !r->reported)
        report_cause(r);
    return RING_OK;
}

/* @return the exit code for an error of the launcher. */
static int code_of(ring_status status)
{
    if (status == RING_ERR_TIMEOUT)
        return CODE_LOST;
    return status == RING_ERR_CONFIG ? CODE_USAGE : CODE_TROUBLE;
}

static int exit_code(const run *r, ring_status status)
{
    if (r->interrupted != 0)
        return CODE_SIGNAL + r->interrupted;
    if (status != RING_OK)
        return code_of(status);
    if (r->failed)
        return r->cause.signal != 0 ? CODE_SIGNAL + r->cause.signal : r->cause.code;
    return console_lost(r->console) ? CODE_TROUBLE : 0;
}

/* Runs the job whose ranks are placed and whose console is open. @return the exit code. */
static int run_planned(run *r)
{
    r->signals = spawn_signal_fd();
    ring_status status = r->signals >= 0
                             ? RING_OK
                             : fail(RING_ERR_SYSTEM, "cannot watch for signals (signalfd): %m");
    if (status == RING_OK)
        status = run_ranks(r);
    if (status != RING_OK)
        console_say(r->console, "%s", fail_text());
    job_hosts_free(&r->job_hosts);
    spawn_sweep();
    r->phase = PHASE_OUTPUT;
    r->kill_at = r->cut_at = HUGE_VAL;
    while (console_waits(r->console) && !r->drop) /* readers may be slow */
        wait_once(r, HUGE_VAL);
    fd_close(&r->signals);
    poll_set_free(&r->set);
    return exit_code(r, status);
}

int run_job(const options *o)
{
    run r = {
        .o = o, .input_open = true, .cut_at = HUGE_VAL, .kill_at = HUGE_VAL, .repeat_at = HUGE_VAL};
    int code = 0;
    spawn_prepare();
    r.events = (rank_events){&r, on_ready, on_event};
    ring_status status = setup_make(o, &r.plan);
    if (status == RING_OK && o->dry_run)
        dry_run_print(&r.plan, o);
    else if (status == RING_OK)
        status = console_open(r.plan.j.ranks, o->tag_output, o->log_dir, &r.console);
    if (r.console != NULL) {
        code = run_planned(&r);
        console_close(r.console);
    } else if (status != RING_OK) {
        fprintf(stderr, "ringrun: %s\n", fail_text());
        code = code_of(status);
    }
    setup_free(&r.plan);
    return code;
}
