/* SPDX-License-Identifier: Apache-2.0
 * Data sockets: at any time, for exactly the pair, traffic, index and communicator that both ends
 * prove. */
#include "stage.h"

#include "control_message.h"
#include "handshake.h"
#include "puppet.h"

#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 6 };

/* ---- Sockets that are dialed late -------------------------------------------------- */

typedef struct basket {
    pthread_mutex_t lock;
    int fds[SIZE];
    control_purpose purposes[SIZE];
    int count;
    ring_status failed;
    char text[128];
} basket;

static bool collect(void *context, int peer, const control_purpose *purpose, ring_status status,
                    const control_socket *socket)
{
    basket *b = context;
    bool taken = false;
    pthread_mutex_lock(&b->lock);
    if (status != RING_OK) {
        b->failed = status;
        text_format(b->text, sizeof b->text, "%s", fail_text());
    } else if (b->fds[peer] < 0) {
        b->fds[peer] = socket->fd;
        b->purposes[peer] = *purpose;
        b->count++;
        taken = true;
    }
    pthread_mutex_unlock(&b->lock);
    return taken;
}

static void basket_init(basket *b)
{
    memset(b, 0, sizeof *b);
    memset(b->fds, -1, sizeof b->fds);
    pthread_mutex_init(&b->lock, NULL);
}

static int basket_count(basket *b)
{
    pthread_mutex_lock(&b->lock);
    const int count = b->count;
    pthread_mutex_unlock(&b->lock);
    return count;
}

static ring_status basket_failure(basket *b)
{
    pthread_mutex_lock(&b->lock);
    const ring_status failed = b->failed;
    pthread_mutex_unlock(&b->lock);
    return failed;
}

static void basket_free(basket *b)
{
    for (int r = 0; r < SIZE; r++)
        fd_close(&b->fds[r]);
    pthread_mutex_destroy(&b->lock);
}

static control_purpose purpose_of(int a, int b)
{
    return (control_purpose){.traffic = (uint16_t)(a + b),
                             .index = (uint16_t)(a * b),
                             .transport = 3,
                             .local = (a + b) % 2 == 1};
}

/* Of each pair one rank: of some the lower, of some the higher one. */
static bool dials(int rank, int peer)
{
    const bool lower = (rank * peer + rank + peer) % 3 == 0;
    return (rank < peer) == lower;
}

/* Each says who it is over the socket of each pair. */
static ring_status exchange_ranks(control_world *w, basket *b)
{
    for (int r = 0; r < w->size; r++) {
        int32_t mine = w->rank, theirs = -1;
        if (r == w->rank)
            continue;
        RING_TRY(fd_write_all(b->fds[r], &mine, sizeof mine, clock_now() + 5));
        RING_TRY(fd_read_all(b->fds[r], &theirs, sizeof theirs, clock_now() + 5));
        const control_purpose want = purpose_of(w->rank, r), got = b->purposes[r];
        if (theirs != r || got.traffic != want.traffic || got.index != want.index ||
            got.transport != want.transport || got.local != want.local)
            return fail(RING_ERR_INTERNAL,
                        "the socket to rank %d is for rank %d, traffic %u, index %u", r, theirs,
                        got.traffic, got.index);
    }
    return RING_OK;
}

static ring_status dial_and_exchange(control_world *w, basket *b)
{
    for (int r = 0; r < w->size; r++) {
        const control_purpose purpose = purpose_of(w->rank, r);
        if (r != w->rank && dials(w->rank, r))
            RING_TRY(control_dial(w, r, &purpose, clock_now() + 10));
    }
    const double deadline = clock_now() + 10;
    while (basket_count(b) < w->size - 1 && clock_now() < deadline)
        clock_sleep(0.001);
    if (basket_count(b) < w->size - 1)
        return fail(RING_ERR_TIMEOUT, "%d of %d sockets", basket_count(b), w->size - 1);
    return exchange_ranks(w, b);
}

