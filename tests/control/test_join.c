/* SPDX-License-Identifier: Apache-2.0
 * Joining and linking: all sizes, as threads and processes, and every way it can fail. */
#include "ranks.h"

#include "credential.h"
#include "puppet.h"

#include <errno.h>
#include <fnmatch.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    set_number("RING_INIT_TIMEOUT", 200);
    return 0;
}

static const int sizes[] = {1, 2, 3, 5, 8};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void threads_of_one_process_join_and_link(void **state)
{
    for (int i = 0; i < SIZES; i++) {
        crew *c = crew_new(sizes[i]);
        ring_unique_id id = new_id();
        crew_threads(c, sizes[i], full_start, &id);
        crew_assert_all(c, RING_OK);
        crew_free(c);
    }
}

static void processes_join_and_link(void **state)
{
    for (int i = 0; i < SIZES; i++) {
        crew *c = crew_new(sizes[i]);
        ring_unique_id id = new_id();
        crew_processes(c, sizes[i], full_start, &id);
        crew_assert_all(c, RING_OK);
        crew_free(c);
    }
}

static void two_ranks_start_within_milliseconds(void **state)
{
    double best = 100;
    for (int i = 0; i < 10; i++) {
        crew *c = crew_new(2);
        ring_unique_id id = new_id();
        crew_threads(c, 2, full_start, &id);
        crew_assert_all(c, RING_OK);
        if (c->outcomes[1].seconds < best)
            best = c->outcomes[1].seconds;
        crew_free(c);
    }
    print_message("2 ranks: %.2f ms\n", 1e3 * best);
    assert_true(best < seconds_allowed(0.05));
}

/* ---- One rank alone ---------------------------------------------------------------- */

static void one_rank_opens_no_socket(void **state)
{
    control_world *world;
    clearenv();
    const int before = count_fds();
    assert_int_equal(join_by_env(3, &world), RING_OK);
    assert_int_equal(count_fds(), before);
    assert_int_equal(world->size, 1);
    assert_string_equal(world->launcher, "none");
    assert_int_equal(world->cards[0].transports, 3);
    assert_int_equal(control_agree(world, RING_OK), RING_OK);
    assert_int_equal(control_agree(world, RING_ERR_CONFIG), RING_ERR_CONFIG);
    control_free(world);
}

/* ---- Ranks that are missing, doubled or wrong -------------------------------------- */

static ring_status late_host(int rank, int size, void *id)
{
    if (rank == 0)
        clock_sleep(0.5);
    return full_start(rank, size, id);
}

static void without_rank_0_the_place_is_named(void **state)
{
    control_world *world;
    set_number("RING_INIT_TIMEOUT", 0.2);
    ring_unique_id id = new_id();
    credential p;
    assert_int_equal(credential_from_id(&id, &p), RING_OK);
    address_set_port(&p.at[0], free_ports(1));
    credential_make_id(&p.at[0], false, &id);
    assert_int_equal(join_by_id(&id, 2, 1, 1, &world), RING_ERR_TIMEOUT);
    char text[ADDRESS_TEXT_MAX];
    assert_non_null(strstr(fail_text(), address_text(&p.at[0], text)));
    assert_non_null(strstr(fail_text(), "refused"));
}

static ring_status with_its_own_size(int rank, int size, void *id)
{
    return full_start(rank, rank == 1 ? size + 1 : size, id);
}

static ring_status with_a_wrong_key(int rank, int size, void *id)
{
    ring_unique_id other = *(ring_unique_id *)id;
    if (rank == 1)
        other.bytes[20] ^= 1;
    return full_start(rank, size, &other);
}

/* A member of the job, but of another version. */
static ring_status join_as_other_version(const ring_unique_id *id, int size, uint32_t order)
{
    puppet p;
    RING_TRY(puppet_dial(&p, id, 1, size));
    if (order != 0)
        p.hello.order = order;
    else
        p.hello.version = 987654;
    const ring_status status = puppet_prove(&p);
    puppet_end(&p);
    return status;
}

static ring_status one_of_another_version(int rank, int size, void *id)
{
    return rank == 1 ? join_as_other_version(id, size, 0) : full_start(rank, size, id);
}

static ring_status one_of_another_order(int rank, int size, void *id)
{
    return rank == 1 ? join_as_other_version(id, size, 0x04030201) : full_start(rank, size, id);
}

static ring_status killed_after_joining(int rank, int size, void *id)
{
    puppet p;
    if (rank != 1)
        return full_start(rank, size, id);
    RING_TRY(puppet_dial(&p, id, 1, size));
    RING_TRY(puppet_prove(&p));
    const ring_status status = puppet_bring_card(&p, "elsewhere", 4711);
    puppet_end(&p);
    return status;
}

