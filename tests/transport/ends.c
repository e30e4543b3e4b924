/* SPDX-License-Identifier: Apache-2.0
 * The two ends of a link under test. */
#include "ends.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    const transport *transport;
    const char *fault[2]; /* of RANK_A, RANK_B */
} chosen;

void must_at(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: not true: %s; last error: \"%s\"\n", file, line, text, fail_text());
    _exit(1);
}

void must_be_at(ring_status status, ring_status expected, const char *text, const char *file,
                int line)
{
    if (status == expected)
        return;
    fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"; last error: \"%s\"\n", file, line, text,
            ring_status_string(status), ring_status_string(expected), fail_text());
    _exit(1);
}

/* ---- Which transport ---- */

static int index_of(int rank)
{
    return rank == RANK_A ? 0 : 1;
}

bool ends_choose(const char *name)
{
    static const char prefix[] = "fault_";
    if (strncmp(name, prefix, strlen(prefix)) == 0) {
        name += strlen(prefix);
        ends_set_fault(RANK_A, "seed=1");
        ends_set_fault(RANK_B, "seed=1");
    }
    char why[256] = "";
    chosen.transport = transport_find(name);
    if (chosen.transport == NULL)
        return false;
    if (!chosen.transport->probe(why, sizeof why)) {
        printf("skipped: %s does not work here: %s\n", name, why);
        exit(SKIPPED);
    }
    return true;
}

const transport *ends_transport(void)
{
    return chosen.transport;
}

void ends_set_fault(int rank, const char *spec)
{
    chosen.fault[index_of(rank)] = spec;
}

/* ---- Opening ---- */

static void tcp_sockets(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(door >= 0 && bind(door, (struct sockaddr *)&at, sizeof at) == 0 && listen(door, 1) == 0);
    must(getsockname(door, (struct sockaddr *)&at, &length) == 0);
    must(fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&at, sizeof at) == 0);
    fds[1] = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    must(fds[1] >= 0);
    fd_close(&door);
}

void ends_sockets(int fds[2])
{
    const unsigned local = TRANSPORT_SAME_PROCESS | TRANSPORT_SAME_HOST;
    if (chosen.transport->powers & local)
        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    else
        tcp_sockets(fds);
}

ring_status end_try_open(int rank, enum transport_lane lane, int fd, double seconds,
                         transport_link **out)
{
    const transport_peer peer = {.rank = rank,
                                 .peer = rank == RANK_A ? RANK_B : RANK_A,
                                 .lane = lane,
                                 .fd = fd,
                                 .deadline = clock_now() + seconds};
    RING_TRY(chosen.transport->open(&peer, out));
    const char *fault = chosen.fault[index_of(rank)];
    return fault != NULL ? transport_fault_wrap(*out, fault, out) : RING_OK;
}

transport_link *end_open(int rank, enum transport_lane lane, int fd)
{
    transport_link *l;
    must_ok(end_try_open(rank, lane, fd, PATIENCE, &l));
    must(l->peer == (rank == RANK_A ? RANK_B : RANK_A));
    return l;
}

void end_close(transport_link *l)
{
    l->transport->close(l);
}

/** One end for another thread. */
typedef struct end_job {
    int fd;
    enum transport_lane lane;
    transport_link *link;
    void (*run)(transport_link *l); /* NULL: only opens */
} end_job;

static void *end_thread(void *argument)
{
    end_job *job = argument;
    job->link = end_open(RANK_B, job->lane, job->fd);
    if (job->run != NULL) {
        job->run(job->link);
        end_close(job->link);
    }
    return NULL;
}

ends ends_open(enum transport_lane lane)
{
    int fds[2];
    ends_sockets(fds);
    end_job job = {.fd = fds[1], .lane = lane};
    pthread_t thread;
    must(pthread_create(&thread, NULL, end_thread, &job) == 0);
    transport_link *a = end_open(RANK_A, lane, fds[0]);
    must(pthread_join(thread, NULL) == 0);
    return (ends){.a = a, .b = job.link};
}