static ring_status link_late(int rank, int size, void *id)
{
    control_world *w;
    basket b;
    basket_init(&b);
    RING_TRY(join_by_id(id, size, rank, 5, &w));
    control_set_sink(w, collect, &b);
    ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    clock_sleep(0.1 * (rank % 3)); /* the start is over, for some long ago */
    if (status == RING_OK)
        status = dial_and_exchange(w, &b);
    if (status == RING_OK && control_dial(w, rank, &(control_purpose){.traffic = 1}, 0) == RING_OK)
        status = fail(RING_ERR_INTERNAL, "a rank may dial itself");
    clock_sleep(0.2);
    control_free(w);
    basket_free(&b);
    return status;
}

static void a_pair_is_opened_at_any_time(void **state)
{
    for (int i = 0; i < 3; i++) {
        ring_unique_id id = new_id();
        crew *c = crew_new(SIZE);
        if (i % 2 == 0)
            crew_threads(c, SIZE, link_late, &id);
        else
            crew_processes(c, SIZE, link_late, &id);
        crew_assert_all(c, RING_OK);
        crew_free(c);
    }
}

/* ---- Who shows the key ---------------------------------------------------------------- */

/* @param[out] answer  what the acceptor said to @p hello. @return whether that showed the key. */
static bool shows_key(const handshake_terms *terms, const handshake_hello *hello,
                      handshake_hello *answer)
{
    handshake h;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(write(ends[1], hello, sizeof *hello), sizeof *hello);
    handshake_accept(&h, ends[0], terms);
    assert_int_equal(handshake_step(&h), RING_IN_PROGRESS);
    assert_int_equal(read(ends[1], answer, sizeof *answer), sizeof *answer);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return h.shows_key;
}

/* A stranger's answer is useless to it: it may send it back. */
static void only_who_dials_with_the_key_shows_it(void **state)
{
    const handshake_purpose purpose = {.kind = HANDSHAKE_JOIN};
    const handshake_terms zero = {.key = {7}, .rank = 0, .size = 2};
    const handshake_terms one = {.key = {7}, .rank = 1, .size = 2}, other = {.rank = 1, .size = 2};
    const handshake_hello member = handshake_hello_to(&one, 0, &purpose);
    const handshake_hello stranger = handshake_hello_to(&other, 0, &purpose);
    handshake_hello answer, unused;
    assert_true(shows_key(&zero, &member, &answer));
    assert_false(shows_key(&zero, &answer, &unused));
    assert_false(shows_key(&zero, &stranger, &answer));
    assert_false(shows_key(&zero, &answer, &unused));
}

/* ---- Both dial ---------------------------------------------------------------------- */

enum { PURPOSES = 200 };

typedef struct crossing {
    pthread_mutex_t lock;
    control_socket sockets[PURPOSES];
    _Atomic int count, twice;
} crossing;

static bool collect_crossing(void *context, int peer, const control_purpose *purpose,
                             ring_status status, const control_socket *socket)
{
    crossing *c = context;
    pthread_mutex_lock(&c->lock);
    const bool first = status == RING_OK && c->sockets[purpose->index].fd < 0;
    if (first)
        c->sockets[purpose->index] = *socket;
    c->count += first;
    c->twice += !first;
    pthread_mutex_unlock(&c->lock);
    return first;
}

/** The facts that one end shows the other. */
typedef struct crossing_end {
    int32_t number;
    control_keys keys;
} crossing_end;

static ring_status check_end(const control_world *w, const control_socket *socket, int i)
{
    const crossing_end mine = {.number = w->rank * PURPOSES + i, .keys = socket->keys};
    crossing_end theirs;
    RING_TRY(fd_write_all(socket->fd, &mine, sizeof mine, clock_now() + 5));
    RING_TRY(fd_read_all(socket->fd, &theirs, sizeof theirs, clock_now() + 5));
    if (theirs.number != (1 - w->rank) * PURPOSES + i)
        return fail(RING_ERR_INTERNAL, "index %d meets %d", i, theirs.number);
    if (memcmp(mine.keys.out, theirs.keys.in, CONTROL_SOCKET_KEY) != 0 ||
        memcmp(mine.keys.in, theirs.keys.out, CONTROL_SOCKET_KEY) != 0)
        return fail(RING_ERR_INTERNAL, "index %d: the ends have other keys", i);
    return memcmp(mine.keys.out, mine.keys.in, CONTROL_SOCKET_KEY) != 0
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "index %d: one key for both directions", i);
}

