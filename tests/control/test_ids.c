/* SPDX-License-Identifier: Apache-2.0
 * Ids that any process may make: joining when rank 0 is not the maker, and every way it can fail.
 */
#include "puppet.h"
#include "stage.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, IDS = 3 };

/* The ids and the settings that the ranks of a test share. */
typedef struct table {
    ring_unique_id ids[IDS];
    int count; /* of ids that are made */
    atomic_bool made;
    int maker;           /* the rank that makes the ids; -1: another process */
    int late;            /* this rank starts a second after the others; -1: none */
    int victim;          /* a test's own; -1: none */
    rank_body body;      /* of each rank */
    const char *address; /* RING_ADDR of rank 0; NULL: none */
    int spare;           /* descriptors of the maker; 0: no limit */
} table;

static table *table_new(int maker)
{
    table *t = shared_memory(sizeof *t);
    t->maker = maker;
    t->late = t->victim = -1;
    t->count = 1;
    t->body = full_start;
    return t;
}

static ring_status make_ids(table *t)
{
    settings s;
    RING_TRY(settings_read(&s));
    for (int i = 0; i < t->count; i++)
        RING_TRY(control_make_served_id(&s, &t->ids[i]));
    atomic_store(&t->made, true);
    return RING_OK;
}

static ring_status sit_down(int rank, int size, void *context)
{
    table *t = context;
    if (rank == t->maker)
        RING_TRY(make_ids(t));
    while (!atomic_load(&t->made))
        clock_sleep(0.001);
    if (rank == t->late)
        clock_sleep(1);
    if (rank == 0 && t->address != NULL)
        setenv("RING_ADDR", t->address, 1);
    return t->body(rank, size, t->ids);
}

typedef void crew_way(crew *c, int size, rank_body body, void *context);

static void start_well(table *t, int size, crew_way *way)
{
    crew *c = crew_new(size);
    way(c, size, sit_down, t);
    crew_assert_all(c, RING_OK);
    crew_free(c);
    shared_free(t, sizeof *t);
}

/* Starts RANKS ranks well that are processes, and then RANKS that are threads. */
static void start_in_both_crews(int maker, int late, int count, rank_body body)
{
    crew_way *const ways[] = {crew_processes, crew_threads};
    for (int w = 0; w < 2; w++) {
        table *t = table_new(maker);
        t->late = late;
        t->count = count;
        t->body = body;
        start_well(t, RANKS, ways[w]);
    }
}

/* ---- Starts that succeed ----------------------------------------------------------- */

static void any_rank_makes_the_id(void **state)
{
    for (int maker = 0; maker < RANKS; maker++)
        start_in_both_crews(maker, -1, 1, full_start);
}

static void any_rank_may_be_late(void **state)
{
    for (int late = 0; late < RANKS; late += RANKS - 1)
        start_in_both_crews(2, late, 1, full_start);
}

static ring_status join_all_ids(int rank, int size, void *ids)
{
    for (int i = 0; i < IDS; i++) /* the last id first */
        RING_TRY(full_start(rank, size, (ring_unique_id *)ids + IDS - 1 - i));
    return RING_OK;
}

static void one_maker_serves_several_ids(void **state)
{
    start_in_both_crews(3, -1, IDS, join_all_ids);
}

/* Each rank joins all of the communicators at the same time. */
typedef struct seat {
    int rank, size;
    ring_unique_id *id;
    ring_status status;
} seat;

static void *take_seat(void *context)
{
    seat *s = context;
    s->status = full_start(s->rank, s->size, s->id);
    return NULL;
}

static ring_status join_all_at_once(int rank, int size, void *ids)
{
    pthread_t threads[IDS];
    seat seats[IDS];
    ring_status status = RING_OK;
    for (int i = 0; i < IDS; i++) {
        seats[i] = (seat){rank, size, (ring_unique_id *)ids + i, RING_OK};
        if (pthread_create(&threads[i], NULL, take_seat, &seats[i]) != 0)
            return fail(RING_ERR_SYSTEM, "no thread");
    }
    for (int i = 0; i < IDS; i++) {
        pthread_join(threads[i], NULL);
        if (seats[i].status != RING_OK)
            status = fail(seats[i].status, "start %d failed", i);
    }
    return status;
}

static void several_starts_run_at_once(void **state)
{
    start_in_both_crews(1, -1, IDS, join_all_at_once);
}