void ends_close(ends *e)
{
    end_close(e->a);
    end_close(e->b);
}

/* ---- Running apart ---- */

pid_t ends_fork(void (*run)(int fd), int *fd)
{
    int fds[2];
    ends_sockets(fds);
    fflush(NULL);
    const pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        fd_close(&fds[0]);
        run(fds[1]);
        _exit(0);
    }
    fd_close(&fds[1]);
    *fd = fds[0];
    return child;
}

static void (*child_end)(transport_link *l);

static void run_child_end(int fd)
{
    transport_link *l = end_open(RANK_B, TRANSPORT_COLLECTIVE, fd);
    child_end(l);
    end_close(l);
}

static void run_end_a(void (*run)(transport_link *l), int fd)
{
    transport_link *l = end_open(RANK_A, TRANSPORT_COLLECTIVE, fd);
    run(l);
    end_close(l);
}

static void run_as_processes(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l))
{
    int fd, status;
    child_end = run_b;
    const pid_t child = ends_fork(run_child_end, &fd);
    run_end_a(run_a, fd);
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run_as_threads(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l))
{
    int fds[2];
    ends_sockets(fds);
    end_job job = {.fd = fds[1], .lane = TRANSPORT_COLLECTIVE, .run = run_b};
    pthread_t thread;
    must(pthread_create(&thread, NULL, end_thread, &job) == 0);
    run_end_a(run_a, fds[0]);
    must(pthread_join(thread, NULL) == 0);
}

void ends_run(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l))
{
    if (chosen.transport->powers & TRANSPORT_SAME_PROCESS)
        run_as_threads(run_a, run_b);
    else
        run_as_processes(run_a, run_b);
}

/* ---- Frames ---- */

