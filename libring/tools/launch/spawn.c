/* SPDX-License-Identifier: Apache-2.0
 * Starts processes by fork() and exec(). If exec() fails, the child reports its errno through a
 * pipe. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rlimit files_before; /* the limit that the user has set; ranks get it again */
static sigset_t mask_before;       /* the signal mask at the start; ranks get it again */

typedef struct pid_list {
    pid_t *pids;
    size_t count;
} pid_list;

static pid_list started;   /* children of spawn_start() that were not reaped      */
static pid_list inherited; /* children of the shell that became ringrun by exec() */

static void list_add(pid_list *list, pid_t pid)
{
    list->pids = memory_more(list->pids, list->count, sizeof *list->pids);
    list->pids[list->count++] = pid;
}

static pid_t *list_find(const pid_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->pids[i] == pid)
            return &list->pids[i];
    }
    return NULL;
}

static void list_remove(pid_list *list, pid_t pid)
{
    pid_t *at = list_find(list, pid);
    if (at != NULL)
        *at = list->pids[--list->count];
}

/* Adds all children of this thread, as the kernel lists them. */
static void list_children(pid_list *list)
{
    int pid;
    FILE *children = fopen("/proc/thread-self/children", "re");
    while (children != NULL && fscanf(children, "%d", &pid) == 1)
        list_add(list, pid);
    if (children != NULL)
        fclose(children);
}

void spawn_prepare(void)
{
    int fd; /* opened until it is above 2, so that no standard descriptor is missing */
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        continue;
    fd_close(&fd);
    list_children(&inherited);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, NULL, &mask_before);
    if (getrlimit(RLIMIT_NOFILE, &files_before) == 0) {
        struct rlimit more = {files_before.rlim_max, files_before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &more); /* as many as possible: each rank needs two pipes */
    }
}

/* SIGHUP is not watched if it is ignored, as under nohup. SIGINT is watched even if it is ignored:
 * shells ignore it in background jobs, so that Ctrl-C does not reach them, but a user may still
 * send it. */
int spawn_signal_fd(void)
{
    static const int watched[] = {SIGCHLD, SIGINT,  SIGTERM, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
    struct sigaction hangup;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
        sigaddset(&set, watched[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- In the child ------------------------------------------------------------------ */

/* Makes the descriptors 0, 1 and 2. They are first duplicated above 2, so that no dup2() closes one
 * that is still needed. */
static bool place_fds(const int fds[3])
{
    int high[3];
    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (high[i] < 0)
            return false;
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(high[i], i) < 0)
            return false;
    }
    return true;
}

/* Becomes the program, in the child. The child is in a process group of its own, so the kernel
 * would stop it by SIGTTIN or SIGTTOU if it read the terminal, changed its settings or (stty
 * tostop) wrote to it. It ignores these signals: writing and changing then work, and reading fails
 * with EIO, since ringrun reads the terminal for rank 0. */
static _Noreturn void become(const spawn_plan *plan, const int fds[3], pid_t parent, int report)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the launcher died before prctl() */
    if (plan->cpus != NULL)
        sched_setaffinity(0, sizeof *plan->cpus, plan->cpus);
    if (place_fds(fds) && (plan->keep_fd < 0 || fcntl(plan->keep_fd, F_SETFD, 0) == 0)) {
        signal(SIGPIPE, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        signal(SIGTTOU, SIG_IGN);
        signal(SIGTTIN, SIG_IGN);
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
        setrlimit(RLIMIT_NOFILE, &files_before);
        for (char *const *at = plan->changes; at != NULL && *at != NULL; at++)
            putenv(*at);
        execvp(plan->path, plan->argv);
    }
    const int error = errno;
    const ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

/* ---- In the parent ------------------------------------------------------------------ */

/* @return the errno of exec() in the child; 0 if exec() has succeeded, which closes the pipe. */
static int exec_error(int report)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(report, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof error ? error : 0;
}

/* Forks and waits until exec() has succeeded. @return the child's pid; -1, and errno, after a
 * failure. */
static pid_t start(const spawn_plan *plan, const int fds[3])
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return -1;
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        become(plan, fds, parent, report[1]);
    const int fork_error = errno;
    close(report[1]);
    const int error = child < 0 ? fork_error : exec_error(report[0]);
    close(report[0]);
    if (error == 0) {
        list_add(&started, child);
        return child;
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    errno = error;
    return -1;
}

/* Makes a pipe for a descriptor of the child. @param is_input  the child reads from it. */
static bool make_pipe(bool is_input, int *ours, int *theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *ours = ends[is_input];
    *theirs = ends[!is_input];
    return fcntl(*ours, F_SETFL, fcntl(*ours, F_GETFL) | O_NONBLOCK) == 0;
}

pid_t spawn_start(const spawn_plan *plan)
{
    int fds[3], ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1};
    bool good = true;
    for (int i = 0; i < 3; i++) {
        good = good && (plan->fds[i] >= 0 || make_pipe(i == 0, &ours[i], &theirs[i]));
        fds[i] = plan->fds[i] >= 0 ? plan->fds[i] : theirs[i];
    }
    const pid_t child = good ? start(plan, fds) : -1;
    const int error = errno;
    for (int i = 0; i < 3; i++) {
        fd_close(&theirs[i]);
        if (child < 0)
            fd_close(&ours[i]);
        if (plan->ours != NULL)
            plan->ours[i] = ours[i];
    }
    errno = error;
    return child;
}

int spawn_reap(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, WNOHANG) != pid)
        return -1;
    list_remove(&started, pid);
    return status;
}

/* If waitid() returns a child of spawn_start() first, the orphans are left for a later call, after
 * that child was reaped. */
void spawn_reap_orphans(void)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            list_find(&started, info.si_pid) != NULL)
            return;
        waitpid(info.si_pid, NULL, 0);
        list_remove(&inherited, info.si_pid);
    }
}

/* Killed processes leave their children to this process as orphans, so the list is read again until
 * it is empty, but not for ever. Processes of a shell that became ringrun by exec(), such as
 * ">(gzip >log.gz)", are spared, since they belong to the user: they existed before ringrun, or are
 * orphans of such processes and in the process group of ringrun, in which spawn_start() starts no
 * process. */
void spawn_sweep(void)
{
    bool found = true;
    for (int round = 0; found && round < 100; round++) {
        pid_list children = {0};
        list_children(&children);
        found = false;
        for (size_t i = 0; i < children.count; i++) {
            const pid_t pid = children.pids[i];
            if (list_find(&inherited, pid) != NULL || getpgid(pid) == getpgrp())
                continue;
            found = true;
            kill(pid, SIGKILL);
        }
        free(children.pids);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (found)
            clock_sleep(0.002);
    }
    free(started.pids);
    started = (pid_list){0};
}
