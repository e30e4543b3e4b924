/* SPDX-License-Identifier: Apache-2.0
 * fork and exec, with the error of exec brought back through a pipe. */
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

static struct rlimit files_before; /* the user's own limit, for the ranks */
static sigset_t mask_before;

static struct {
    pid_t *pids; /* children of spawn_start() that were not reaped */
    size_t count;
} started;

static void open_standard_fds(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

void spawn_prepare(void)
{
    open_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, NULL, &mask_before);
    if (getrlimit(RLIMIT_NOFILE, &files_before) == 0) {
        struct rlimit more = {files_before.rlim_max, files_before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &more); /* two pipes a rank; without it, fewer ranks */
    }
}

/* Under nohup a hang-up must stay ignored. An ignored SIGINT is how shells start jobs in
 * the background; whoever sends one to us then still means us. */
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

ring_status spawn_pipe(int fds[2], int ours)
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail(RING_ERR_SYSTEM, "making a pipe: %m; raise the limit on open files "
                    "(ulimit -n)");
    fcntl(fds[ours], F_SETFL, fcntl(fds[ours], F_GETFL) | O_NONBLOCK);
    return RING_OK;
}

/* ---- In the child ------------------------------------------------------------------ */

/* First above 2, so that no dup2() overwrites what another still needs. */
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

static void restore_signals(void)
{
    static const int reset[] = {SIGPIPE, SIGINT, SIGQUIT};
    for (size_t i = 0; i < sizeof reset / sizeof reset[0]; i++)
        signal(reset[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

static _Noreturn void become(const spawn_plan *plan, pid_t parent, int report)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* it died before we asked to be told */
    if (plan->cpus != NULL)
        sched_setaffinity(0, sizeof *plan->cpus, plan->cpus);
    if (place_fds(plan->fds) && (plan->keep_fd < 0 || fcntl(plan->keep_fd, F_SETFD, 0) == 0)) {
        restore_signals();
        setrlimit(RLIMIT_NOFILE, &files_before);
        execvpe(plan->path, plan->argv, plan->env);
    }
    const int error = errno;
    const ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(127);
}

/* ---- In the parent ------------------------------------------------------------------ */

/* The pipe closes by exec, or brings why there was none. */
static int exec_error(int report)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(report, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof error ? error : 0;
}

static void remember(pid_t pid)
{
    started.pids = memory_more(started.pids, started.count, sizeof *started.pids);
    started.pids[started.count++] = pid;
}

static pid_t *find_started(pid_t pid)
{
    for (size_t i = 0; i < started.count; i++) {
        if (started.pids[i] == pid)
            return &started.pids[i];
    }
    return NULL;
}

pid_t spawn_start(const spawn_plan *plan)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return -1;
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        become(plan, parent, report[1]);
    const int fork_error = errno;
    close(report[1]);
    const int error = child < 0 ? fork_error : exec_error(report[0]);
    close(report[0]);
    if (error == 0) {
        remember(child);
        return child;
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    errno = error;
    return -1;
}

int spawn_reap(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, WNOHANG) != pid)
        return -1;
    pid_t *at = find_started(pid);
    if (at != NULL)
        *at = started.pids[--started.count];
    return status;
}

/* One of ours may stand before the orphans for a moment; they come after it then. */
void spawn_reap_orphans(void)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            find_started(info.si_pid) != NULL)
            return;
        waitpid(info.si_pid, NULL, 0);
    }
}

/* Asks the kernel for this thread's children; those that die leave theirs to us, hence
 * again, but not for ever. */
void spawn_sweep(void)
{
    for (int turn = 0; turn < 100; turn++) {
        int pid;
        FILE *list = fopen("/proc/thread-self/children", "re");
        while (list != NULL && fscanf(list, "%d", &pid) == 1)
            kill(pid, SIGKILL);
        if (list != NULL)
            fclose(list);
        do {
            pid = waitpid(-1, NULL, WNOHANG);
        } while (pid > 0);
        if (pid < 0)
            break;
        clock_sleep(0.002);
    }
    free(started.pids);
    started.pids = NULL;
    started.count = 0;
}