/* ---- Failures while links are made ------------------------------------------------- */

static ring_status leave_instead_of_linking(int rank, int size, void *id)
{
    control_world *world;
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    if (rank != 2)
        return try_world(world);
    const ring_status status = control_agree(world, RING_OK);
    control_free(world);
    return status;
}

/* Its last descriptor is gone when it wants to dial. */
static ring_status link_without_descriptors(int rank, int size, void *id)
{
    control_world *world;
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    int next = dup(STDERR_FILENO);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = (rlim_t)next};
    fd_close(&next);
    if (rank == 2 && setrlimit(RLIMIT_NOFILE, &none) != 0)
        return fail(RING_ERR_UNSUPPORTED, "setrlimit: %m");
    return try_world(world);
}

typedef struct unable {
    ring_unique_id id;
    int victim;
} unable;

/* It cannot even listen; one descriptor is left to say so. */
static ring_status join_without_descriptors(int rank, int size, void *context)
{
    const unable *u = context;
    control_world *world;
    int next = dup(STDERR_FILENO);
    const struct rlimit few = {.rlim_cur = (rlim_t)next + 1, .rlim_max = (rlim_t)next + 1};
    fd_close(&next);
    if (rank == u->victim && setrlimit(RLIMIT_NOFILE, &few) != 0)
        return fail(RING_ERR_UNSUPPORTED, "setrlimit: %m");
    RING_TRY(join_by_id(&u->id, size, rank, 5, &world));
    control_free(world);
    return RING_OK;
}

/* Its settings are wrong, say. */
static ring_status refuse_or_join(int rank, int size, void *context)
{
    const unable *u = context;
    control_world *world;
    settings s;
    RING_TRY(settings_read(&s));
    if (rank == u->victim)
        return control_refuse(&s, &u->id, size, rank, fail(RING_ERR_CONFIG, "an invalid value"));
    RING_TRY(control_join(&s, &u->id, size, rank, 5, NULL, &world));
    control_free(world);
    return RING_OK;
}

static void a_rank_that_failed_before_says_why_on_all(void **state)
{
    for (int victim = 0; victim < 3; victim++) {
        unable u = {.id = new_id(), .victim = victim};
        crew *c = crew_new(3);
        crew_processes(c, 3, refuse_or_join, &u);
        for (int i = 0; i < 3; i++) {
            outcome_assert(&c->outcomes[i], RING_ERR_CONFIG, "an invalid value");
            assert_true(c->outcomes[i].seconds < seconds_allowed(victim == 0 ? 2 : 0.8));
        }
        crew_free(c);
    }
}

static void a_rank_that_cannot_join_says_why_on_all(void **state)
{
    for (int victim = 0; victim < 3; victim++) {
        char name[24];
        unable u = {.id = new_id(), .victim = victim};
        crew *c = crew_new(3);
        snprintf(name, sizeof name, "rank %d (", victim);
        crew_processes(c, 3, join_without_descriptors, &u);
        for (int i = 0; i < 3; i++) {
            outcome_assert(&c->outcomes[i], RING_ERR_SYSTEM, "ulimit -n");
            if (i != victim)
                outcome_assert(&c->outcomes[i], RING_ERR_SYSTEM, name);
            assert_true(c->outcomes[i].seconds < seconds_allowed(2));
        }
        crew_free(c);
    }
}

static ring_status disagree(int rank, int size, void *id)
{
    control_world *world;
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    const ring_status mine = rank == 2 ? fail(RING_ERR_MEMORY, "no memory for what I want")
                                       : RING_OK;
    const ring_status status = control_agree(world, mine);
    control_free(world);
    return status;
}

/* A rank fails and closes its links; another sees only that, and says it first. */
static ring_status see_only_the_effect(int rank, int size, void *id)
{
    control_world *world;
    ring_status mine = RING_OK;
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    if (rank == 1)
        mine = fail(RING_ERR_PEER, "the link to rank 3 broke");
    if (rank == 3) {
        clock_sleep(0.05);
        mine = fail(RING_ERR_CONFIG, "the arguments make no sense");
        control_announce(world, mine);
        fail(mine, "and closing the rest failed, too");
    }
    const ring_status status = control_agree(world, mine);
    control_free(world);
    return status;
}

/* ---- Starts that fail -------------------------------------------------------------- */

/** A start by one body a rank, and what each rank returns that came; the `but`-th something else.
 */