/* @return true if this process has as many threads and descriptors as before within 30 s. */
static bool is_quiet(int threads, int fds)
{
    const double deadline = clock_now() + 30;
    while ((count_threads() != threads || count_fds() != fds) && clock_now() < deadline)
        clock_sleep(0.005);
    return count_threads() == threads && count_fds() == fds;
}

/* The maker's thread and sockets end with the start. */
static void a_process_that_is_no_rank_makes_the_id(void **state)
{
    int how;
    table *t = table_new(-1);
    t->body = join_all_ids;
    t->count = IDS;
    const pid_t maker = fork();
    if (maker == 0) {
        const int threads = count_threads(), fds = count_fds();
        _exit(make_ids(t) == RING_OK && is_quiet(threads, fds) ? 0 : 1);
    }
    start_well(t, RANKS, crew_processes);
    assert_int_equal(waitpid(maker, &how, 0), maker);
    assert_int_equal(how, 0);
}

/* One rank needs no maker, so its id ends at once. */
static void an_id_of_one_rank_ends(void **state)
{
    int how;
    table *t = table_new(-1);
    set_number("RING_INIT_TIMEOUT", 60);
    const pid_t maker = fork();
    if (maker == 0) {
        const int threads = count_threads(), fds = count_fds();
        _exit(make_ids(t) == RING_OK && is_quiet(threads, fds) ? 0 : 1);
    }
    t->address = "198.51.100.1";
    start_well(t, 1, crew_processes);
    assert_int_equal(waitpid(maker, &how, 0), maker);
    assert_int_equal(how, 0);
}

static void children_of_the_maker_join(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip_because("its runtime ends processes that start threads after a fork with threads");
#endif
    const int threads = count_threads(), fds = count_fds();
    table *t = table_new(-1);
    assert_int_equal(make_ids(t), RING_OK);
    start_well(t, RANKS, crew_processes);
    assert_true(is_quiet(threads, fds));
}

static void rank_0_listens_where_its_own_setting_says(void **state)
{
    table *t = table_new(1);
    t->address = "127.0.0.3";
    start_well(t, 3, crew_processes);
}

/* ---- Ids that are not used, and ends of makers ----------------------------------------- */

static void an_id_that_expires_leaves_nothing(void **state)
{
    control_world *world;
    const int threads = count_threads(), fds = count_fds();
    table *t = table_new(-1);
    set_number("RING_INIT_TIMEOUT", 0.2);
    assert_int_equal(make_ids(t), RING_OK);
    assert_int_equal(count_threads(), threads + 1);
    assert_true(is_quiet(threads, fds));
    set_number("RING_INIT_TIMEOUT", 0.3);
    assert_int_equal(join_by_id(&t->ids[0], 2, 0, 1, &world), RING_ERR_TIMEOUT);
    assert_non_null(strstr(fail_text(), "rank 1 of 2 did not reach rank 0"));
    assert_non_null(strstr(fail_text(), "did not reach the process that made the unique id, at "));
    assert_int_equal(make_ids(t), RING_OK); /* the thread starts again */
    assert_int_equal(count_threads(), threads + 1);
    assert_true(is_quiet(threads, fds));
    shared_free(t, sizeof *t);
}

/* Lets this process open @p spare more descriptors. */
static void limit_fds(int spare)
{
    const int next = dup(STDIN_FILENO);
    const rlim_t most = (rlim_t)(next + spare);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most}), 0);
    close(next);
}

/* @return the process that makes the ids, for end_maker(). */
static pid_t fork_maker(table *t)
{
    const pid_t maker = fork();
    assert_true(maker >= 0);
    if (maker == 0) {
        if (t->spare > 0)
            limit_fds(t->spare);
        if (make_ids(t) == RING_OK)
            clock_sleep(60);
        _exit(0);
    }
    while (!atomic_load(&t->made))
        clock_sleep(0.001);
    return maker;
}

static void end_maker(pid_t maker)
{
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
}

/* Ranks whose maker ends when they have waited for rank @p late for a while; this one comes then.
 */
