/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes the two ends of a link under test, over a socket pair or a network. */
#include "ends.h"

#include "heap.h"
#include "nic.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    const transport *transport;
    const char *fault[2]; /* of RANK_A, RANK_B */
    bool plain;           /* no checksums */
    bool encrypts;
    transport_keys keys[2]; /* of RANK_A, RANK_B */
    const transport_ib *ib;
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

void ends_use_checksums(bool use)
{
    chosen.plain = !use;
}

void ends_use_ib(const transport_ib *ib)
{
    chosen.ib = ib;
}

static int index_of(int rank)
{
    return rank == RANK_A ? 0 : 1;
}

bool ends_use_cipher(const char *name)
{
    transport_keys *keys = chosen.keys;
    if (sodium_init() < 0)
        return false;
    if (strcmp(name, "aes256gcm") != 0 && strcmp(name, "chacha20") != 0)
        return false;
    chosen.encrypts = true;
    keys->cipher = strcmp(name, "chacha20") == 0 ? TRANSPORT_CHACHA20 : TRANSPORT_AES256GCM;
    if (keys->cipher == TRANSPORT_AES256GCM && !crypto_aead_aes256gcm_is_available()) {
        printf("SKIPPED: this processor has no instructions for AES-256-GCM\n");
        exit(SKIPPED);
    }
    memset(keys[0].out, 'A', sizeof keys[0].out);
    memset(keys[0].in, 'B', sizeof keys[0].in);
    keys[1] = keys[0];
    memcpy(keys[1].out, keys[0].in, sizeof keys[1].out);
    memcpy(keys[1].in, keys[0].out, sizeof keys[1].in);
    return true;
}

const transport_keys *ends_keys(int rank)
{
    return chosen.encrypts ? &chosen.keys[index_of(rank)] : NULL;
}

/* "CIPHER_tcp" becomes "tcp". */
static const char *take_cipher(const char *name)
{
    char cipher[16];
    const size_t length = strcspn(name, "_");
    text_format(cipher, sizeof cipher, "%.*s", (int)length, name);
    return name[length] == '_' && ends_use_cipher(cipher) ? name + length + 1 : name;
}

