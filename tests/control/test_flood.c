/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts of ranks with long round trips while strangers open thousands of connections a second to
 * rank 0: all succeed, and hardly later than without the strangers. They say nothing, a byte,
 * noise, or a hello that nobody without the key can finish; from an address of their own, and from
 * that of the ranks. RING_TEST_STARTS: starts among strangers in all (16); RING_TEST_FLOOD:
 * connections a second (5000). */
#include "ranks.h"

#include "credential.h"
#include "handshake.h"
#include "slow_path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD = 800, RANKS_LEAST = 2, RANKS_MOST = 4 };
#define HEAD_START 0.05 /* s: of the strangers */
#define LATER_MOST 0.1  /* s: what they may cost */

static const double round_trips[] = {0, 0.02, 0.1, 0.2};
enum { ROUND_TRIPS = sizeof round_trips / sizeof round_trips[0] };
static const char *const sources[] = {"127.0.0.1", "127.0.0.2"};
enum { SOURCES = sizeof sources / sizeof sources[0] };

static double number_of(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtod(text, NULL) : otherwise;
}

/* ---- The strangers ----------------------------------------------------------------- */

enum { NOTHING, ONE_BYTE, NOISE, HELLO, KINDS };

typedef struct flood {
    atomic_int port, source; /* port 0: rest */
    atomic_long connections;
    atomic_bool stop;
    double rate;
    handshake_hello hello;
} flood;

static int connect_from(const char *source, int port)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger at_once = {.l_onoff = 1}; /* no port stays taken */
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    inet_pton(AF_INET, source, &from.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&from, sizeof from) != 0 ||
        (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS))
        fd_close(&fd);
    return fd;
}