static crew *lose_maker(double init_timeout, int late)
{
    table *t = table_new(-1);
    crew *c = crew_new(3);
    t->late = late;
    set_number("RING_INIT_TIMEOUT", 20);
    const pid_t maker = fork_maker(t);
    if (init_timeout < 1e9)
        set_number("RING_INIT_TIMEOUT", init_timeout);
    else
        setenv("RING_INIT_TIMEOUT", "none", 1);
    crew_fork(c, 3, sit_down, t);
    clock_sleep(0.3);
    end_maker(maker);
    crew_wait(c);
    shared_free(t, sizeof *t);
    return c;
}

static void a_maker_that_ends_is_named_at_the_deadline(void **state)
{
    crew *c = lose_maker(2, 0);
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "ranks 1-2 of 3 did not reach rank 0");
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT,
                   "rank 0 did not reach the process that made the unique id, at ");
    for (int i = 1; i < 3; i++) {
        outcome_assert(&c->outcomes[i], RING_ERR_TIMEOUT, "through the process that made the");
        outcome_assert(&c->outcomes[i], RING_ERR_TIMEOUT, "is that process running");
        assert_true(c->outcomes[i].seconds < seconds_allowed(3.5));
    }
    crew_free(c);
}

static void without_a_deadline_the_end_of_the_maker_ends_the_start(void **state)
{
    for (int late = 0; late < 3; late += 2) {
        crew *c = lose_maker(1e9, late);
        crew_assert_all(c, RING_ERR_PEER);
        for (int i = 0; i < 3; i++) {
            outcome_assert(&c->outcomes[i], RING_ERR_PEER, "is no longer served at ");
            assert_true(c->outcomes[i].seconds < seconds_allowed(9));
        }
        crew_free(c);
    }
}

/* The waiting ranks use all descriptors of the maker, and do not keep rank 0 out. */
static void a_crowd_does_not_keep_rank_0_out(void **state)
{
    table *t = table_new(-1);
    t->late = 0;
    t->spare = 7; /* 3 of them for the loop and the listener */
    const pid_t maker = fork_maker(t);
    start_well(t, 9, crew_processes);
    end_maker(maker);
}

static void without_rank_0_its_absence_is_named(void **state)
{
    table *t = table_new(-1);
    crew *c = crew_new(2);
    const pid_t maker = fork_maker(t);
    set_number("RING_INIT_TIMEOUT", 0.5);
    c->ranks[0] = 1;
    c->ranks[1] = 2;
    crew_processes(c, 3, sit_down, t);
    for (int i = 0; i < 2; i++)
        outcome_assert(&c->outcomes[i], RING_ERR_TIMEOUT,
                       "that process waits for rank 0; is rank 0 running");
    end_maker(maker);
    crew_free(c);
    shared_free(t, sizeof *t);
}

/* A child of the maker keeps no copy of its sockets. */
static void a_fork_of_the_maker_does_not_serve(void **state)
{
    control_world *world;
    table *t = table_new(-1);
    const pid_t maker = fork();
    if (maker == 0) {
        if (make_ids(t) != RING_OK || fork() != 0)
            _exit(1);
        clock_sleep(3);
        _exit(0);
    }
    waitpid(maker, NULL, 0);
    assert_true(atomic_load(&t->made));
    set_number("RING_INIT_TIMEOUT", 0.3);
    assert_int_equal(join_by_id(&t->ids[0], 2, 1, 1, &world), RING_ERR_TIMEOUT);
    assert_non_null(strstr(fail_text(), "refused"));
    shared_free(t, sizeof *t);
}

/* ---- Wrong ranks ------------------------------------------------------------------- */

static ring_status with_a_wrong_key(int rank, int size, void *ids)
{
    ring_unique_id other = *(ring_unique_id *)ids;
    if (rank != 1)
        return full_start(rank, 3, ids); /* the other rank 1 is waited for */
    other.bytes[20] ^= 1;
    return full_start(rank, size, &other);
}

static void a_wrong_key_is_refused(void **state)
{
    crew_way *const ways[] = {crew_processes, crew_threads};
    for (size_t i = 0; i < 2; i++) {
        table *t = table_new(2);
        crew *c = crew_new(3);
        t->body = with_a_wrong_key;
        set_number("RING_INIT_TIMEOUT", 1);
        ways[i](c, 3, sit_down, t);
        outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "rank 1 of 3");
        outcome_assert(&c->outcomes[1], RING_ERR_AUTH, "could not prove");
        outcome_assert(&c->outcomes[2], RING_ERR_TIMEOUT, "rank 1 of 3");
        crew_free(c);
        shared_free(t, sizeof *t);
    }
}