bool ends_choose(const char *name)
{
    static const char prefix[] = "fault_";
    name = take_cipher(name);
    if (strncmp(name, prefix, strlen(prefix)) == 0) {
        name += strlen(prefix);
        ends_set_fault(RANK_A, "seed=1");
        ends_set_fault(RANK_B, "seed=1");
    }
    char why[256] = "";
    chosen.transport = transport_find(name);
    if (chosen.transport == NULL)
        return false;
    if (!chosen.transport->probe(NULL, why, sizeof why)) {
        printf("SKIPPED: %s does not work here: %s\n", name, why);
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

/* Two ends over verbs are threads: its double has queue pairs of one process only. */
static bool is_one_process(void)
{
    return (chosen.transport->powers & TRANSPORT_SAME_PROCESS) != 0 ||
           strcmp(chosen.transport->name, "verbs") == 0;
}

/* ---- Settling ---- */

enum { MOST_ENDS = 8 };
static _Thread_local transport_link *own[MOST_ENDS]; /* of this thread */

static void adopt(transport_link *l)
{
    for (int i = 0; i < MOST_ENDS; i++) {
        if (own[i] != NULL)
            continue;
        own[i] = l;
        return;
    }
    must(false);
}

void end_disown(const transport_link *l)
{
    for (int i = 0; i < MOST_ENDS; i++)
        own[i] = own[i] != l ? own[i] : NULL;
}

/* Waits until the peer has received all frames and counts of this end, or can receive nothing any
 * more. */
static void settle(transport_link *l)
{
    double end = clock_now() + 0.25;
    uint64_t before = 0;
    while (l->transport->progress(l) == RING_OK && clock_now() < end) {
        const uint64_t flushed = l->transport->flushed(l);
        if (flushed == l->frames_sent && l->transport->announced(l))
            return;
        if (flushed != before)
            end = clock_now() + 0.25;
        before = flushed;
        nic_settle(); /* its thread gets the core */
    }
}

void ends_settle(void)
{
    nic_settle();
    for (int i = 0; i < MOST_ENDS; i++)
        if (own[i] != NULL && (own[i]->transport->powers & TRANSPORT_REACHES) != 0)
            settle(own[i]);
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

static void await_answer(transport_link *l)
{
    const double end = clock_now() + PATIENCE;
    void *shared;
    must_ok(heap_alloc(&shared, 1));
    while (l->transport->ref(l, shared, 1) == 0)
        must(clock_now() < end);
    must_ok(heap_free(shared));
}

/* Waits until both ends have greeted and, if the link maps memory, until the peer has announced
 * that it has mapped it. */
static ring_status await_open(transport_link *l, double deadline)
{
    ring_status status;
    while ((status = l->transport->progress(l)) == RING_IN_PROGRESS && clock_now() < deadline)
        clock_sleep(1e-5);
    if (status == RING_IN_PROGRESS)
        return fail(RING_ERR_TIMEOUT, "the end at rank %d is not open", l->peer);
    if (status == RING_OK && (l->transport->powers & TRANSPORT_CAN_MAP))
        await_answer(l);
    return status;
}

ring_status end_try_open(int rank, int fd, double seconds, transport_link **out)
{
    const transport_peer peer = {.rank = rank,
                                 .peer = rank == RANK_A ? RANK_B : RANK_A,
                                 .fd = fd,
                                 .checksum = !chosen.plain,
                                 .keys = ends_keys(rank),
                                 .ib = chosen.ib};
    RING_TRY(chosen.transport->open(&peer, out));
    const ring_status status = await_open(*out, clock_now() + seconds);
    if (status != RING_OK) {
        end_close(*out);
        return status;
    }
    const char *fault = chosen.fault[index_of(rank)];
    if (fault != NULL)
        RING_TRY(transport_fault_wrap(*out, fault, out));
    adopt(*out);
    return RING_OK;
}

transport_link *end_open(int rank, int fd)
{
    transport_link *l;
    must_ok(end_try_open(rank, fd, PATIENCE, &l));
    must(l->peer == (rank == RANK_A ? RANK_B : RANK_A));
    return l;
}

void end_close(transport_link *l)
{
    end_disown(l);
    l->transport->close(l);
}

/** The arguments of one end that another thread opens. */
typedef struct end_job {
    int fd;
    transport_link *link;
    void (*run)(transport_link *l); /* NULL: only opens */
} end_job;

static void *end_thread(void *argument)
{
    end_job *job = argument;
    job->link = end_open(RANK_B, job->fd);
    if (job->run != NULL) {
        job->run(job->link);
        end_close(job->link);
    }
    return NULL;
}

ends ends_open(void)
{
    int fds[2];
    ends_sockets(fds);
    end_job job = {.fd = fds[1]};
    pthread_t thread;
    must(pthread_create(&thread, NULL, end_thread, &job) == 0);
    transport_link *a = end_open(RANK_A, fds[0]);
    must(pthread_join(thread, NULL) == 0);
    adopt(job.link);
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
    transport_link *l = end_open(RANK_B, fd);
    child_end(l);
    end_close(l);
}

static void run_end_a(void (*run)(transport_link *l), int fd)
{
    transport_link *l = end_open(RANK_A, fd);
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
    end_job job = {.fd = fds[1], .run = run_b};
    pthread_t thread;
    must(pthread_create(&thread, NULL, end_thread, &job) == 0);
    run_end_a(run_a, fds[0]);
    must(pthread_join(thread, NULL) == 0);
}

void ends_run(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l))
{
    if (is_one_process())
        run_as_threads(run_a, run_b);
    else
        run_as_processes(run_a, run_b);
}