static ring_status check_crossing(const control_world *w, const crossing *c)
{
    for (int i = 0; i < PURPOSES; i++) {
        RING_TRY(check_end(w, &c->sockets[i], i));
        if (i > 0 &&
            memcmp(c->sockets[i].keys.out, c->sockets[i - 1].keys.out, CONTROL_SOCKET_KEY) == 0)
            return fail(RING_ERR_INTERNAL, "two connections have one key");
    }
    return c->twice == 0 ? RING_OK : fail(RING_ERR_INTERNAL, "%d sockets came twice", c->twice);
}

static ring_status dial_each_other(int rank, int size, void *id)
{
    crossing c = {.lock = PTHREAD_MUTEX_INITIALIZER};
    control_world *w;
    for (int i = 0; i < PURPOSES; i++)
        c.sockets[i].fd = -1;
    RING_TRY(join_by_id(id, size, rank, 5, &w));
    control_set_sink(w, collect_crossing, &c);
    ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    const double deadline = clock_now() + 20;
    for (int i = 0; i < PURPOSES && status == RING_OK; i++) {
        const control_purpose purpose = {.index = (uint16_t)i, .local = i % 2 == 0};
        status = control_dial(w, 1 - rank, &purpose, deadline);
        if (i % 3 == 0) /* a second wish is no second socket */
            status = control_dial(w, 1 - rank, &purpose, deadline);
    }
    while (c.count < PURPOSES && clock_now() < deadline)
        clock_sleep(0.001);
    if (status == RING_OK)
        status = check_crossing(w, &c);
    control_free(w);
    for (int i = 0; i < PURPOSES; i++)
        fd_close(&c.sockets[i].fd);
    return status;
}

static void two_that_dial_each_other_have_one_socket(void **state)
{
    for (int i = 0; i < 4; i++) {
        ring_unique_id id = new_id();
        crew *c = crew_new(2);
        if (i % 2 == 0)
            crew_threads(c, 2, dial_each_other, &id);
        else
            crew_processes(c, 2, dial_each_other, &id);
        crew_assert_all(c, RING_OK);
        crew_free(c);
    }
}

/* ---- Of communicators that are made later ------------------------------------------ */

/* @return their number, or `count` with a failure. */
static int await_sockets(basket *b, int count)
{
    const double deadline = clock_now() + 5;
    int here = 0;
    while (here < count && clock_now() < deadline) {
        clock_sleep(0.0005);
        here = basket_failure(b) != RING_OK ? count : basket_count(b);
    }
    return here;
}

/* Both dial, and have one socket. */
static ring_status check_sockets(basket *b, int rank)
{
    int32_t mine = rank, theirs = -1;
    if (await_sockets(b, 1) != 1 || b->failed != RING_OK)
        return fail(RING_ERR_INTERNAL, "rank %d: %d sockets", rank, b->count);
    RING_TRY(fd_write_all(b->fds[1 - rank], &mine, sizeof mine, clock_now() + 5));
    RING_TRY(fd_read_all(b->fds[1 - rank], &theirs, sizeof theirs, clock_now() + 5));
    if (theirs != 1 - rank)
        return fail(RING_ERR_INTERNAL, "rank %d got a socket that rank %d has", rank, theirs);
    return b->count == 1 ? RING_OK : fail(RING_ERR_INTERNAL, "%d sockets", b->count);
}

static ring_status dial_early(control_world *two)
{
    const control_purpose purpose = {.traffic = 2, .local = true};
    return control_dial(two, 1 - two->rank, &purpose, clock_now() + 5);
}

/* Ranks 3 and 2 of four: their ranks in it are others. Rank 2 makes it late, and
 * sets its sink later. */
static ring_status meet_by_sockets(stage *s, control_world **w)
{
    const int pair[] = {3, 2}, rank = (*w)->rank;
    basket b;
    control_world *two = NULL;
    basket_init(&b);
    if (rank == 2)
        clock_sleep(0.3);
    if (rank >= 2) {
        RING_TRY(control_derive(*w, s->ids[0], pair, 2, &two));
        clock_sleep(rank == 2 ? 0.2 : 0);
        control_set_sink(two, collect, &b);
        RING_TRY(dial_early(two));
        RING_TRY(check_sockets(&b, two->rank));
        RING_TRY(stage_meet(s, 2, 2));
        control_report(two, RING_ERR_ABORTED, "enough of it");
        RING_TRY(dial_early(two));
        if (b.failed != RING_ERR_ABORTED || strcmp(b.text, "enough of it") != 0)
            return fail(RING_ERR_INTERNAL, "the sink got %d \"%s\"", (int)b.failed, b.text);
    }
    RING_TRY(stage_meet(s, 1, s->size));
    control_free(two);
    basket_free(&b);
    return RING_OK;
}