static ring_status twice_rank_0(int rank, int size, void *ids)
{
    if (rank == 1)
        clock_sleep(0.3);
    return full_start(0, 2, ids);
}

static void another_rank_0_is_refused(void **state)
{
    table *t = table_new(-1);
    crew *c = crew_new(2);
    const pid_t maker = fork_maker(t);
    t->body = twice_rank_0;
    set_number("RING_INIT_TIMEOUT", 1);
    crew_processes(c, 2, sit_down, t);
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "rank 1 of 2");
    outcome_assert(&c->outcomes[1], RING_ERR_USAGE, "another process has joined as rank 0");
    end_maker(maker);
    crew_free(c);
    shared_free(t, sizeof *t);
}

/* Dials the maker in this process as rank 0, which listens at @p own. */
static ring_status register_by_hand(puppet *p, const ring_unique_id *id, int own, uint32_t version)
{
    const net_address at = address_loopback(own);
    const handshake_purpose purpose = {.kind = HANDSHAKE_REGISTER};
    RING_TRY(puppet_dial(p, id, 0, 2));
    address_pack(&at, p->terms.rank_0);
    p->hello = handshake_hello_to(&p->terms, HANDSHAKE_MAKER, &purpose);
    p->hello.version = version != 0 ? version : p->hello.version;
    return puppet_prove(p);
}

static ring_status join_by_hand(puppet *p, const ring_unique_id *id)
{
    RING_TRY(puppet_dial(p, id, 1, 2));
    return puppet_prove(p);
}

/* @return true if the kernel notices when the peer's host is down. */
static bool is_kept_alive(int fd)
{
    int on = 0;
    socklen_t bytes = sizeof on;
    return getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &bytes) == 0 && on == 1;
}

/* Its connection breaks; it registers again, and other ranks still learn its address. */
static void rank_0_may_register_again(void **state)
{
    const int port = free_ports(2);
    puppet rank_0, other, rank_1;
    table *t = table_new(-1);
    assert_int_equal(make_ids(t), RING_OK);
    assert_int_equal(register_by_hand(&rank_0, &t->ids[0], port, 0), RING_OK);
    assert_int_equal(register_by_hand(&other, &t->ids[0], port + 1, 0), RING_ERR_ABORTED);
    assert_true(is_kept_alive(rank_0.fd));
    puppet_end(&rank_0);
    assert_int_equal(register_by_hand(&rank_0, &t->ids[0], port, 0), RING_OK);
    clock_sleep(1.5); /* the maker has closed the id if it counts the first connection */
    assert_int_equal(join_by_hand(&rank_1, &t->ids[0]), RING_OK);
    assert_int_equal(address_port(&rank_1.handshake.rank_0), port);
    puppet_end(&rank_1);
    puppet_end(&rank_0);
    shared_free(t, sizeof *t);
}

/* Rank 0 of another version ends the id at once; another rank is redirected, so rank 0 compares. */
static void another_version_is_refused(void **state)
{
    puppet p, rank_0;
    const int threads = count_threads(), fds = count_fds();
    table *t = table_new(-1);
    set_number("RING_INIT_TIMEOUT", 60);
    assert_int_equal(make_ids(t), RING_OK);
    assert_int_equal(register_by_hand(&p, &t->ids[0], 7, 987654), RING_ERR_CONFIG);
    assert_non_null(strstr(fail_text(), "the maker of the unique id runs libring"));
    assert_non_null(strstr(fail_text(), "rank 0 runs libring 987654"));
    assert_true(is_quiet(threads, fds));
    assert_int_equal(make_ids(t), RING_OK);
    assert_int_equal(register_by_hand(&rank_0, &t->ids[0], 7, 0), RING_OK);
    assert_int_equal(puppet_dial(&p, &t->ids[0], 1, 2), RING_OK);
    p.hello.version = 987654;
    assert_int_equal(puppet_prove(&p), RING_OK);
    assert_int_equal(address_port(&p.handshake.rank_0), 7);
    puppet_end(&p);
    puppet_end(&rank_0);
    assert_true(is_quiet(threads, fds));
    shared_free(t, sizeof *t);
}

/* ---- Failures and aborts ------------------------------------------------------------ */