typedef struct failing_start {
    const char *name;
    rank_body body;
    int size, count;
    const int *came; /* [count] NULL: the first ranks */
    void (*run)(crew *c, int size, rank_body body, void *context);
    double init_timeout, most; /* s; 0: none that matters */
    ring_status status;
    const char *text; /* a pattern */
    int but;
    ring_status but_status;
    const char *but_text; /* NULL: that does not matter */
} failing_start;

static const int gaps[] = {0, 1, 4, 6}, twice[] = {0, 1, 1};
#define NONE -1, RING_OK, NULL

static const failing_start failing_starts[] = {
    {"missing_ranks_are_listed_on_all_that_came", full_start, 8, 4, gaps, crew_threads, 2, 3,
     RING_ERR_TIMEOUT, "*ranks 2-3, 5, 7 of 8*", NONE},
    /* Rank 1 gives up before rank 0 would. */
    {"the_first_deadline_is_that_of_all", late_host, 3, 2, NULL, crew_threads, 2.5, 2.8,
     RING_ERR_TIMEOUT, "*rank 2 of 3*", NONE},
    {"a_rank_that_is_there_twice_is_named_on_all", full_start, 3, 3, twice, crew_threads, 0, 0,
     RING_ERR_CONFIG, "*two processes claim to be rank 1*", NONE},
    {"another_number_of_ranks_is_told_on_both_sides", with_its_own_size, 2, 2, NULL, crew_threads,
     0, 0, RING_ERR_CONFIG, "*rank 1 was started with 3 ranks*", 1, RING_ERR_CONFIG,
     "*rank 0 was started with 2 ranks*"},
    {"a_wrong_key_is_refused_on_both_sides", with_a_wrong_key, 2, 2, NULL, crew_threads, 0.4, 0,
     RING_ERR_TIMEOUT, "*rank 1 of 2*", 1, RING_ERR_AUTH, "*could not prove*"},
    {"another_version_is_told_on_all_ranks", one_of_another_version, 3, 3, NULL, crew_threads, 0, 0,
     RING_ERR_CONFIG, "*987654*", NONE},
    {"another_byte_order_is_told_on_all_ranks", one_of_another_order, 3, 3, NULL, crew_threads, 0,
     0, RING_ERR_CONFIG, "*byte order*", 1, RING_OK, NULL},
    {"a_rank_that_dies_while_others_are_awaited_is_named_at_once", killed_after_joining, 3, 2, NULL,
     crew_threads, 0, 2, RING_ERR_PEER, "*rank 1 (elsewhere, pid 4711)*", 1, RING_OK, NULL},
    {"a_rank_lost_while_links_are_made_is_named_on_all", leave_instead_of_linking, 4, 4, NULL,
     crew_threads, 0, 5, RING_ERR_PEER, "*rank 2*", 2, RING_OK, NULL},
    {"a_lack_of_descriptors_is_told_on_all_at_once", link_without_descriptors, 3, 3, NULL,
     crew_processes, 0, 5, RING_ERR_SYSTEM, "*ulimit -n*", 0, RING_ERR_SYSTEM,
     "*rank 2 (*ulimit -n*"},
    {"the_first_disagreement_is_that_of_all", disagree, 4, 4, NULL, crew_threads, 0, 0,
     RING_ERR_MEMORY, "*rank 2 (*no memory for what I want*", NONE},
    {"the_reason_beats_its_effects", see_only_the_effect, 4, 4, NULL, crew_threads, 0, 0,
     RING_ERR_CONFIG, "*rank 3 (*the arguments make no sense*", NONE},
};
enum { FAILING_STARTS = sizeof failing_starts / sizeof failing_starts[0] };

static void judge(const failing_start *f, const outcome *o, ring_status status, const char *text)
{
    if (text == NULL)
        return;
    if (o->status != status || fnmatch(text, o->text, 0) != 0)
        stop_test("got status %d \"%s\", wanted %d with \"%s\"\n", (int)o->status, o->text,
                  (int)status, text);
    if (f->most > 0 && o->seconds > seconds_allowed(f->most))
        stop_test("it took %.2f s, wanted %.2f\n", o->seconds, f->most);
}

static void a_start_fails(void **state)
{
    const failing_start *f = *state;
    crew *c = crew_new(f->count);
    if (f->came != NULL)
        memcpy(c->ranks, f->came, (size_t)f->count * sizeof f->came[0]);
    set_number("RING_INIT_TIMEOUT", f->init_timeout > 0 ? f->init_timeout : 200);
    ring_unique_id id = new_id();
    f->run(c, f->size, f->body, &id);
    for (int i = 0; i < f->count; i++)
        judge(f, &c->outcomes[i], i == f->but ? f->but_status : f->status,
              i == f->but ? f->but_text : f->text);
    crew_free(c);
}