static void be_strange(const flood *f, int kind, int fd)
{
    static const char noise[256] = "noise";
    if (kind == ONE_BYTE)
        (void)send(fd, "r", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (kind == NOISE)
        (void)send(fd, noise, sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (kind == HELLO)
        (void)send(fd, &f->hello, sizeof f->hello, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void keep_pace(const flood *f, double *next)
{
    const double now = clock_now();
    *next = *next < now - 0.01 ? now : *next + 1 / f->rate;
    if (*next > now)
        clock_sleep(*next - now);
}

static void flood_main(flood *f)
{
    int fds[HELD];
    double next = clock_now();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no stranger survives a failed test */
    memset(fds, -1, sizeof fds);
    for (int i = 0; !atomic_load(&f->stop); i++) {
        int *fd = &fds[i % HELD];
        const int port = atomic_load(&f->port);
        fd_close(fd);
        keep_pace(f, &next);
        *fd = port > 0 ? connect_from(sources[atomic_load(&f->source)], port) : -1;
        if (*fd < 0)
            continue;
        be_strange(f, i % KINDS, *fd);
        atomic_fetch_add(&f->connections, 1);
    }
    _exit(0);
}

static flood *flood_new(pid_t *pid)
{
    flood *f = shared_memory(sizeof *f);
    const handshake_terms terms = {.rank = 1, .size = RANKS_LEAST};
    const handshake_purpose purpose = {.kind = HANDSHAKE_JOIN};
    f->hello = handshake_hello_to(&terms, 0, &purpose);
    f->rate = number_of("RING_TEST_FLOOD", 5000);
    *pid = fork();
    if (*pid == 0)
        flood_main(f);
    return f;
}

static void flood_free(flood *f, pid_t pid)
{
    atomic_store(&f->stop, true);
    waitpid(pid, NULL, 0);
    shared_free(f, sizeof *f);
}

/* ---- A start ----------------------------------------------------------------------- */

typedef struct start {
    ring_unique_id here, afar; /* the same, for rank 0 and for the others */
    double seconds[RANKS_MOST];
} start;

static ring_status come(int rank, int size, void *context)
{
    start *s = context;
    control_world *world;
    if (rank > 0)
        clock_sleep(HEAD_START);
    const double began = clock_now();
    RING_TRY(join_by_id(rank == 0 ? &s->here : &s->afar, size, rank, 5, &world));
    const ring_status status = control_agree(world, RING_OK);
    s->seconds[rank] = rank > 0 ? clock_now() - began : 0;
    control_free(world);
    return status;
}

static int port_of(const ring_unique_id *id)
{
    credential c;
    assert_int_equal(credential_from_id(id, &c), RING_OK);
    return address_port(&c.at[0]);
}

/* The same key elsewhere. */
static ring_unique_id moved(const ring_unique_id *id, int port)
{
    credential c;
    ring_unique_id out;
    assert_int_equal(credential_from_id(id, &c), RING_OK);
    address_set_port(&c.at[0], port);
    credential_make_id(&c.at[0], false, &out);
    memcpy(out.bytes + 8, id->bytes + 8, sizeof c.key);
    return out;
}

/* @return what the slowest rank took; -1: it failed. */
static double time_start(slow_path *path, flood *f, bool among_strangers, int size)
{
    double slowest = 0;
    crew *c = crew_new(size);
    start s = {.here = new_id()};
    const int port = port_of(&s.here);
    s.afar = moved(&s.here, slow_path_port(path));
    slow_path_aim(path, port);
    atomic_store(&f->port, among_strangers ? port : 0);
    crew_threads(c, size, come, &s);
    atomic_store(&f->port, 0);
    for (int r = 0; r < size; r++) {
        slowest = s.seconds[r] > slowest ? s.seconds[r] : slowest;
        if (c->outcomes[r].status == RING_OK)
            continue;
        print_error("rank %d of %d: %s\n", r, size, c->outcomes[r].text);
        slowest = -1;
        break;
    }
    crew_free(c);
    return slowest;
}

/* ---- Many -------------------------------------------------------------------------- */

typedef struct times {
    double *took;
    int count, failures;
} times;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void note(times *t, double took)
{
    if (took < 0)
        t->failures++;
    else
        t->took[t->count++] = took;
}

static double at_share(times *t, double share)
{
    qsort(t->took, (size_t)t->count, sizeof *t->took, by_size);
    return t->count > 0 ? t->took[(int)(share * (t->count - 1))] : 0;
}

static void show(const char *what, times *t)
{
    print_message("  %-10s half within %.1f ms, 9 of 10 within %.1f, all within %.1f\n", what,
                  1e3 * at_share(t, 0.5), 1e3 * at_share(t, 0.9), 1e3 * at_share(t, 1));
}

/* Starts with and without take turns, so that a busy machine slows both. */
static void compare(double round_trip, int source, int starts, flood *f)
{
    times alone = {.took = calloc((size_t)starts, sizeof(double))};
    times among = {.took = calloc((size_t)starts, sizeof(double))};
    slow_path *path = slow_path_new(round_trip);
    const long before = atomic_load(&f->connections);
    double flooded = 0;
    atomic_store(&f->source, source);
    for (int i = 0; i < starts; i++) {
        const int size = RANKS_LEAST + i % (RANKS_MOST - RANKS_LEAST + 1);
        note(&alone, time_start(path, f, false, size));
        const double began = clock_now();
        note(&among, time_start(path, f, true, size));
        flooded += clock_now() - began;
    }
    slow_path_free(path);
    const double later = at_share(&among, 0.5) - at_share(&alone, 0.5);
    print_message("round trip %3.0f ms, %.0f strangers/s from %s: %d starts, %d failed\n",
                  1e3 * round_trip, (double)(atomic_load(&f->connections) - before) / flooded,
                  sources[source], starts, among.failures);
    show("alone", &alone);
    show("among them", &among);
    assert_int_equal(alone.failures + among.failures, 0);
    assert_true(later <= seconds_allowed(LATER_MOST));
    free(alone.took);
    free(among.took);
}

static void distant_ranks_start_on_time_among_strangers(void **state)
{
    pid_t pid;
    const int all = (int)number_of("RING_TEST_STARTS", 16);
    const int starts = all / (ROUND_TRIPS * SOURCES);
    flood *f = flood_new(&pid);
    for (int i = 0; i < ROUND_TRIPS; i++)
        for (int source = 0; source < SOURCES; source++)
            compare(round_trips[i], source, starts, f);
    flood_free(f, pid);
}

int main(void)
{
    set_number("RING_INIT_TIMEOUT", 10);
    setenv("RING_ADDR", "127.0.0.1", 1); /* where the slow path leads */
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distant_ranks_start_on_time_among_strangers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
