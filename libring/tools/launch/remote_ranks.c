/* SPDX-License-Identifier: Apache-2.0
 * The near side of a connection to another host. */
#include "remote_ranks.h"

#include "launch_frames.h"
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
    GREETING_MAX = 65536,
    PATIENCE_LOOKS = 50,
    CODE_LOST = 255,
    CODE_NOT_FOUND = 127
};

typedef struct remote {
    host_ranks head;
    const share *s;
    launch_events events;
    console *console;
    pid_t pid; /* of ssh, 0 once it was reaped                    */
    int to, from, error;
    bytes out, in, error_line;
    bool greeted; /* the mark has come: frames from here on          */
    bool ready, hungry, started;
    bool *ended; /* [s->ranks] ends reported by the far side */
    int alive;   /* ranks not ended                                 */
    char address[64];
    char last_error[256]; /* ssh's or the far shell's last line          */
} remote;

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

/* Only the path of ringrun meets the shell there. */
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

static ring_status start_ssh(remote *r, const texts *command)
{
    char path[4096];
    int in[2] = {-1, -1}, out[2] = {-1, -1}, error[2] = {-1, -1};
    if (!spawn_find(command->items[0], path, sizeof path))
        return fail(RING_ERR_SYSTEM, "there is no ssh in PATH, which other hosts are reached by; "
                                     "install it (Debian: openssh-client)");
    RING_TRY(spawn_pipe(in, 1));
    RING_TRY(spawn_pipe(out, 0));
    RING_TRY(spawn_pipe(error, 0));
    r->to = in[1];
    r->from = out[0];
    r->error = error[0];
    r->pid = spawn_start(&(spawn_plan){.path = path,
                                       .argv = command->items,
                                       .env = environ,
                                       .fds = {in[0], out[1], error[1]},
                                       .keep_fd = -1});
    const int saved_errno = errno;
    close(in[0]);
    close(out[1]);
    close(error[1]);
    errno = saved_errno;
    return r->pid > 0 ? RING_OK : fail(RING_ERR_SYSTEM, "starting ssh: %m");
}

/* ---- Frames to the far side ------------------------------------------------------------- */

static void write_frames(void *context)
{
    remote *r = context;
    if (r->to < 0)
        return;
    const ssize_t put = write(r->to, bytes_head(&r->out), bytes_count(&r->out));
    if (put > 0)
        bytes_drop(&r->out, (size_t)put);
    else if (put < 0 && errno != EAGAIN && errno != EINTR)
        fd_close(&r->to); /* the other direction gives the reason */
}

static void put(remote *r, enum frame_type type, int stream, int rank, const char *data,
                size_t count)
{
    if (r->to < 0)
        return;
    frames_put(&r->out, type, stream, rank, data, count);
    write_frames(r);
}

/* ---- What comes ----------------------------------------------------------------------- */

/* ssh ended, and with it all ranks there that had not. One of them is reported for all. */
static void report_lost(remote *r, int wait_status)
{
    rank_end end = {.rank = r->s->first_rank, .code = CODE_LOST};
    const bool not_found = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == CODE_NOT_FOUND;
    const char *said = r->last_error[0] != '\0' ? r->last_error : "no word from it";
    if (!r->greeted && not_found) {
        end.code = CODE_NOT_FOUND;
        snprintf(end.why, sizeof end.why,
                 "was not started: ringrun is not there under the same path (%.150s); install "
                 "libring there too, or give --remote-ringrun",
                 said);
    } else if (!r->greeted) {
        snprintf(end.why, sizeof end.why,
                 "was not started: ssh to the host failed (%.150s); 'ssh %.60s true' must work "
                 "without a question",
                 said, r->s->host);
    } else {
        snprintf(end.why, sizeof end.why, "was lost: the connection to the host ended (%.150s)",
                 said);
    }
    r->events.ended(r->events.context, &end);
}

/* Each line once, named by the host. */
static void take_error_lines(remote *r, bool rest)
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
            console_host(r->console, r->s->host, head, shown);
        bytes_drop(&r->error_line, length + (end != NULL));
    }
}

static void read_errors(void *context)
{
    remote *r = context;
    const ssize_t got = bytes_read(&r->error_line, r->error, 1024);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    take_error_lines(r, got <= 0);
    if (got <= 0)
        fd_close(&r->error);
}

/* @return its wait status; ssh ends by itself once the connection has, or is made to. */
static int reap_ssh(remote *r)
{
    int status = -1;
    for (int look = 0; r->pid > 0; look++) {
        status = spawn_reap(r->pid);
        if (status >= 0)
            r->pid = 0;
        else if (look == PATIENCE_LOOKS)
            kill(r->pid, SIGKILL);
        else
            clock_sleep(0.002);
    }
    return status;
}

static void close_connection(remote *r)
{
    fd_close(&r->to);
    fd_close(&r->from);
    const int status = reap_ssh(r);
    while (r->error >= 0 && readable(r->error))
        read_errors(r); /* its last line gives the reason */
    if (r->alive > 0) {
        r->alive = 0;
        report_lost(r, status);
    }
}

static void take_hello(remote *r, const frame *f)
{
    if (f->rank != RING_VERSION_CODE) {
        snprintf(r->last_error, sizeof r->last_error, "its ringrun is of another version");
        close_connection(r);
        return;
    }
    snprintf(r->address, sizeof r->address, "%.*s", (int)min_size(f->bytes, 63), f->data);
    r->ready = true;
}

static void take_end(remote *r, const frame *f)
{
    rank_end end;
    const int index = f->rank - r->s->first_rank;
    if (!frames_get_end(f, &end) || r->ended[index])
        return;
    r->ended[index] = true;
    r->alive--;
    r->events.ended(r->events.context, &end);
}