static ring_status refuse_or_join(int rank, int size, void *ids)
{
    control_world *world;
    settings s;
    const table *t = (const table *)ids; /* they are its first member */
    RING_TRY(settings_read(&s));
    if (rank == t->victim)
        return control_refuse(&s, ids, size, rank, fail(RING_ERR_CONFIG, "an invalid value"));
    RING_TRY(control_join(&s, ids, size, rank, 5, NULL, &world));
    control_free(world);
    return RING_OK;
}

static void a_rank_that_failed_before_says_why_on_all(void **state)
{
    for (int victim = 0; victim < 3; victim++) {
        table *t = table_new(-1);
        crew *c = crew_new(3);
        const pid_t maker = fork_maker(t);
        t->victim = victim;
        t->body = refuse_or_join;
        crew_processes(c, 3, sit_down, t);
        for (int i = 0; i < 3; i++) {
            outcome_assert(&c->outcomes[i], RING_ERR_CONFIG, "an invalid value");
            assert_true(c->outcomes[i].seconds < seconds_allowed(2));
        }
        end_maker(maker);
        crew_free(c);
        shared_free(t, sizeof *t);
    }
}

/* Rank 0 cannot listen at its RING_ADDR; the others learn why. */
static void a_wrong_address_of_rank_0_is_told_to_all(void **state)
{
    table *t = table_new(-1);
    crew *c = crew_new(3);
    const pid_t maker = fork_maker(t);
    t->address = "198.51.100.1";
    crew_processes(c, 3, sit_down, t);
    for (int i = 0; i < 3; i++) {
        outcome_assert(&c->outcomes[i], c->outcomes[0].status, "198.51.100.1");
        assert_true(c->outcomes[i].seconds < seconds_allowed(3));
    }
    end_maker(maker);
    crew_free(c);
    shared_free(t, sizeof *t);
}

typedef struct starter {
    const ring_unique_id *id;
    int rank;
    control_stop stop;
    ring_status status;
    char text[256];
} starter;

static void *begin(void *context)
{
    starter *a = context;
    control_world *world;
    settings s;
    a->status = settings_read(&s);
    if (a->status == RING_OK)
        a->status = control_join(&s, a->id, 3, a->rank, 1, &a->stop, &world);
    text_format(a->text, sizeof a->text, "%s", fail_text());
    return NULL;
}

/* A rank waits at the maker, or rank 0 for ranks; or it dials a maker that has ended. */
static void an_abort_ends_a_wait_at_once(void **state)
{
    setenv("RING_INIT_TIMEOUT", "none", 1);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        table *t = table_new(-1);
        const pid_t maker = fork_maker(t);
        starter a = {.id = &t->ids[0], .rank = i % 2};
        if (i >= 2) {
            end_maker(maker);
        }
        assert_int_equal(pthread_create(&thread, NULL, begin, &a), 0);
        clock_sleep(0.2);
        const double since = clock_now();
        control_stop_start(&a.stop, "enough");
        pthread_join(thread, NULL);
        assert_true(clock_now() - since < seconds_allowed(0.4));
        assert_int_equal(a.status, RING_ERR_ABORTED);
        assert_non_null(strstr(a.text, "enough"));
        if (i < 2) {
            end_maker(maker);
        }
        shared_free(t, sizeof *t);
    }
}

/* No dialer may be rank -1, as which it would skip all comparisons, and a second rank 0 of another
 * size does not end the start of the first, which joined in the process of the maker. */
static void a_claim_to_another_role_is_refused(void **state)
{
    pthread_t thread;
    puppet p;
    table *t = table_new(-1);
    assert_int_equal(make_ids(t), RING_OK);
    starter a = {.id = &t->ids[0], .rank = 0};
    assert_int_equal(pthread_create(&thread, NULL, begin, &a), 0);
    while (puppet_dial(&p, a.id, 1, 3) != RING_OK || puppet_prove(&p) != RING_OK)
        clock_sleep(0.01); /* the maker may still hold it */
    puppet_end(&p);
    assert_int_equal(puppet_dial(&p, a.id, HANDSHAKE_MAKER, 3), RING_OK);
    assert_int_equal(puppet_prove(&p), RING_ERR_PEER);
    assert_int_equal(register_by_hand(&p, a.id, 7, 0), RING_ERR_ABORTED);
    control_stop_start(&a.stop, "enough");
    pthread_join(thread, NULL);
    assert_int_equal(a.status, RING_ERR_ABORTED);
    assert_non_null(strstr(a.text, "enough"));
    shared_free(t, sizeof *t);
}

