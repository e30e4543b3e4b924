/* SPDX-License-Identifier: Apache-2.0
 * Runs at the far end of an ssh connection: sends the events of local_ranks as frames to standard
 * output, and executes orders from standard input. The first order has the job and its secret. The
 * end of standard input is an order to kill the ranks. */
#include "remote_child.h"

#include "host_address.h"
#include "local_ranks.h"
#include "spawn.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { READ_BYTES = 65536, CODE_ERROR = 3 };

typedef struct child {
    job j;
    share s;
    host_ranks *ranks;
    outlet out; /* frames to the near side */
    bytes in;   /* frames from the near side */
    int signals;
    bool failed;   /* no rank could be started, and this was reported */
    bool over;     /* the near side has ended: kill the ranks, send nothing more */
    bool children; /* a signal has arrived: ranks may have ended */
    bool asked;    /* the near side was asked for input of rank 0, and has not answered */
} child;

/* ---- Events of its ranks ------------------------------------------------------- */

static bool on_ready(void *context, int stream)
{
    const child *c = context;
    (void)stream;
    return !outlet_full(&c->out);
}

static bool on_event(void *context, const frame *f)
{
    child *c = context;
    frames_send(&c->out, f);
    return true;
}

/* ---- Orders of the near side -------------------------------------------------------------- */

/* Reports, for all ranks of this host, that the first of them was not started. */
static void report_failure(child *c, const char *why)
{
    rank_end end = {.rank = c->s.first_rank, .code = CODE_ERROR};
    snprintf(end.why, sizeof end.why, "was not started: %.250s", why);
    const frame f = frames_of_end(FRAME_ENDED, &end);
    on_event(c, &f);
    c->failed = true;
}

static void take_job(child *c, const frame *f)
{
    const rank_events events = {c, on_ready, on_event};
    if (c->ranks != NULL || c->failed)
        return;
    if (job_unpack(f->data, f->bytes, &c->j, &c->s) != RING_OK) {
        c->over = true;
        return;
    }
    if (chdir(c->j.directory) != 0) {
        fail(RING_ERR_CONFIG,
             "cannot enter the folder %s: %m; start ringrun in a folder that every host has",
             c->j.directory);
        report_failure(c, fail_text());
    } else if (local_ranks_start(&c->j, &c->s, (int[]){-1, -1, -1}, &events, &c->ranks) !=
               RING_OK) {
        report_failure(c, fail_text());
    }
}

static void take_order(void *context, const frame *f)
{
    child *c = context;
    if (f->type == FRAME_JOB)
        take_job(c, f);
    else if (c->ranks != NULL)
        c->ranks->ops->order(c->ranks, f);
    if (f->type == FRAME_INPUT)
        c->asked = false;
}

static void read_orders(void *context)
{
    child *c = context;
    const ssize_t got = bytes_read(&c->in, STDIN_FILENO, READ_BYTES);
    if (got == 0 || (got > 0 && !frames_each(&c->in, take_order, c)))
        c->over = true;
}

static void read_signals(void *context)
{
    child *c = context;
    struct signalfd_siginfo info;
    while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGCONT)
            c->over = true;
    }
    c->children = true;
}

/* ---- The loop --------------------------------------------------------------------------- */

/* Sends the mark and the first frame, with the address of this host: the one that ssh connected to.
 */
static void say_hello(child *c)
{
    char client[64], address[HOST_ADDRESS_MAX];
    const char *connection = getenv("SSH_CONNECTION"); /* "client port server port" */
    if ((connection == NULL || sscanf(connection, "%63s %*s %63s", client, address) != 2) &&
        !host_address_public(address))
        snprintf(address, sizeof address, "127.0.0.1");
    bytes_add(&c->out.waiting, FRAMES_MARK, strlen(FRAMES_MARK));
    frames_send(&c->out, &(frame){.type = FRAME_HELLO,
                                  .rank = RING_VERSION_CODE,
                                  .data = address,
                                  .bytes = strlen(address)});
}

static void wait_once(child *c, poll_set *set)
{
    poll_set_clear(set);
    poll_set_add(set, c->signals, POLLIN, read_signals, c);
    if (!c->over)
        poll_set_add(set, STDIN_FILENO, POLLIN, read_orders, c);
    if (c->ranks != NULL)
        c->ranks->ops->watch(c->ranks, set);
    outlet_watch(&c->out, set);
    poll_set_run(set, c->ranks != NULL ? c->ranks->due : HUGE_VAL);
    if (c->ranks == NULL)
        return;
    if (c->over || c->out.error != 0)
        c->ranks->ops->order(c->ranks, &(frame){.type = FRAME_KILL});
    c->ranks->ops->tick(c->ranks, c->children);
    c->children = false;
    if (!c->asked && c->ranks->hungry) {
        frames_send(&c->out, &(frame){.type = FRAME_HUNGRY});
        c->asked = true;
    }
}

/* @return true when the ranks have ended and all reports are sent, or the near side has ended. */
static bool child_done(const child *c)
{
    const bool over = c->over || c->out.error != 0;
    const bool gone = c->ranks != NULL ? c->ranks->done : c->failed || over;
    return gone && (bytes_count(&c->out.waiting) == 0 || over);
}

int remote_child(void)
{
    poll_set set = {0};
    spawn_prepare();
    child c = {.out = {.fd = STDOUT_FILENO}, .signals = spawn_signal_fd()};
    if (c.signals < 0)
        return CODE_ERROR;
    say_hello(&c);
    do {
        wait_once(&c, &set);
    } while (!child_done(&c));
    if (c.ranks != NULL)
        c.ranks->ops->free(c.ranks);
    spawn_sweep();
    explicit_bzero(c.in.data, c.in.room);
    bytes_free(&c.in);
    bytes_free(&c.out.waiting);
    poll_set_free(&set);
    share_free(&c.s);
    job_free(&c.j);
    close(c.signals);
    return 0;
}
