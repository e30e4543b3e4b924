/* SPDX-License-Identifier: Apache-2.0
 * Handles the near end of an ssh connection to another host: sends orders, and receives the events
 * of the ranks on that host. */
#include "remote_ranks.h"

#include "command_lookup.h"
#include "spawn.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_BYTES = 65536,
    GREETING_MAX = 65536, /* bytes that a shell may print before ringrun's mark */
    REAP_TRIES = 50,      /* tries, 2 ms apart, before ssh is killed */
    CODE_LOST = 255,
    CODE_NOT_FOUND = 127
};

typedef struct remote_ranks {
    host_ranks head;
    console *console;
    pid_t pid;            /* of ssh; 0 after it was reaped */
    outlet to;            /* standard input of ssh                    */
    int from, error;      /* its output and errors                    */
    bytes in, error_line; /* received bytes of these                  */
    bool greeted;         /* the mark has arrived, so frames follow   */
    bool *ended;          /* [ranks] the far side has reported its end */
    char last_error[256]; /* the latest line on standard error        */
} remote_ranks;

static bool readable(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, 0) > 0;
}

/* ---- ssh ------------------------------------------------------------------ */

char *remote_quoted(const char *word)
{
    bytes out = {0};
    bytes_add(&out, "'", 1);
    for (; *word != '\0'; word++)
        bytes_add(&out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    bytes_add(&out, "'", 2);
    return out.data;
}

/* The shell on the other host interprets only the path of ringrun, which is quoted. */
void remote_command(const char *host, int ssh_port, const char *path, texts *out)
{
    char *there = remote_quoted(path);
    texts_add(out, "ssh");
    texts_add(out, "-oBatchMode=yes");
    texts_add(out, "-oConnectTimeout=10");
    texts_add(out, "-oServerAliveInterval=5");
    texts_add(out, "-oServerAliveCountMax=3");
    if (ssh_port > 0)
        texts_add(out, "-oPort=%d", ssh_port);
    texts_add(out, "%s", host);
    texts_add(out, "%s --remote-child", there);
    free(there);
}

static ring_status start_ssh(remote_ranks *r, const texts *command)
{
    char path[4096];
    int ours[3];
    if (!command_find(command->items[0], path, sizeof path))
        return fail(RING_ERR_SYSTEM, "there is no ssh in PATH, but other hosts are reached by ssh; "
                                     "install it (Debian: openssh-client)");
    r->pid = spawn_start(&(spawn_plan){
        .path = path, .argv = command->items, .fds = {-1, -1, -1}, .ours = ours, .keep_fd = -1});
    if (r->pid < 0)
        return fail(RING_ERR_SYSTEM, "cannot start ssh: %m");
    r->to.fd = ours[0];
    r->from = ours[1];
    r->error = ours[2];
    return RING_OK;
}

/* Queues a frame and writes as much as possible at once. */
static void send_now(remote_ranks *r, const frame *f)
{
    frames_send(&r->to, f);
    outlet_write(&r->to);
}

/* ---- Events from the far end ------------------------------------------------------------ */

/* Reports that the connection has ended while ranks ran on the host, where the far side kills them.
 * The first rank of the host is reported for all of them. */
static void report_lost(remote_ranks *r, int wait_status)
{
    rank_end end = {.rank = r->head.s->first_rank, .code = CODE_LOST};
    const bool not_found = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == CODE_NOT_FOUND;
    const char *said = r->last_error[0] != '\0' ? r->last_error : "it printed nothing";
    if (!r->greeted && not_found) {
        end.code = CODE_NOT_FOUND;
        snprintf(end.why, sizeof end.why,
                 "was not started: ringrun is not there under the same path (%.150s); install "
                 "libring there too, or give --remote-ringrun",
                 said);
    } else if (!r->greeted) {
        snprintf(end.why, sizeof end.why,
                 "was not started: ssh to the host failed (%.150s); 'ssh %.60s true' must work "
                 "without asking for a password",
                 said, r->head.s->host);
    } else {
        snprintf(end.why, sizeof end.why, "was lost: the connection to the host ended (%.150s)",
                 said);
    }
    const frame f = frames_of_end(FRAME_ENDED, &end);
    r->head.events.take(r->head.events.context, &f);
}

/* Handles complete lines of standard error; @p rest: all bytes. After the mark, lines are shown to
 * the user with the name of the host. Before it, they are kept as the reason if ssh fails. */
static void take_error_lines(remote_ranks *r, bool rest)
{
    while (bytes_count(&r->error_line) > 0) {
        const char *head = bytes_head(&r->error_line);
        const size_t count = bytes_count(&r->error_line);
        const char *end = memchr(head, '\n', count);
        if (end == NULL && !rest && count < sizeof r->last_error)
            return;
        const size_t length = end != NULL ? (size_t)(end - head) : count;
        const size_t shown = length > 0 && head[length - 1] == '\r' ? length - 1 : length;
        snprintf(r->last_error, sizeof r->last_error, "%.*s", (int)min_size(shown, 255), head);
        if (r->greeted)
            console_host(r->console, r->head.s->host, head, shown);
        bytes_drop(&r->error_line, length + (end != NULL));
    }
}

static void read_errors(void *context)
{
    remote_ranks *r = context;
    const ssize_t got = bytes_read(&r->error_line, r->error, 1024);
    if (got < 0)
        return;
    take_error_lines(r, got == 0);
    if (got == 0)
        fd_close(&r->error);
}

/* Waits until ssh has ended, which it does when the connection ends; kills it after 0.1 s.
 * @return its wait status. */
static int reap_ssh(remote_ranks *r)
{
    int status = -1;
    for (int tries = 0; r->pid > 0; tries++) {
        status = spawn_reap(r->pid);
        if (status >= 0)
            r->pid = 0;
        else if (tries == REAP_TRIES)
            kill(r->pid, SIGKILL);
        else
            clock_sleep(0.002);
    }
    return status;
}

/* Ends the connection, and reports the loss of ranks that were still running. */
static void close_connection(remote_ranks *r)
{
    const bool lost = r->head.alive > 0;
    fd_close(&r->to.fd);
    fd_close(&r->from);
    r->head.done = true;
    r->head.alive = 0;
    r->head.hungry = false;
    const int status = reap_ssh(r);
    while (r->error >= 0 && readable(r->error))
        read_errors(r); /* the last line of ssh is the reason */
    if (lost)
        report_lost(r, status);
}

/* Ends the connection for a reason of this side. */
static void break_off(remote_ranks *r, const char *why)
{
    snprintf(r->last_error, sizeof r->last_error, "%s", why);
    close_connection(r);
}

/* @return true if the frame is valid and is the first one that reports the end of this rank. */
static bool note_end(remote_ranks *r, const frame *f)
{
    rank_end end;
    bool *ended = &r->ended[f->rank - r->head.s->first_rank];
    if (!frames_get_end(f, &end) || *ended)
        return false;
    *ended = true;
    r->head.alive--;
    return true;
}

/* Passes an event on, if it is about a rank of this host. */
static void take_event(remote_ranks *r, const frame *f)
{
    if (f->rank < r->head.s->first_rank || f->rank >= r->head.s->first_rank + r->head.s->ranks ||
        (f->type == FRAME_OUTPUT && f->stream != 1 && f->stream != 2) ||
        (f->type == FRAME_ENDED && !note_end(r, f)))
        return;
    if (!r->head.events.take(r->head.events.context, f))
        send_now(r, &(frame){.type = FRAME_MUTE, .stream = f->stream, .rank = f->rank});
}

static void take_frame(void *context, const frame *f)
{
    remote_ranks *r = context;
    if (r->from < 0)
        return; /* an earlier frame has closed the connection */
    if (f->type == FRAME_HELLO && !r->head.ready && f->rank != RING_VERSION_CODE) {
        break_off(r, "its ringrun is of another version");
    } else if (f->type == FRAME_HELLO && !r->head.ready) {
        snprintf(r->head.address, sizeof r->head.address, "%.*s", (int)min_size(f->bytes, 63),
                 f->data);
        r->head.ready = true;
    } else if (f->type == FRAME_HUNGRY) {
        r->head.hungry = true;
    } else if (f->type >= FRAME_OUTPUT && f->type <= FRAME_STOPPED) {
        take_event(r, f);
    }
}

/* Discards output of the shell before ringrun's mark. */
static void skip_greeting(remote_ranks *r)
{
    const size_t mark = strlen(FRAMES_MARK);
    const char *at = bytes_count(&r->in) > 0
                         ? memmem(bytes_head(&r->in), bytes_count(&r->in), FRAMES_MARK, mark)
                         : NULL;
    if (at != NULL) {
        bytes_drop(&r->in, (size_t)(at - bytes_head(&r->in)) + mark);
        r->greeted = true;
    } else if (bytes_count(&r->in) > GREETING_MAX) {
        close_connection(r);
    }
}

static void read_frames(void *context)
{
    remote_ranks *r = context;
    const ssize_t got = r->from >= 0 ? bytes_read(&r->in, r->from, READ_BYTES) : -1;
    if (got < 0)
        return;
    if (!r->greeted)
        skip_greeting(r);
    if (r->greeted && !frames_each(&r->in, take_frame, r) && r->from >= 0)
        break_off(r, "it sent damaged data");
    if (got == 0 && r->from >= 0)
        close_connection(r);
}

/* Only notices the end of ssh: the far side keeps the deadlines of its ranks. */
static void tick(host_ranks *h, bool children)
{
    remote_ranks *r = (remote_ranks *)h;
    siginfo_t info = {.si_pid = 0};
    if (!children || r->pid <= 0 ||
        waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return;
    while (r->from >= 0 && readable(r->from))
        read_frames(r); /* frames that arrived before ssh ended */
    if (r->from >= 0)
        close_connection(r);
}

/* ---- Orders to the far end -------------------------------------------------------------- */

static void watch(host_ranks *h, poll_set *set)
{
    remote_ranks *r = (remote_ranks *)h;
    if (r->error >= 0)
        poll_set_add(set, r->error, POLLIN, read_errors, r);
    if (r->from >= 0 && h->events.ready(h->events.context, 1) &&
        h->events.ready(h->events.context, 2))
        poll_set_add(set, r->from, POLLIN, read_frames, r);
    outlet_watch(&r->to, set);
}

void remote_start(host_ranks *h, const job *j)
{
    bytes packed = {0};
    job_pack(j, h->s, &packed);
    send_now((remote_ranks *)h,
             &(frame){.type = FRAME_JOB, .data = packed.data, .bytes = bytes_count(&packed)});
    explicit_bzero(packed.data, packed.end);
    bytes_free(&packed);
}

static void order(host_ranks *h, const frame *f)
{
    remote_ranks *r = (remote_ranks *)h;
    send_now(r, f);
    if (f->type == FRAME_INPUT)
        h->hungry = false;
    if (f->type != FRAME_KILL)
        return;
    h->alive = 0; /* so that no loss is reported */
    if (r->pid > 0)
        kill(r->pid, SIGTERM);
    close_connection(r);
    fd_close(&r->error);
}

static void free_remote(host_ranks *h)
{
    remote_ranks *r = (remote_ranks *)h;
    order(h, &(frame){.type = FRAME_KILL});
    bytes_free(&r->to.waiting);
    bytes_free(&r->in);
    bytes_free(&r->error_line);
    free(r->ended);
    free(r);
}

static const host_ranks_ops operations = {.free = free_remote,
                                          .watch = watch,
                                          .tick = tick,
                                          .order = order};

ring_status remote_open(const share *s, const texts *command, const rank_events *events, console *c,
                        host_ranks **out)
{
    remote_ranks *r = memory_zeroed(1, sizeof *r);
    *r = (remote_ranks){
        .head = {.ops = &operations, .s = s, .events = *events, .due = HUGE_VAL, .alive = s->ranks},
        .console = c,
        .to.fd = -1,
        .from = -1,
        .error = -1,
        .ended = memory_zeroed((size_t)s->ranks, sizeof *r->ended)};
    *out = &r->head;
    return start_ssh(r, command);
}
