/* SPDX-License-Identifier: Apache-2.0
 * Starts the reaper, a forked process, and ends it when the ranks have ended. */
#include "reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the reaper: waits for the end of file of the pipe, then kills the groups. First it closes
 * all other descriptors that it has inherited; otherwise, readers of the launcher's output would
 * not get an end of file before the reaper ends. */
static _Noreturn void watch(const reaper *w, int fd)
{
    char nothing;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "ring-reaper");
    const int null = open("/dev/null", O_RDWR);
    for (int standard = 0; standard <= STDERR_FILENO && null >= 0; standard++)
        dup2(null, standard);
    if (fd > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
    while (read(fd, &nothing, 1) < 0 && errno == EINTR)
        continue;
    for (size_t i = 0; i < w->count; i++) {
        if (w->groups[i] > 0)
            kill(-w->groups[i], SIGKILL);
    }
    _exit(0);
}

ring_status reaper_start(reaper *w, size_t count)
{
    int fds[2];
    void *shared = mmap(NULL, count * sizeof *w->groups, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return fail(RING_ERR_SYSTEM, "cannot allocate shared memory for process groups: %m");
    *w = (reaper){.groups = shared, .count = count};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail(RING_ERR_SYSTEM, "cannot create a pipe: %m");
    w->fd = fds[1];
    w->pid = fork();
    if (w->pid == 0)
        watch(w, fds[0]);
    close(fds[0]);
    if (w->pid > 0)
        return RING_OK;
    w->pid = 0;
    close(w->fd);
    return fail(RING_ERR_SYSTEM, "cannot start the reaper process: %m");
}

void reaper_stop(reaper *w)
{
    if (w->pid > 0) {
        close(w->fd);
        waitpid(w->pid, NULL, 0);
    }
    if (w->groups != NULL)
        munmap(w->groups, w->count * sizeof *w->groups);
    *w = (reaper){0};
}