/* It has registered, and then ended; a rank that is sent there fails, even without a deadline. */
static void the_end_of_rank_0_ends_the_start(void **state)
{
    pthread_t thread;
    puppet rank_0;
    const int threads = count_threads(), fds = count_fds();
    table *t = table_new(-1);
    assert_int_equal(make_ids(t), RING_OK);
    assert_int_equal(register_by_hand(&rank_0, &t->ids[0], free_ports(1), 0), RING_OK);
    setenv("RING_INIT_TIMEOUT", "none", 1);
    starter a = {.id = &t->ids[0], .rank = 1};
    assert_int_equal(pthread_create(&thread, NULL, begin, &a), 0);
    pthread_join(thread, NULL);
    puppet_end(&rank_0);
    assert_int_equal(a.status, RING_ERR_PEER);
    assert_non_null(strstr(a.text, "rank 0 has ended at 127.0.0.1:"));
    assert_true(is_quiet(threads, fds));
    shared_free(t, sizeof *t);
}

/* A maker may only redirect a rank. */
static void a_maker_that_welcomes_a_rank_is_refused(void **state)
{
    pthread_t thread;
    credential c;
    ring_unique_id id;
    handshake h;
    handshake_terms terms = {.rank = HANDSHAKE_MAKER};
    net_address at = address_loopback(0);
    int listener, fd;
    assert_true(sodium_init() >= 0);
    assert_int_equal(address_listen(&at, &listener), RING_OK);
    credential_make_id(&at, true, &id);
    assert_int_equal(credential_from_id(&id, &c), RING_OK);
    memcpy(terms.key, c.key, sizeof c.key);
    starter a = {.id = &id, .rank = 1};
    set_number("RING_INIT_TIMEOUT", 1);
    assert_int_equal(pthread_create(&thread, NULL, begin, &a), 0);
    assert_int_equal(fd_await(listener, POLLIN, clock_now() + 10), RING_OK);
    assert_true((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    handshake_accept(&h, fd, &terms);
    while (handshake_step(&h) == RING_IN_PROGRESS)
        clock_sleep(0.001);
    assert_int_equal(handshake_welcome(&h), RING_OK);
    fd_close(&listener);
    pthread_join(thread, NULL);
    fd_close(&fd);
    assert_int_equal(a.status, RING_ERR_TIMEOUT);
    assert_non_null(strstr(a.text, "through the process that made the unique id"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(any_rank_makes_the_id),
        TIMED_TEST(any_rank_may_be_late),
        TIMED_TEST(one_maker_serves_several_ids),
        TIMED_TEST(several_starts_run_at_once),
        TIMED_TEST(a_process_that_is_no_rank_makes_the_id),
        TIMED_TEST(an_id_of_one_rank_ends),
        TIMED_TEST(children_of_the_maker_join),
        TIMED_TEST(rank_0_listens_where_its_own_setting_says),
        TIMED_TEST(an_id_that_expires_leaves_nothing),
        TIMED_TEST(a_maker_that_ends_is_named_at_the_deadline),
        TIMED_TEST(without_a_deadline_the_end_of_the_maker_ends_the_start),
        TIMED_TEST(without_rank_0_its_absence_is_named),
        TIMED_TEST(a_crowd_does_not_keep_rank_0_out),
        TIMED_TEST(a_fork_of_the_maker_does_not_serve),
        TIMED_TEST(a_wrong_key_is_refused),
        TIMED_TEST(another_rank_0_is_refused),
        TIMED_TEST(a_rank_that_failed_before_says_why_on_all),
        TIMED_TEST(a_wrong_address_of_rank_0_is_told_to_all),
        TIMED_TEST(an_abort_ends_a_wait_at_once),
        TIMED_TEST(a_claim_to_another_role_is_refused),
        TIMED_TEST(the_end_of_rank_0_ends_the_start),
        TIMED_TEST(a_maker_that_welcomes_a_rank_is_refused),
        TIMED_TEST(another_version_is_refused), /* no fork after this: the process keeps an id */
        TIMED_TEST(rank_0_may_register_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