static void both_ranks_dial_and_early_sockets_are_held(void **state)
{
    for (int i = 0; i < 3; i++)
        stage_run(stage_new(4, meet_by_sockets), 0);
}

/* Rank 1 dials what rank 0 never makes; rank 0 closes it when the verdict comes. */
static ring_status dial_into_the_void(stage *s, control_world **w)
{
    basket b;
    control_world *two;
    char byte;
    basket_init(&b);
    if ((*w)->rank == 0)
        return stage_meet(s, 1, 2);
    RING_TRY(derive_bits(*w, s->ids[0], 3, &two));
    control_set_sink(two, collect, &b);
    RING_TRY(dial_early(two));
    if (await_sockets(&b, 1) != 1 || b.failed != RING_OK)
        return fail(RING_ERR_INTERNAL, "no socket");
    if (fd_read_all(b.fds[0], &byte, 1, clock_now() + 0.2) != RING_ERR_TIMEOUT)
        return fail(RING_ERR_INTERNAL, "it was not held");
    control_report(two, RING_ERR_ABORTED, "enough");
    const ring_status status = fd_read_all(b.fds[0], &byte, 1, clock_now() + 5);
    if (status == RING_OK || status == RING_ERR_TIMEOUT)
        return fail(RING_ERR_INTERNAL, "it was not closed with the verdict");
    basket_free(&b);
    control_free(two);
    return stage_meet(s, 1, 2);
}

static void a_held_socket_ends_with_the_communicator(void **state)
{
    stage_run(stage_new(2, dial_into_the_void), 0);
}

static ring_status dial_whoever_left(int rank, int size, void *id)
{
    control_world *w;
    basket b;
    ring_status status = RING_OK;
    basket_init(&b);
    RING_TRY(join_by_id(id, size, rank, 5, &w));
    RING_TRY(control_agree(w, RING_OK));
    control_start(w, no_wake, NULL);
    if (rank == 1) {
        while (!control_left(w, 0))
            clock_sleep(0.001);
        control_set_sink(w, collect, &b);
        status = control_dial(w, 0, &(control_purpose){.local = true}, clock_now() + 0.3);
        clock_sleep(0.6);
        if (status == RING_OK && basket_failure(&b) != RING_ERR_PEER)
            status = fail(RING_ERR_INTERNAL, "the sink got %d", (int)basket_failure(&b));
    }
    control_free(w);
    basket_free(&b);
    return status;
}

static void a_dial_in_vain_is_told_to_the_sink(void **state)
{
    ring_unique_id id = new_id();
    crew *c = crew_new(2);
    crew_threads(c, 2, dial_whoever_left, &id);
    crew_assert_all(c, RING_OK);
    crew_free(c);
}

/* ---- Binding ----------------------------------------------------------------------- */

/** Facts that rank 1 of a communicator has, and a forger of another one does not. */
typedef struct insider {
    ring_unique_id id;
    handshake_terms terms;
    control_card card; /* of rank 0 */
    basket basket;     /* of rank 0 */
    atomic_bool ready, done;
} insider;

typedef void change(handshake_terms *terms, handshake_hello *hello);

static void nothing(handshake_terms *terms, handshake_hello *hello)
{
}

static void another_session(handshake_terms *terms, handshake_hello *hello)
{
    hello->session[3] ^= 1;
}

static void another_peer(handshake_terms *terms, handshake_hello *hello)
{
    hello->peer = 1;
}

static void another_key(handshake_terms *terms, handshake_hello *hello)
{
    terms->key[0] ^= 1;
}

static void another_byte_order(handshake_terms *terms, handshake_hello *hello)
{
    hello->order = 0x04030201;
}

