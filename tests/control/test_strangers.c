/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers at the listeners: whatever they send or do not send, members come in, and nothing
 * grows. RING_TEST_LONG=1 makes ten times as many starts.
 */
#include "ranks.h"

#include "acceptor.h"
#include "control_message.h"
#include "credential.h"
#include "id_listener.h"
#include "puppet.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <util/allocated.h>

static int set_up(void **state)
{
    set_number("RING_INIT_TIMEOUT", 30);
    setenv("RING_ADDR", "127.0.0.1", 1); /* where connect_to() goes */
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static int port_of(const ring_unique_id *id)
{
    credential p;
    assert_int_equal(credential_from_id(id, &p), RING_OK);
    return address_port(&p.at[0]);
}

/* The port of an id listens once rank 0 joins. */
static int connect_when_it_listens(int port)
{
    int fd;
    const double deadline = clock_now() + 10;
    while ((fd = connect_to(port)) < 0 && clock_now() < deadline)
        clock_sleep(0.001);
    return fd;
}

/* @return true if the other side has closed within `seconds`. */
static bool is_closed(int fd, double seconds)
{
    char byte;
    const double deadline = clock_now() + seconds;
    for (;;) {
        const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return true;
        if (got < 0 && clock_now() >= deadline)
            return false;
        clock_sleep(got < 0 ? 0.002 : 0);
    }
}

/* ---- A recorded handshake ---------------------------------------------------------- */

enum {
    RECORD_MAX = 4096,
    WHOLE_HANDSHAKE = sizeof(handshake_hello) + HANDSHAKE_MAC + sizeof(control_sealed)
};

typedef struct recording {
    unsigned char bytes[RECORD_MAX]; /* sent by the member */
    atomic_size_t count;
    int listener, target; /* ports: of the relay, of rank 0 */
    atomic_bool stop;
} recording;

/* Moves what is there from one socket to the other. @return false at the end. */
static bool pump(int from, int to, recording *r)
{
    unsigned char part[1024];
    const ssize_t got = recv(from, part, sizeof part, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        return false;
    if (r != NULL && got > 0 && r->count + (size_t)got <= RECORD_MAX) {
        memcpy(r->bytes + r->count, part, (size_t)got);
        atomic_fetch_add(&r->count, (size_t)got);
    }
    return got <= 0 || send(to, part, (size_t)got, MSG_NOSIGNAL) == got;
}

static void *relay(void *context)
{
    recording *r = context;
    int member = accept(r->listener, NULL, NULL), host = connect_when_it_listens(r->target);
    while (pump(member, host, r) && pump(host, member, NULL) && !atomic_load(&r->stop))
        clock_sleep(0.0005);
    fd_close(&member);
    fd_close(&host);
    return NULL;
}

typedef struct replayed_start {
    ring_unique_id id, relayed;
    recording record;
    atomic_bool replay_done;
    bool welcomed, closed;
} replayed_start;

/* Says again, to the same listener, all that the member said. */
static void replay(replayed_start *s)
{
    char answer[256];
    int fd = connect_to(s->record.target);
    (void)send(fd, s->record.bytes, s->record.count, MSG_NOSIGNAL);
    size_t got = 0;
    const double deadline = clock_now() + 4; /* not for its silence, which is closed after 5 */
    while (clock_now() < deadline && !s->closed) {
        const ssize_t more = recv(fd, answer + got, sizeof answer - got, MSG_DONTWAIT);
        s->closed = more == 0 || (more < 0 && errno != EAGAIN);
        got += more > 0 ? (size_t)more : 0;
    }
    s->welcomed = got > sizeof(handshake_hello) + HANDSHAKE_MAC;
    fd_close(&fd);
}

/* Rank 1 comes through the relay; rank 2 only after the replay was tried. */
static ring_status start_around_a_replay(int rank, int size, void *context)
{
    replayed_start *s = context;
    if (rank == 1)
        return full_start(rank, size, &s->relayed);
    while (rank == 2 && !atomic_load(&s->replay_done))
        clock_sleep(0.005);
    return full_start(rank, size, &s->id);
}

static void *replay_later(void *context)
{
    replayed_start *s = context;
    while (atomic_load(&s->record.count) < WHOLE_HANDSHAKE)
        clock_sleep(0.005);
    clock_sleep(0.2); /* rank 1 is seated by then */
    replay(s);
    atomic_store(&s->replay_done, true);
    return NULL;
}

static void relayed_id(const ring_unique_id *id, int port, ring_unique_id *out)
{
    credential p;
    assert_int_equal(credential_from_id(id, &p), RING_OK);
    address_set_port(&p.at[0], port);
    credential_make_id(&p.at[0], false, out);
    /* The key of the real id with the relay's address: all but the address is the same. */
    for (size_t i = 0; i < sizeof p.key; i++)
        out->bytes[8 + i] = id->bytes[8 + i];
}

static void a_replayed_handshake_is_refused(void **state)
{
    replayed_start s = {.id = new_id()};
    pthread_t relay_thread, replay_thread;
    crew *c = crew_new(3);
    const int relay_port = free_ports(1);
    s.record.listener = listen_at(relay_port);
    s.record.target = port_of(&s.id);
    relayed_id(&s.id, relay_port, &s.relayed);
    pthread_create(&relay_thread, NULL, relay, &s.record);
    pthread_create(&replay_thread, NULL, replay_later, &s);
    crew_threads(c, 3, start_around_a_replay, &s);
    atomic_store(&s.record.stop, true);
    pthread_join(replay_thread, NULL);
    pthread_join(relay_thread, NULL);
    crew_assert_all(c, RING_OK);
    assert_true(s.record.count > WHOLE_HANDSHAKE);
    assert_true(s.closed);
    assert_false(s.welcomed);
    fd_close(&s.record.listener);
    crew_free(c);
}

/* ---- A crowd of strangers while ranks start, again and again ----------------------- */

enum { NOTHING, ONE_BYTE, NOISE, TRICKLE, OLD_HELLO, KINDS };
enum { RANKS = 3, TARGETS = 1 + 2 * RANKS, HELD = 100 };

/** Where the crowd goes: rank 0's rendezvous, then also the two listeners of every rank. */
typedef struct crowd {
    ring_unique_id id;
    net_address targets[TARGETS];
    atomic_int target_count; /* 0: rest */
    atomic_int visits[KINDS];
    atomic_bool stop;
    unsigned char hello[sizeof(handshake_hello) + HANDSHAKE_MAC];
} crowd;

static void aim_at_rendezvous(crowd *w, const net_address *at)
{
    atomic_store(&w->target_count, 0);
    w->targets[0] = *at;
    atomic_store(&w->target_count, 1);
}

static void aim_at_listeners(crowd *w, const control_world *world)
{
    for (int r = 0; r < RANKS; r++) {
        (void)address_unpack(world->cards[r].address, &w->targets[1 + 2 * r]);
        w->targets[2 + 2 * r] = address_unix(world->cards[r].unix_name);
    }
    atomic_store(&w->target_count, TARGETS);
}

static int visit_target(const net_address *at)
{
    int fd;
    if (address_socket(at, &fd) != RING_OK)
        return -1;
    if (connect(fd, &at->at.any, at->length) != 0 && errno != EINPROGRESS)
        fd_close(&fd);
    return fd;
}

/* Sends what its kind sends; never reads. The socket stays open a while. */
static void be_strange(crowd *w, int kind, int fd)
{
    static const char noise[1 << 20] = "noise";
    switch (kind) {
    case ONE_BYTE:
        (void)send(fd, "r", 1, MSG_NOSIGNAL);
        break;
    case NOISE:
        (void)send(fd, noise, sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
    case OLD_HELLO:
        (void)send(fd, w->hello, sizeof w->hello, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
    default:
        break;
    }
}

static void trickle(crowd *w, const int *fds, int round)
{
    for (int i = 0; i < HELD; i++)
        if (i % KINDS == TRICKLE && fds[i] >= 0)
            (void)send(fds[i], w->hello + round % 60, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void crowd_main(crowd *w)
{
    int fds[HELD];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no crowd survives a failed test */
    memset(fds, -1, sizeof fds);
    for (int i = 0; !atomic_load(&w->stop); i++) {
        int *fd = &fds[i % HELD];
        const int targets = atomic_load(&w->target_count);
        fd_close(fd);
        *fd = targets > 0 ? visit_target(&w->targets[i / KINDS % targets]) : -1;
        if (*fd < 0) {
            clock_sleep(0.0005);
            continue;
        }
        be_strange(w, i % KINDS, *fd);
        trickle(w, fds, i);
        atomic_fetch_add(&w->visits[i % KINDS], 1);
    }
    _exit(0);
}

/* A hello that looks right, with a proof that once was right elsewhere. */
static void forge(crowd *w)
{
    const handshake_terms terms = {.rank = 1, .size = 3};
    const handshake_purpose purpose = {.kind = HANDSHAKE_JOIN};
    const handshake_hello hello = handshake_hello_to(&terms, 0, &purpose);
    memcpy(w->hello, &hello, sizeof hello);
    memset(w->hello + sizeof hello, 0x5a, HANDSHAKE_MAC);
}

static crowd *crowd_new(pid_t *pid)
{
    crowd *w = shared_memory(sizeof *w);
    forge(w);
    *pid = fork();
    if (*pid == 0)
        crowd_main(w);
    return w;
}

static void crowd_free(crowd *w, pid_t pid)
{
    atomic_store(&w->stop, true);
    waitpid(pid, NULL, 0);
    shared_free(w, sizeof *w);
}

/* Wherever ranks listen, the strangers are first. */
static ring_status link_among_strangers(crowd *w, control_world *world)
{
    if (world->rank == 0)
        aim_at_listeners(w, world);
    while (atomic_load(&w->target_count) < TARGETS && clock_now() < world->deadline)
        clock_sleep(0.001);
    clock_sleep(0.01);
    return try_world(world);
}

static ring_status start_by_id(int rank, int size, void *context)
{
    crowd *w = context;
    control_world *world;
    RING_TRY(join_by_id(&w->id, size, rank, 5, &world));
    return link_among_strangers(w, world);
}

static void start_among_strangers(crowd *w)
{
    credential p;
    crew *c = crew_new(RANKS);
    w->id = new_id();
    assert_int_equal(credential_from_id(&w->id, &p), RING_OK);
    aim_at_rendezvous(w, &p.at[0]);
    clock_sleep(0.01);
    crew_threads(c, RANKS, start_by_id, w);
    crew_assert_all(c, RING_OK);
    for (int i = 0; i < RANKS; i++)
        assert_true(c->outcomes[i].seconds < seconds_allowed(5));
    crew_free(c);
}

static void strangers_neither_stop_nor_swell_us(void **state)
{
    const int starts = getenv("RING_TEST_LONG") != NULL ? 200 : 20;
    pid_t pid;
    crowd *w = crowd_new(&pid);
    start_among_strangers(w); /* warms up: libraries' buffers, thread stacks */
    start_among_strangers(w);
    const int fds = count_fds();
    const size_t bytes = allocated_bytes();
    for (int i = 0; i < starts; i++)
        start_among_strangers(w);
    assert_int_equal(count_fds(), fds);
    const size_t after = allocated_bytes();
    assert_in_range(after, 0, bytes + 65536);
    for (int kind = 0; kind < KINDS; kind++)
        assert_true(atomic_load(&w->visits[kind]) >= starts);
    print_message("%d starts among %d strangers of each kind, %ld bytes more\n", starts,
                  atomic_load(&w->visits[0]), (long)(after - bytes));
    crowd_free(w, pid);
}

/* ---- Few descriptors --------------------------------------------------------------- */

/* Enough for the start of one rank (3 listeners, 2 control connections, 4 links, the table of
 * users, the thread's 2) and a few strangers, far from the 64 that would like to stay. */
static void leave_few_descriptors(void)
{
    int next = dup(STDERR_FILENO);
    const struct rlimit few = {.rlim_cur = (rlim_t)next + 16, .rlim_max = (rlim_t)next + 16};
    fd_close(&next);
    (void)setrlimit(RLIMIT_NOFILE, &few);
}

static ring_status start_by_id_with_few(int rank, int size, void *context)
{
    leave_few_descriptors();
    return start_by_id(rank, size, context);
}

/* Without a secret, so that each member's user is looked up. */
static ring_status start_by_port_with_few(int rank, int size, void *context)
{
    control_world *world;
    leave_few_descriptors();
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    RING_TRY(join_by_env(5, &world));
    return link_among_strangers(context, world);
}

static void start_with_few(crowd *w, const net_address *at, rank_body body)
{
    crew *c = crew_new(RANKS);
    aim_at_rendezvous(w, at);
    clock_sleep(0.01);
    crew_processes(c, RANKS, body, w);
    crew_assert_all(c, RING_OK);
    crew_free(c);
}

static void strangers_cannot_take_all_descriptors(void **state)
{
    credential p;
    pid_t pid;
    crowd *w = crowd_new(&pid);
    const int port = free_ports(1);
    const net_address at = address_loopback(port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", port);
    for (int i = 0; i < 5; i++) {
        w->id = new_id();
        assert_int_equal(credential_from_id(&w->id, &p), RING_OK);
        start_with_few(w, &p.at[0], start_by_id_with_few);
        int copy = id_listener_take(&w->id);
        fd_close(&copy);
        start_with_few(w, &at, start_by_port_with_few);
    }
    crowd_free(w, pid);
}

/* ---- Limits ------------------------------------------------------------------------ */

/** A start of two ranks; the second comes once strangers have been there, since rank 0 listens no
 *  more when all have come. */
typedef struct late_start {
    ring_unique_id id;
    atomic_bool strangers_came;
} late_start;

static ring_status late_member(int rank, int size, void *context)
{
    late_start *s = context;
    while (rank == 1 && !atomic_load(&s->strangers_came))
        clock_sleep(0.002);
    return full_start(rank, size, &s->id);
}

typedef struct siege {
    late_start start;
    int port, count;
    int fds[300];
    int closed;
} siege;

static int count_closed(const siege *s)
{
    int closed = 0;
    for (int i = 0; i < s->count; i++)
        closed += is_closed(s->fds[i], 0);
    return closed;
}

/* Silent strangers go after 5 seconds; these go sooner. */
static void *besiege(void *context)
{
    siege *s = context;
    s->fds[0] = connect_when_it_listens(s->port);
    const double deadline = clock_now() + 4.5;
    for (int i = 1; i < s->count; i++)
        s->fds[i] = connect_to(s->port);
    while ((s->closed = count_closed(s)) < s->count - ACCEPTOR_PENDING && clock_now() < deadline)
        clock_sleep(0.01);
    atomic_store(&s->start.strangers_came, true);
    return NULL;
}

static void at_most_64_strangers_stay_and_members_still_come_in(void **state)
{
    pthread_t thread;
    crew *c = crew_new(2);
    siege s = {.start.id = new_id(), .count = 300};
    s.port = port_of(&s.start.id);
    pthread_create(&thread, NULL, besiege, &s);
    crew_threads(c, 2, late_member, &s.start);
    pthread_join(thread, NULL);
    crew_assert_all(c, RING_OK);
    assert_true(c->outcomes[1].seconds < seconds_allowed(2));
    assert_true(s.closed >= s.count - ACCEPTOR_PENDING);
    for (int i = 0; i < s.count; i++)
        fd_close(&s.fds[i]);
    crew_free(c);
}

typedef struct slow_guest {
    late_start start;
    int port;
    double silent_for, trickled_for;
} slow_guest;

static void *be_slow(void *context)
{
    slow_guest *g = context;
    const char magic[9] = "ringboot";
    const double start = clock_now();
    int silent = connect_when_it_listens(g->port), slow = connect_to(g->port);
    for (int i = 0; i < 100 && (g->silent_for <= 0 || g->trickled_for <= 0); i++) {
        (void)send(slow, &magic[i < 8 ? i : 7], 1, MSG_NOSIGNAL);
        if (g->silent_for <= 0 && is_closed(silent, 0.05))
            g->silent_for = clock_now() - start;
        if (g->trickled_for <= 0 && is_closed(slow, 0.05))
            g->trickled_for = clock_now() - start;
    }
    fd_close(&silent);
    fd_close(&slow);
    atomic_store(&g->start.strangers_came, true);
    return NULL;
}

static void who_says_nothing_or_too_little_goes_after_5_seconds(void **state)
{
    pthread_t thread;
    crew *c = crew_new(2);
    slow_guest g = {.start.id = new_id()};
    g.port = port_of(&g.start.id);
    pthread_create(&thread, NULL, be_slow, &g);
    crew_threads(c, 2, late_member, &g.start);
    pthread_join(thread, NULL);
    crew_assert_all(c, RING_OK);
    assert_true(g.silent_for > 4.5 && g.silent_for < seconds_allowed(6));
    assert_true(g.trickled_for > 4.5 && g.trickled_for < seconds_allowed(6));
    crew_free(c);
}

/* ---- While rank 0 is awaited --------------------------------------------------------- */

/* @return the port of a TCP socket that is bound but not connected; 0 for other descriptors. */
static int bound_port(int fd)
{
    struct sockaddr_in at = {.sin_family = AF_UNSPEC}, peer;
    socklen_t size = sizeof at, peer_size = sizeof peer;
    if (getsockname(fd, (struct sockaddr *)&at, &size) != 0 || at.sin_family != AF_INET ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0)
        return 0;
    return ntohs(at.sin_port);
}

static void *await_rank_0(void *id)
{
    control_world *world;
    (void)join_by_id(id, 2, 1, 5, &world); /* in vain */
    return NULL;
}

/* @return how many ports this process holds. */
static int knock_at_all_ports(void)
{
    int found = 0;
    for (int fd = 0; fd < 100; fd++) {
        const int port = bound_port(fd);
        found += port > 0;
        if (port > 0 && connect_to(port) >= 0)
            stop_test("a stranger waits at port %d\n", port);
    }
    return found;
}

static void nobody_can_wait_where_nobody_asks(void **state)
{
    pthread_t thread;
    ring_unique_id id = new_id();
    int copy = id_listener_take(&id), found = 0;
    fd_close(&copy);
    set_number("RING_INIT_TIMEOUT", 2);
    pthread_create(&thread, NULL, await_rank_0, &id);
    const double deadline = clock_now() + 1.8;
    while ((found = knock_at_all_ports()) == 0 && clock_now() < deadline)
        clock_sleep(0.01);
    pthread_join(thread, NULL);
    assert_int_equal(found, 1);
}

/* ---- A stranger where rank 0 should be --------------------------------------------- */

static void *impostor(void *context)
{
    const int listener = *(int *)context;
    int fd = accept(listener, NULL, NULL);
    unsigned char answer[sizeof(handshake_hello) + HANDSHAKE_MAC] = "ringboot";
    (void)send(fd, answer, sizeof answer, MSG_NOSIGNAL);
    (void)is_closed(fd, 2);
    fd_close(&fd);
    return NULL;
}

static void an_impostor_gets_no_proof(void **state)
{
    control_world *world;
    pthread_t thread;
    const int port = free_ports(1);
    int listener = listen_at(port);
    ring_unique_id id = new_id(), elsewhere;
    relayed_id(&id, port, &elsewhere);
    set_number("RING_INIT_TIMEOUT", 2); /* it tries on for that long */
    pthread_create(&thread, NULL, impostor, &listener);
    assert_int_equal(join_by_id(&elsewhere, 2, 1, 1, &world), RING_ERR_AUTH);
    pthread_join(thread, NULL);
    fd_close(&listener);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(a_replayed_handshake_is_refused),
        TEST(strangers_neither_stop_nor_swell_us),
        TEST(strangers_cannot_take_all_descriptors),
        TEST(at_most_64_strangers_stay_and_members_still_come_in),
        TEST(who_says_nothing_or_too_little_goes_after_5_seconds),
        TEST(nobody_can_wait_where_nobody_asks),
        TEST(an_impostor_gets_no_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
