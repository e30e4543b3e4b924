/* SPDX-License-Identifier: Apache-2.0
 * Ranks as threads and as processes, and the full start that most tests go through. */
#include "ranks.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRAFFIC_KINDS = 2 };

void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

void shared_free(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

double seconds_allowed(double ordered)
{
    return getenv("RING_TEST_TIMED") != NULL ? ordered : 60 + ordered;
}

crew *crew_new(int size)
{
    crew *c = shared_memory(sizeof *c);
    c->started = size;
    for (int i = 0; i < RANKS_MAX; i++)
        c->ranks[i] = i;
    return c;
}

void crew_free(crew *c)
{
    shared_free(c, sizeof *c);
}

/* ---- Running ----------------------------------------------------------------------- */

typedef struct job {
    crew *crew;
    int index, size;
    rank_body body;
    void *context;
} job;

static void run_one(const job *j)
{
    outcome *o = &j->crew->outcomes[j->index];
    const double start = clock_now();
    fail_clear();
    o->status = j->body(j->crew->ranks[j->index], j->size, j->context);
    snprintf(o->text, sizeof o->text, "%s", o->status == RING_OK ? "" : fail_text());
    o->seconds = clock_now() - start;
}

static void *thread_main(void *context)
{
    run_one(context);
    return NULL;
}

void crew_threads(crew *c, int size, rank_body body, void *context)
{
    pthread_t threads[RANKS_MAX];
    job jobs[RANKS_MAX];
    for (int i = 0; i < c->started; i++) {
        jobs[i] = (job){c, i, size, body, context};
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &jobs[i]), 0);
    }
    for (int i = 0; i < c->started; i++)
        pthread_join(threads[i], NULL);
}

void crew_fork(crew *c, int size, rank_body body, void *context)
{
    for (int i = 0; i < c->started; i++) {
        const job j = {c, i, size, body, context};
        c->outcomes[i].status = RING_ERR_INTERNAL; /* until it says otherwise */
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            run_one(&j);
            _exit(0);
        }
        c->pids[i] = pid; /* shared memory: by the parent only */
    }
}