/* ---- Ids --------------------------------------------------------------------------- */

static void an_id_serves_once_and_only_where_it_was_made(void **state)
{
    control_world *world;
    ring_unique_id id = new_id(), nonsense = {{0}};
    crew *c = crew_new(2);
    crew_threads(c, 2, full_start, &id);
    crew_assert_all(c, RING_OK);
    assert_int_equal(join_by_id(&id, 2, 0, 1, &world), RING_ERR_USAGE);
    assert_int_equal(join_by_id(&nonsense, 2, 1, 1, &world), RING_ERR_ARGUMENT);
    assert_int_equal(join_by_id(&id, 2, 2, 1, &world), RING_ERR_ARGUMENT);
    crew_free(c);
}

static void nothing_stays_open_after_good_and_bad_starts(void **state)
{
    crew *c = crew_new(3);
    ring_unique_id id = new_id();
    crew_threads(c, 3, full_start, &id);
    const int before = count_fds();
    for (int i = 0; i < 5; i++) {
        id = new_id();
        crew_threads(c, 3, i % 2 ? full_start : leave_instead_of_linking, &id);
        id = new_id();
        crew_threads(c, 3, i % 2 ? disagree : with_its_own_size, &id);
    }
    assert_int_equal(count_fds(), before);
    crew_free(c);
}

/* ---- Who is where ------------------------------------------------------------------ */

static ring_status own_host(int rank, int size, void *hosts)
{
    ring_unique_id unused = {{0}};
    control_world *world;
    if (rank == 1 && unshare(CLONE_NEWNET) != 0)
        return fail(RING_ERR_UNSUPPORTED, "unshare: %m");
    credential_make_id(&(net_address){.at.v4.sin_family = AF_INET}, false, &unused);
    RING_TRY(join_by_id(&unused, 1, 0, 1, &world));
    memcpy((unsigned char *)hosts + 16 * rank, world->cards[0].host, 16);
    control_free(world);
    return RING_OK;
}

static void another_network_namespace_is_another_host(void **state)
{
    unsigned char *hosts = shared_memory(64);
    crew *c = crew_new(3);
    if (!is_root())
        skip_because("only root can make network namespaces");
    crew_processes(c, 3, own_host, hosts);
    crew_assert_all(c, RING_OK);
    assert_memory_equal(hosts, hosts + 32, 16);
    assert_memory_not_equal(hosts, hosts + 16, 16);
    crew_free(c);
    shared_free(hosts, 64);
}

static ring_status with_own_settings(int rank, int size, void *id)
{
    control_world *world;
    if (rank == 1)
        setenv("RING_ALGO", "chain", 1);
    set_number("RING_PEER_TIMEOUT", 3 + rank);
    set_number("RING_TIMEOUT", 30 + rank);
    RING_TRY(join_by_id(id, size, rank, 5, &world));
    const settings s = world->settings;
    control_free(world);
    if (s.algo[0] != '\0' || s.peer_timeout > 3 || s.timeout > 30)
        return fail(RING_ERR_INTERNAL, "rank %d has its own settings", rank);
    return RING_OK;
}

static void rank_0_settings_hold_where_all_must_agree(void **state)
{
    crew *c = crew_new(3);
    ring_unique_id id = new_id();
    crew_processes(c, 3, with_own_settings, &id);
    crew_assert_all(c, RING_OK);
    crew_free(c);
}

static int run_failing_starts(void)
{
    struct CMUnitTest tests[FAILING_STARTS];
    for (int i = 0; i < FAILING_STARTS; i++)
        tests[i] = (struct CMUnitTest){.name = failing_starts[i].name,
                                       .test_func = a_start_fails,
                                       .initial_state = (void *)&failing_starts[i]};
    return cmocka_run_group_tests_name("starts that fail", tests, NULL, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(threads_of_one_process_join_and_link),
        TEST(processes_join_and_link),
        TEST(two_ranks_start_within_milliseconds),
        TEST(without_rank_0_the_place_is_named),
        TEST(a_rank_that_failed_before_says_why_on_all),
        TEST(a_rank_that_cannot_join_says_why_on_all),
        TEST(an_id_serves_once_and_only_where_it_was_made),
        TEST(nothing_stays_open_after_good_and_bad_starts),
        TEST(another_network_namespace_is_another_host),
        TEST(rank_0_settings_hold_where_all_must_agree),
        TEST(one_rank_opens_no_socket),
    };
    return run_failing_starts() + cmocka_run_group_tests(tests, NULL, NULL);
}