uint64_t scramble(uint64_t n)
{
    n = (n + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    n = (n ^ (n >> 29)) * 0x94d049bb133111ebu;
    return n ^ (n >> 32);
}

transport_frame frame_make(uint64_t n, size_t bytes)
{
    const uint64_t x = scramble(n);
    return (transport_frame){.comm = (uint16_t)x,
                             .epoch = (uint16_t)(x >> 16),
                             .seq = n,
                             .message = (uint32_t)(x >> 8),
                             .segment = (uint32_t)(x >> 24),
                             .bytes = bytes,
                             .collective = (uint8_t)(x >> 40),
                             .dtype = (uint8_t)(x >> 48),
                             .op = (uint8_t)(x >> 56),
                             .root = (int32_t)(uint32_t)(x >> 4),
                             .count = ~x,
                             .src_ref = x * 3,
                             .dst_ref = x * 5};
}

void frame_check(const transport_frame *frame, uint64_t n, size_t bytes)
{
    transport_frame expected = frame_make(n, bytes);
    expected.turn = frame->turn;
    expected.flags = frame->flags;
    must(frame->seq == n);
    must(memcmp(frame, &expected, sizeof expected) == 0);
}

void payload_fill(void *payload, uint64_t n, size_t bytes)
{
    unsigned char *at = payload;
    uint64_t word = scramble(n);
    for (size_t i = 0; i < bytes; i += sizeof word, word += 0x9e3779b97f4a7c15u)
        memcpy(at + i, &word, min_size(sizeof word, bytes - i));
}

void payload_check(const void *payload, uint64_t n, size_t bytes)
{
    const unsigned char *at = payload;
    uint64_t word = scramble(n);
    for (size_t i = 0; i < bytes; i += sizeof word, word += 0x9e3779b97f4a7c15u)
        must(memcmp(at + i, &word, min_size(sizeof word, bytes - i)) == 0);
}

/* ---- Moving them ---- */

void end_idle(transport_link *l, bool wants_send, unsigned *turns)
{
    const transport *t = l->transport;
    must_ok(t->progress(l));
    if (!wait_politely(turns))
        return;
    if (!t->arm(l, wants_send))
        return;
    struct pollfd entry = {.fd = t->wake_fd(l), .events = POLLIN};
    must(poll(&entry, 1, (int)(PATIENCE * 1e3)) == 1);
    t->disarm(l);
}

void end_send(transport_link *l, const transport_frame *frame, const void *payload)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    unsigned turns = 0;
    while ((status = l->transport->send(l, frame, payload)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        end_idle(l, true, &turns);
    }
    must_ok(status);
}

/* @return true if the oldest frame is here with all it carries. */
static bool is_here(transport_link *l, const transport_frame **frame, const void **payload)
{
    const ring_status status = l->transport->peek(l, frame, payload);
    if (status == RING_IN_PROGRESS)
        return false;
    must_ok(status);
    return *payload != NULL || (*frame)->flags != 0 || (*frame)->bytes == 0;
}

const transport_frame *end_receive(transport_link *l, const void **payload)
{
    const double give_up = clock_now() + PATIENCE;
    const transport_frame *frame;
    unsigned turns = 0;
    while (!is_here(l, &frame, payload)) {
        must(clock_now() < give_up);
        end_idle(l, false, &turns);
    }
    return frame;
}

const transport_frame *ends_receive(transport_link *from, transport_link *to,
                                    const void **payload)
{
    const double give_up = clock_now() + PATIENCE;
    const transport_frame *frame;
    while (!is_here(to, &frame, payload)) {
        must(clock_now() < give_up);
        must_ok(from->transport->progress(from));
        must_ok(to->transport->progress(to));
    }
    return frame;
}

void end_pull(transport_link *l, void *dst)
{
    const double give_up = clock_now() + PATIENCE;
    ring_status status;
    unsigned turns = 0;
    while ((status = l->transport->pull(l, dst)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        end_idle(l, false, &turns);
    }
    must_ok(status);
}

void end_flush(transport_link *l)
{
    const double give_up = clock_now() + PATIENCE;
    unsigned turns = 0;
    while (l->transport->flushed(l) < l->frames_sent) {
        must(clock_now() < give_up);
        end_idle(l, true, &turns);
    }
}

/* Throws away the oldest frame, and the next, … until there is no whole one. */
static ring_status drain(transport_link *l)
{
    const transport *t = l->transport;
    const transport_frame *frame;
    const void *payload;
    ring_status status = t->progress(l);
    if (status != RING_OK)
        return status;
    while ((status = t->peek(l, &frame, &payload)) == RING_OK) {
        if (payload == NULL && frame->flags == 0 && frame->bytes > 0)
            return RING_IN_PROGRESS;
        t->consume(l);
    }
    return status;
}

static void expect_text_names(int peer)
{
    char rank[32];
    must(text_format(rank, sizeof rank, "rank %d", peer));
    must(strstr(fail_text(), rank) != NULL);
}

static void expect_stays_broken(transport_link *l, int peer)
{
    const transport *t = l->transport;
    const transport_frame *frame = NULL;
    const transport_frame empty = {0};
    const void *payload;
    must(!t->arm(l, false));
    must(t->reserve(l) == NULL);
    fail_clear();
    must_be(t->send(l, &empty, NULL), RING_ERR_PEER);
    expect_text_names(peer);
    must_be(t->peek(l, &frame, &payload), RING_ERR_PEER);
    must_be(t->progress(l), RING_ERR_PEER);
}

void end_expect_broken(transport_link *l, int peer, double seconds)
{
    const transport *t = l->transport;
    const double give_up = clock_now() + seconds;
    ring_status status;
    while ((status = drain(l)) == RING_IN_PROGRESS) {
        must(clock_now() < give_up);
        if (!t->arm(l, false))
            continue;
        struct pollfd entry = {.fd = t->wake_fd(l), .events = POLLIN};
        must(poll(&entry, 1, (int)(seconds * 1e3)) == 1);
        t->disarm(l);
    }
    must_be(status, RING_ERR_PEER);
    expect_text_names(peer);
    expect_stays_broken(l, peer);
}
