/* SPDX-License-Identifier: Apache-2.0
 * The process that cleans up after a launcher that died. */
#include "reaper.h"

#include "grow.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct group_list {
    pid_t *items;
    size_t count;
} group_list;

/* A positive number adds that group, a negative one removes it. */
static void take_message(group_list *groups, pid_t message)
{
    if (message > 0) {
        groups->items = memory_more(groups->items, groups->count, sizeof *groups->items);
        groups->items[groups->count++] = message;
        return;
    }
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->items[i] == -message)
            groups->items[i--] = groups->items[--groups->count];
    }
}

/* Closes all descriptors of the launcher, or its readers would wait for the reaper. */
static void let_go(int keep)
{
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
        dup2(null, fd);
    if (keep > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, (unsigned)keep - 1, 0);
    close_range((unsigned)keep + 1, ~0U, 0);
}

static _Noreturn void watch(int fd)
{
    group_list groups = {0};
    sigset_t all;
    pid_t message;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "ring-reaper");
    let_go(fd);
    for (;;) {
        const ssize_t got = read(fd, &message, sizeof message);
        if (got == (ssize_t)sizeof message)
            take_message(&groups, message);
        else if (got >= 0 || errno != EINTR)
            break;
    }
    for (size_t i = 0; i < groups.count; i++)
        kill(-groups.items[i], SIGKILL);
    _exit(0);
}

ring_status reaper_start(reaper *w)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail(RING_ERR_SYSTEM, "making a pipe: %m");
    w->pid = fork();
    if (w->pid == 0)
        watch(fds[0]);
    close(fds[0]);
    w->fd = fds[1];
    if (w->pid > 0)
        return RING_OK;
    close(w->fd);
    return fail(RING_ERR_SYSTEM, "starting a process: %m");
}

static void tell(const reaper *w, pid_t message)
{
    const ssize_t ignored = write(w->fd, &message, sizeof message);
    (void)ignored; /* without a reaper, groups are still ended by the launcher itself */
}

void reaper_add(const reaper *w, pid_t group)
{
    tell(w, group);
}

void reaper_remove(const reaper *w, pid_t group)
{
    tell(w, -group);
}

void reaper_stop(reaper *w)
{
    if (w->pid <= 0)
        return;
    close(w->fd);
    waitpid(w->pid, NULL, 0);
    w->pid = 0;
}