static void take_frame(remote *r, const frame *f)
{
    const bool mine = f->rank >= r->s->first_rank && f->rank < r->s->first_rank + r->s->ranks;
    if (f->type == FRAME_HELLO && !r->ready)
        take_hello(r, f);
    else if (f->type == FRAME_HUNGRY)
        r->hungry = true;
    else if (f->type == FRAME_ENDED && mine)
        take_end(r, f);
    else if (f->type == FRAME_OUTPUT && mine && (f->stream == 1 || f->stream == 2) &&
             !r->events.output(r->events.context, f->rank, f->stream, f->data, f->bytes))
        put(r, FRAME_MUTE, f->stream, f->rank, NULL, 0);
}

/* Skips output of the shell before ringrun's mark. */
static void skip_greeting(remote *r)
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

static void take_frames(remote *r)
{
    frame f;
    int there;
    while (r->from >= 0 && (there = frames_peek(&r->in, &f)) != 0) {
        if (there < 0) {
            snprintf(r->last_error, sizeof r->last_error, "it sent damaged data");
            close_connection(r);
            return;
        }
        take_frame(r, &f);
        frames_done(&r->in, &f);
    }
}

static void read_frames(void *context)
{
    remote *r = context;
    const ssize_t got = r->from >= 0 ? bytes_read(&r->in, r->from, READ_BYTES) : -1;
    if (r->from < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (!r->greeted)
        skip_greeting(r);
    if (r->greeted)
        take_frames(r);
    if (got <= 0)
        close_connection(r);
}

static void collect(host_ranks *h)
{
    remote *r = (remote *)h;
    siginfo_t info = {.si_pid = 0};
    if (r->pid <= 0 || waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return;
    while (r->from >= 0 && readable(r->from))
        read_frames(r); /* frames received before */
    if (r->from >= 0)
        close_connection(r);
}

/* ---- What goes ------------------------------------------------------------------------- */

static void watch(host_ranks *h, poll_set *set)
{
    remote *r = (remote *)h;
    if (r->error >= 0)
        poll_set_add(set, r->error, POLLIN, read_errors, r);
    if (r->from >= 0 && r->events.ready(r->events.context, 1) &&
        r->events.ready(r->events.context, 2))
        poll_set_add(set, r->from, POLLIN, read_frames, r);
    if (r->to >= 0 && bytes_count(&r->out) > 0)
        poll_set_add(set, r->to, POLLOUT, write_frames, r);
}

void remote_start(host_ranks *h, const job *j)
{
    remote *r = (remote *)h;
    bytes packed = {0};
    job_pack(j, r->s, &packed);
    put(r, FRAME_JOB, 0, 0, packed.data, bytes_count(&packed));
    explicit_bzero(packed.data, packed.end);
    bytes_free(&packed);
}

static void send_signal(host_ranks *h, int signal_number)
{
    put((remote *)h, FRAME_SIGNAL, 0, signal_number, NULL, 0);
}

static void stop(host_ranks *h)
{
    put((remote *)h, FRAME_STOP, 0, 0, NULL, 0);
}

static void cut_off(host_ranks *h)
{
    remote *r = (remote *)h;
    put(r, FRAME_KILL, 0, 0, NULL, 0);
    r->alive = 0;
    if (r->pid > 0)
        kill(r->pid, SIGTERM);
    close_connection(r);
    fd_close(&r->error);
}

static bool is_hungry(const host_ranks *h)
{
    const remote *r = (const remote *)h;
    return r->hungry && r->to >= 0;
}

static void feed(host_ranks *h, const char *data, size_t count)
{
    remote *r = (remote *)h;
    r->hungry = false;
    put(r, FRAME_INPUT, 0, 0, data, count);
}

/* ---- What is known ---------------------------------------------------------------------- */

bool remote_ready(const host_ranks *h)
{
    return ((const remote *)h)->ready;
}

const char *remote_address(const host_ranks *h)
{
    return ((const remote *)h)->address;
}

static int count_alive(const host_ranks *h)
{
    return ((const remote *)h)->alive;
}

static bool is_done(const host_ranks *h)
{
    return ((const remote *)h)->from < 0;
}

/* Deadlines are the far side's. */
static void no_tick(host_ranks *h)
{
    (void)h;
}

static double never(const host_ranks *h)
{
    (void)h;
    return HUGE_VAL;
}

/* ---- Life -------------------------------------------------------------------------------- */

static void free_remote(host_ranks *h)
{
    remote *r = (remote *)h;
    cut_off(h);
    bytes_free(&r->out);
    bytes_free(&r->in);
    bytes_free(&r->error_line);
    free(r->ended);
    free(r);
}

static const host_ranks_ops operations = {
    .free = free_remote,
    .watch = watch,
    .collect = collect,
    .tick = no_tick,
    .due = never,
    .signal = send_signal,
    .stop = stop,
    .kill = cut_off,
    .hungry = is_hungry,
    .feed = feed,
    .alive = count_alive,
    .done = is_done,
};

ring_status remote_open(const share *s, const texts *command, const launch_events *events,
                        console *c, host_ranks **out)
{
    remote *r = memory_grow(NULL, 1, sizeof *r);
    *r = (remote){.head.ops = &operations,
                  .s = s,
                  .events = *events,
                  .console = c,
                  .to = -1,
                  .from = -1,
                  .error = -1,
                  .alive = s->ranks};
    r->ended = memory_grow(NULL, (size_t)s->ranks, sizeof *r->ended);
    memset(r->ended, 0, (size_t)s->ranks * sizeof *r->ended);
    *out = &r->head;
    return start_ssh(r, command);
}