void crew_wait(crew *c)
{
    for (int i = 0; i < c->started; i++) {
        int how = 0;
        waitpid(c->pids[i], &how, 0);
        if (how != 0 && c->outcomes[i].text[0] == '\0')
            snprintf(c->outcomes[i].text, sizeof c->outcomes[i].text, "ended by %s %d",
                     WIFSIGNALED(how) ? "signal" : "exit status",
                     WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
}

void crew_processes(crew *c, int size, rank_body body, void *context)
{
    crew_fork(c, size, body, context);
    crew_wait(c);
}

void outcome_assert(const outcome *o, ring_status status, const char *part)
{
    if (o->status != status || strstr(o->text, part) == NULL)
        stop_test("got status %d \"%s\", wanted %d with \"%s\"\n", (int)o->status, o->text,
                  (int)status, part);
}

void crew_assert_all(const crew *c, ring_status status)
{
    for (int i = 0; i < c->started; i++)
        if (c->outcomes[i].status != status)
            stop_test("rank %d: status %d, wanted %d: %s\n", c->ranks[i],
                      (int)c->outcomes[i].status, (int)status, c->outcomes[i].text);
}

/* ---- A full start ------------------------------------------------------------------ */

static ring_status check_cards(const control_world *w)
{
    for (int r = 0; r < w->size; r++) {
        const control_card *card = &w->cards[r];
        if (card->rank != r || card->pid <= 0 || card->hostname[0] == '\0' ||
            card->transports != 5u || memcmp(card->host, w->cards[0].host, 16) != 0)
            return fail(RING_ERR_INTERNAL, "the card of rank %d is wrong", r);
        const bool same = memcmp(card->process, w->cards[w->rank].process, 16) == 0;
        if (same != (card->pid == w->cards[w->rank].pid))
            return fail(RING_ERR_INTERNAL, "rank %d: same process or not?", r);
    }
    return RING_OK;
}

static int family_of(int fd)
{
    int family = 0;
    socklen_t size = sizeof family;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    return family;
}

/* Exchanges rank and traffic: proves that each socket leads to the right peer. */
static ring_status greet(const control_world *w, int peer, int traffic, int fd, bool local)
{
    int32_t mine[2] = {w->rank, traffic}, theirs[2] = {-1, -1};
    if ((family_of(fd) == AF_UNIX) != local)
        return fail(RING_ERR_INTERNAL, "wrong family of the link to rank %d", peer);
    RING_TRY(fd_write_all(fd, mine, sizeof mine, w->deadline));
    RING_TRY(fd_read_all(fd, theirs, sizeof theirs, w->deadline));
    if (theirs[0] != peer || theirs[1] != traffic)
        return fail(RING_ERR_INTERNAL, "the link to rank %d leads to rank %d", peer, theirs[0]);
    return RING_OK;
}

static bool is_local(const control_world *w, int peer)
{
    return (peer + w->rank) % 2 == 1;
}

typedef struct sockets {
    _Atomic int fds[TRAFFIC_KINDS][RANKS_MAX];
    _Atomic int failed; /* the status of a dial, with its text */
    char text[256];
} sockets;

static ring_status greet_all(const control_world *w, sockets *s)
{
    for (int r = 0; r < w->size; r++)
        for (int traffic = 0; traffic < TRAFFIC_KINDS && r != w->rank; traffic++)
            RING_TRY(greet(w, r, traffic, s->fds[traffic][r], is_local(w, r)));
    return RING_OK;
}

static bool take(void *context, int peer, const control_purpose *purpose, ring_status status,
                 const control_socket *socket)
{
    sockets *s = context;
    if (status == RING_OK) {
        atomic_store(&s->fds[purpose->traffic][peer], socket->fd);
    } else if (atomic_load(&s->failed) == RING_OK) {
        text_format(s->text, sizeof s->text, "%s", fail_text());
        atomic_store(&s->failed, (int)status);
    }
    return status == RING_OK;
}

static ring_status await_socket(const control_world *w, const sockets *s, int traffic, int peer)
{
    while (atomic_load(&s->fds[traffic][peer]) < 0) {
        if (control_verdict(w) != RING_OK)
            return fail(control_verdict(w), "%s", control_text(w));
        if (atomic_load(&s->failed) != RING_OK)
            return fail((ring_status)atomic_load(&s->failed), "%s", s->text);
        if (clock_now() > w->deadline)
            return fail(RING_ERR_TIMEOUT, "no socket to rank %d", peer);
        clock_sleep(0.0005);
    }
    return RING_OK;
}

/* Of each pair the higher rank dials. */
static ring_status connect_all(control_world *w, const sockets *s)
{
    for (int r = 0; r < w->rank; r++) {
        for (int traffic = 0; traffic < TRAFFIC_KINDS; traffic++) {
            const control_purpose purpose = {.traffic = (uint16_t)traffic, .local = is_local(w, r)};
            RING_TRY(control_dial(w, r, &purpose, w->deadline));
        }
    }
    for (int r = 0; r < w->size; r++)
        for (int traffic = 0; traffic < TRAFFIC_KINDS && r != w->rank; traffic++)
            RING_TRY(await_socket(w, s, traffic, r));
    return RING_OK;
}

static ring_status link_up(control_world *w)
{
    sockets s = {.failed = RING_OK};
    for (int i = 0; i < TRAFFIC_KINDS * RANKS_MAX; i++)
        atomic_init(&s.fds[i / RANKS_MAX][i % RANKS_MAX], -1);
    RING_TRY(check_cards(w));
    RING_TRY(control_agree(w, RING_OK));
    control_set_sink(w, take, &s);
    ring_status status = connect_all(w, &s);
    if (status == RING_OK)
        status = greet_all(w, &s);
    else
        control_announce(w, status);
    control_set_sink(w, NULL, NULL);
    for (int i = 0; i < TRAFFIC_KINDS * RANKS_MAX; i++) {
        int fd = atomic_load(&s.fds[i / RANKS_MAX][i % RANKS_MAX]);
        fd_close(&fd);
    }
    return control_agree(w, status);
}

ring_status try_world(control_world *world)
{
    const ring_status status = link_up(world);
    control_free(world);
    return status;
}

ring_unique_id new_id(void)
{
    settings s;
    ring_unique_id id;
    assert_int_equal(settings_read(&s), RING_OK);
    assert_int_equal(control_make_id(&s, &id), RING_OK);
    return id;
}

void no_wake(void *unused)
{
}

ring_status join_by_id(const ring_unique_id *id, int size, int rank, uint32_t transports,
                       control_world **out)
{
    settings s;
    *out = NULL;
    RING_TRY(settings_read(&s));
    return control_join(&s, id, size, rank, transports, NULL, out);
}

ring_status join_by_env(uint32_t transports, control_world **out)
{
    settings s;
    *out = NULL;
    RING_TRY(settings_read(&s));
    return control_join_env(&s, transports, out);
}

ring_status full_start(int rank, int size, void *id)
{
    control_world *world;
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    return try_world(world);
}

ring_status full_start_env(int rank, int size, void *unused)
{
    control_world *world;
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    RING_TRY(join_by_env(5, &world));
    return try_world(world);
}

/* ---- Small things ------------------------------------------------------------------ */

void set_number(const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%g", value);
    setenv(name, text, 1);
}

int set_timeouts(void **state)
{
    set_number("RING_INIT_TIMEOUT", 20);
    set_number("RING_PEER_TIMEOUT", 15);
    return 0;
}

static struct sockaddr_in local_port(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int listen_at(int port)
{
    const struct sockaddr_in at = local_port(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 100) != 0)
        fd_close(&fd);
    return fd;
}

int connect_to(int port)
{
    const struct sockaddr_in at = local_port(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        fd_close(&fd);
    return fd;
}

static bool all_free(int first, int count)
{
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        int fd = listen_at(first + i);
        ok = fd >= 0;
        fd_close(&fd);
    }
    return ok;
}

int free_ports(int count)
{
    static unsigned next;
    for (int tries = 0; tries < 1000; tries++) {
        const int first = 10000 + (int)(((unsigned)getpid() * 37 + 101 * next++) % 20000);
        if (all_free(first, count))
            return first;
    }
    stop_test("no free ports\n");
    return -1;
}

int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

bool is_root(void)
{
    return geteuid() == 0;
}

bool process_is_dead(pid_t pid)
{
    char path[32], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X'; /* it went meanwhile */
    fclose(file);
    return state == 'Z' || state == 'X';
}
