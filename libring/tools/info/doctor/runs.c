/* SPDX-License-Identifier: Apache-2.0
 * Starts commands whose standard output and standard error are anonymous files, and reads these
 * files when the commands have ended. */
#include "runs.h"

#include "command_lookup.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REMEDY_INSTALL \
    "sudo cmake --install build --prefix /usr/local && sudo ldconfig   # the same on all hosts, " \
    "or " \
    "give --remote-ringrun PATH"

enum { CODE_KILLED = -1, CODE_NOT_STARTED = -2, OUTPUT_MAX = 8 << 20 };
static const double poll_interval = 0.002; /* s */

static double wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds the path of a program of libring to the command; it is in the folder of this program. */
static void add_neighbour(run *r, const char *name)
{
    char self[4096] = "";
    (void)command_own_path(self, sizeof self);
    const char *slash = strrchr(self, '/');
    texts_add(&r->command, "%.*s%s", slash != NULL ? (int)(slash + 1 - self) : 0, self, name);
}

const char *runs_host(const char *name, char out[280])
{
    snprintf(out, 280, strchr(name, ':') != NULL ? "[%.255s]" : "%.255s", name);
    return out;
}

void runs_begin(run *r, const doctor_wishes *w, const char *hosts)
{
    *r = (run){.fds = {-1, -1}};
    add_neighbour(r, "ringrun");
    texts_add(&r->command, "-H");
    texts_add(&r->command, "%s", hosts);
    texts_add(&r->command, "--bind-to=none");
    if (w->ssh_port > 0)
        texts_add(&r->command, "--ssh-port=%d", w->ssh_port);
    if (w->remote_ringrun != NULL)
        texts_add(&r->command, "--remote-ringrun=%s", w->remote_ringrun);
}

/* If ringrun has another path on the other hosts, the bare name is given, since ringrun also
 * searches its own folder. */
void runs_add_program(run *r, const doctor_wishes *w, const char *name)
{
    if (w->remote_ringrun == NULL)
        add_neighbour(r, name);
    else
        texts_add(&r->command, "%s", name);
}

/* Starts a command. @param null  its standard input. */
static void start(run *r, int null)
{
    char why[400] = "";
    r->began = r->done = wall_clock();
    r->code = CODE_NOT_STARTED;
    for (size_t k = 0; k < 2; k++)
        r->fds[k] = memfd_create("ringinfo doctor", MFD_CLOEXEC);
    r->pid = r->fds[0] >= 0 && r->fds[1] >= 0
                 ? spawn_start(&(spawn_plan){.path = r->command.items[0],
                                             .argv = r->command.items,
                                             .fds = {null, r->fds[0], r->fds[1]},
                                             .keep_fd = -1})
                 : -1;
    if (r->pid >= 0)
        return;
    command_describe_error(r->command.items[0], errno, why, sizeof why);
    dprintf(r->fds[1], "%s", why);
}

/* @return true while the command runs; kills it if it is late or prints too much. */
static bool is_running(run *r, bool is_late)
{
    struct stat file;
    if (r->pid <= 0)
        return false;
    if (is_late || (fstat(r->fds[0], &file) == 0 && file.st_size > OUTPUT_MAX))
        kill(-r->pid, SIGKILL);
    const int status = spawn_reap(r->pid);
    if (status < 0)
        return true;
    r->done = wall_clock();
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : CODE_KILLED;
    r->pid = 0;
    return false;
}

/* Reads at most OUTPUT_MAX bytes. */
static char *read_all(int *fd)
{
    struct stat file = {.st_size = 0};
    (void)fstat(*fd, &file);
    const size_t size = min_size((size_t)file.st_size, OUTPUT_MAX);
    char *text = memory_grow(NULL, size + 1, 1);
    const ssize_t got = pread(*fd, text, size, 0);
    text[got > 0 ? got : 0] = '\0';
    fd_close(fd);
    return text;
}

void runs_all(run *runs, size_t count, double seconds)
{
    const double deadline = clock_now() + seconds;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < count; i++)
        start(&runs[i], null >= 0 ? null : STDIN_FILENO);
    for (bool running = count > 0; running;) {
        const bool is_late = clock_now() > deadline;
        running = false;
        for (size_t i = 0; i < count; i++)
            running |= is_running(&runs[i], is_late);
        if (running)
            clock_sleep(poll_interval);
    }
    for (size_t i = 0; i < count; i++) {
        runs[i].out = read_all(&runs[i].fds[0]);
        runs[i].err = read_all(&runs[i].fds[1]);
    }
    fd_close(&null);
}

void runs_free(run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        texts_free(&runs[i].command);
        free(runs[i].out);
        free(runs[i].err);
    }
}

void runs_why(const run *r, char *out, size_t size)
{
    const char *line = r->err;
    if (r->code == CODE_KILLED)
        snprintf(out, size, "no answer in time");
    else if (*line == '\0')
        snprintf(out, size, "the command ended with %d and printed nothing", r->code);
    else
        snprintf(out, size, "%.*s", (int)min_size(strcspn(line, "\n"), size - 1), line);
    text_make_printable(out, size);
}

const char *runs_remedy(const char *why, const char *other)
{
    const remedy table[] = {{"is not there under the same path", REMEDY_INSTALL},
                            {"could not start", REMEDY_INSTALL},
                            {"of another version", REMEDY_INSTALL},
                            {"that every host has", "cd /   # then ringinfo doctor again"},
                            {"there is no ssh", "sudo apt install openssh-client"},
                            {NULL, other}};
    return remedy_for(table, why);
}