static void another_version(handshake_terms *terms, handshake_hello *hello)
{
    hello->version++;
}

/* Dials rank 0 as rank 1 would. */
static ring_status prove_link(const insider *in, change *how, int *fd)
{
    handshake_terms terms = in->terms;
    handshake h;
    const handshake_purpose purpose = {.kind = HANDSHAKE_LINK,
                                       .traffic = 1,
                                       .index = 2,
                                       .transport = 3};
    const net_address at = address_unix(in->card.unix_name);
    handshake_hello hello = handshake_hello_to(&terms, 0, &purpose);
    ring_status status;
    how(&terms, &hello);
    RING_TRY(address_socket(&at, fd));
    if (connect(*fd, &at.at.any, at.length) != 0)
        return fail(RING_ERR_SYSTEM, "connect: %m");
    handshake_dial(&h, *fd, &terms, &hello, 5);
    while ((status = handshake_step(&h)) == RING_IN_PROGRESS)
        clock_sleep(0.001);
    return status;
}

static ring_status refuse_forgeries(insider *in)
{
    static change *const forgeries[] = {another_session, another_peer, another_key,
                                        another_byte_order, another_version};
    int fd;
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        const ring_status status = prove_link(in, forgeries[i], &fd);
        fd_close(&fd);
        if (status == RING_OK)
            return fail(RING_ERR_INTERNAL, "forgery %zu was welcomed", i);
    }
    if (basket_count(&in->basket) != 0)
        return fail(RING_ERR_INTERNAL, "a forgery reached the sink");
    RING_TRY(prove_link(in, nothing, &fd));
    const double deadline = clock_now() + 5;
    while (basket_count(&in->basket) == 0 && clock_now() < deadline)
        clock_sleep(0.001);
    fd_close(&fd);
    const control_purpose *got = &in->basket.purposes[1];
    return basket_count(&in->basket) == 1 && got->traffic == 1 && got->index == 2 &&
                   got->transport == 3 && got->local
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "the true one did not come through");
}

/* Rank 1 by hand: it learns the session with rank 0's proof, and so the key of the links. */
static ring_status forge_links(insider *in, int size)
{
    puppet p;
    control_message m;
    RING_TRY(puppet_dial(&p, &in->id, 1, size));
    RING_TRY(puppet_prove(&p));
    RING_TRY(puppet_bring_card(&p, "here", 1));
    do {
        RING_TRY(puppet_hear(&p, &m));
    } while (m.kind != CONTROL_CARDS);
    in->card = m.body.cards[0];
    in->terms = p.terms;
    memcpy(in->terms.session, p.handshake.acceptor.session, HANDSHAKE_SESSION);
    crypto_auth_hmacsha256(in->terms.key, in->terms.session, HANDSHAKE_SESSION, p.terms.key);
    while (!atomic_load(&in->ready))
        clock_sleep(0.001);
    const ring_status status = refuse_forgeries(in);
    atomic_store(&in->done, true);
    puppet_end(&p);
    return status;
}

static ring_status be_forged_at(int rank, int size, void *context)
{
    insider *in = context;
    control_world *w;
    if (rank == 1)
        return forge_links(in, size);
    RING_TRY(join_by_id(&in->id, size, rank, 5, &w));
    control_set_sink(w, collect, &in->basket);
    atomic_store(&in->ready, true);
    while (!atomic_load(&in->done))
        clock_sleep(0.001);
    control_free(w);
    return RING_OK;
}

static void a_link_proves_job_membership_and_pair(void **state)
{
    insider in = {.id = new_id()};
    basket_init(&in.basket);
    crew *c = crew_new(2);
    crew_threads(c, 2, be_forged_at, &in);
    crew_assert_all(c, RING_OK);
    basket_free(&in.basket);
    crew_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(a_pair_is_opened_at_any_time),
        cmocka_unit_test(only_who_dials_with_the_key_shows_it),
        TIMED_TEST(two_that_dial_each_other_have_one_socket),
        TIMED_TEST(both_ranks_dial_and_early_sockets_are_held),
        TIMED_TEST(a_held_socket_ends_with_the_communicator),
        TIMED_TEST(a_dial_in_vain_is_told_to_the_sink),
        TIMED_TEST(a_link_proves_job_membership_and_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
