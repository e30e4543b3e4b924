/* SPDX-License-Identifier: Apache-2.0
 * Starting, reading and ending them. */
#include "runs.h"

#include "poll_set.h"
#include "spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CODE_KILLED = -1, CODE_NOT_STARTED = -2, OUTPUT_MAX = 8 << 20, READ_BYTES = 65536 };

static double wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- Command lines --------------------------------------------------------------------------- */

/* The folder of this program, with its '/'. */
static void own_folder(char out[4096])
{
    const ssize_t length = readlink("/proc/self/exe", out, 4095);
    out[length > 0 ? length : 0] = '\0';
    char *last = strrchr(out, '/');
    if (last != NULL)
        last[1] = '\0';
}

const char *runs_host(const char *name, char out[280])
{
    snprintf(out, 280, strchr(name, ':') != NULL ? "[%.255s]" : "%.255s", name);
    return out;
}

void runs_begin(run *r, const doctor_wishes *w, const char *hosts)
{
    char folder[4096];
    *r = (run){.fds = {-1, -1}};
    own_folder(folder);
    texts_add(&r->command, "%sringrun", folder);
    texts_add(&r->command, "-H");
    texts_add(&r->command, "%s", hosts);
    texts_add(&r->command, "--bind-to=none");
    if (w->ssh_port > 0)
        texts_add(&r->command, "--ssh-port=%d", w->ssh_port);
    if (w->remote_ringrun != NULL)
        texts_add(&r->command, "--remote-ringrun=%s", w->remote_ringrun);
}

/* Where ringrun is elsewhere, it knows its neighbours itself. */
void runs_add_program(run *r, const doctor_wishes *w, const char *name)
{
    char folder[4096] = "";
    if (w->remote_ringrun == NULL)
        own_folder(folder);
    texts_add(&r->command, "%s%s", folder, name);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool open_pipes(int out[2], int err[2])
{
    if (spawn_pipe(out, 0) != RING_OK)
        return false;
    if (spawn_pipe(err, 0) == RING_OK)
        return true;
    close(out[0]);
    close(out[1]);
    return false;
}

static void start(run *r, int null)
{
    int out[2], err[2];
    r->began = r->done = wall_clock();
    r->code = CODE_NOT_STARTED;
    if (!open_pipes(out, err)) {
        bytes_add(&r->err, fail_text(), strlen(fail_text()));
        return;
    }
    r->fds[0] = out[0];
    r->fds[1] = err[0];
    r->pid = spawn_start(&(spawn_plan){.path = r->command.items[0],
                                       .argv = r->command.items,
                                       .env = environ,
                                       .fds = {null, out[1], err[1]},
                                       .keep_fd = -1});
    if (r->pid < 0) {
        char why[400];
        spawn_describe_error(r->command.items[0], errno, why, sizeof why);
        bytes_add(&r->err, why, strlen(why));
    }
    close(out[1]);
    close(err[1]);
}

static void take(run *r, int stream)
{
    bytes *b = stream == 0 ? &r->out : &r->err;
    const ssize_t got = bytes_read(b, r->fds[stream], READ_BYTES);
    if (got > 0 && bytes_count(b) < OUTPUT_MAX)
        return;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    fd_close(&r->fds[stream]);
}

static void take_output(void *context)
{
    take(context, 0);
}

static void take_errors(void *context)
{
    take(context, 1);
}

static size_t watch(run *runs, size_t count, poll_set *set)
{
    static void (*const handlers[2])(void *) = {take_output, take_errors};
    poll_set_clear(set);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 2; k++)
            if (runs[i].fds[k] >= 0)
                poll_set_add(set, runs[i].fds[k], POLLIN, handlers[k], &runs[i]);
    return set->count;
}

/* Its streams have ended, so it soon does; who is late is killed. */
static void reap(run *r, double deadline)
{
    int status = -1;
    while (r->pid > 0 && (status = spawn_reap(r->pid)) < 0) {
        if (clock_now() > deadline)
            kill(-r->pid, SIGKILL);
        clock_sleep(0.001);
    }
    if (r->pid > 0)
        r->code = WIFEXITED(status) ? WEXITSTATUS(status) : CODE_KILLED;
    r->pid = 0;
    for (size_t k = 0; k < 2; k++)
        if (r->fds[k] >= 0)
            fd_close(&r->fds[k]);
}

static void note_ends(run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (runs[i].fds[0] >= 0)
            runs[i].done = wall_clock();
}

void runs_all(run *runs, size_t count, double seconds)
{
    const double deadline = clock_now() + seconds;
    poll_set set = {0};
    FILE *null = fopen("/dev/null", "re");
    for (size_t i = 0; i < count; i++)
        start(&runs[i], null != NULL ? fileno(null) : STDIN_FILENO);
    while (watch(runs, count, &set) > 0 && clock_now() < deadline) {
        poll_set_run(&set, deadline);
        note_ends(runs, count);
    }
    for (size_t i = 0; i < count; i++) {
        reap(&runs[i], deadline);
        bytes_add(&runs[i].out, "", 1);
        bytes_add(&runs[i].err, "", 1);
    }
    poll_set_free(&set);
    if (null != NULL)
        fclose(null);
}

void runs_free(run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        texts_free(&runs[i].command);
        bytes_free(&runs[i].out);
        bytes_free(&runs[i].err);
    }
}

void runs_why(const run *r, char *out, size_t size)
{
    const char *line = bytes_head(&r->err);
    if (r->code == CODE_KILLED)
        snprintf(out, size, "no answer in time");
    else if (*line == '\0')
        snprintf(out, size, "it ended with %d and said nothing", r->code);
    else
        snprintf(out, size, "%.*s", (int)min_size(strcspn(line, "\n"), size - 1), line);
    text_make_printable(out, size);
}
