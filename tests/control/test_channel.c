/* SPDX-License-Identifier: Apache-2.0
 * Input from the wire is checked before it is believed or shown; and the thread that serves
 * all communicators of a process. */
#include "ranks.h"

#include "id_listener.h"
#include "puppet.h"
#include "stage.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Messages ---------------------------------------------------------------------- */

static void a_reason_is_never_without_status_and_text(void **state)
{
    const int32_t none[] = {0, 1, 7, -1, 99, INT32_MAX, INT32_MIN};
    control_message m;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        control_message_reason(&m, CONTROL_VERDICT, 1, RING_ERR_PEER, "");
        m.status = none[i];
        assert_true(control_message_check(&m, 2));
        assert_int_equal(m.status, RING_ERR_INTERNAL);
        assert_non_null(strstr(m.body.text, "rank 1 gave no reason"));
    }
    control_message_reason(&m, CONTROL_VERDICT, 1, RING_ERR_MISMATCH, "other calls");
    assert_true(control_message_check(&m, 2));
    assert_int_equal(m.status, RING_ERR_MISMATCH);
    assert_string_equal(m.body.text, "other calls");
}

static void texts_from_the_wire_are_made_printable(void **state)
{
    static const char good[] = "gr\xc3\xbc\xc3\x9f"
                               "e \xe2\x80\xa6 \xf0\x9f\x99\x82";
    static const char *const texts[][2] = {
        {"a\x1b[31mb\nc\td\x7f", "a?[31mb?c?d?"},
        {good, good},
        {"\xc3", "?"},
        {"\xc3"
         "a",
         "?a"},
        {"\xc0\x80", "??"},
        {"\xc2\x9b", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf5\x80\x80\x80", "????"},
        {"\xff\xfe", "??"},
    };
    control_message m;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        control_message_reason(&m, CONTROL_VERDICT, 0, RING_ERR_PEER, texts[i][0]);
        assert_true(control_message_check(&m, 2));
        assert_string_equal(m.body.text, texts[i][1]);
    }
    memset(m.body.text, 0xe2, sizeof m.body.text); /* has no end, and ends in half a letter */
    assert_true(control_message_check(&m, 2));
    assert_int_equal(strspn(m.body.text, "?"), sizeof m.body.text - 1);
    control_message_begin(&m, CONTROL_CARD, 1);
    m.body.join.card.rank = 1;
    memset(m.body.join.card.hostname, '\n', sizeof m.body.join.card.hostname);
    assert_true(control_message_check(&m, 2));
    assert_int_equal(strspn(m.body.join.card.hostname, "?"), CARD_NAME_MAX - 1);
}

static void numbers_from_the_wire_are_checked(void **state)
{
    control_message m;
    for (uint32_t kind = 0; kind < CONTROL_KINDS + 2; kind++) {
        memset(&m, 0xff, sizeof m);
        m.kind = kind;
        assert_false(control_message_check(&m, 4)); /* rank -1 */
        m.rank = 4;
        assert_false(control_message_check(&m, 4));
    }
    const struct {
        enum control_kind kind;
        int rank, count, first;
    } wrong[] = {{0, 0, 0, 0},
                 {CONTROL_KINDS, 0, 0, 0},
                 {CONTROL_CARD, 1, 0, 2},
                 {CONTROL_CARDS, 0, 0, 0},
                 {CONTROL_CARDS, 0, CONTROL_CARDS_MOST + 1, 0},
                 {CONTROL_CARDS, 3, 2, 3},
                 {CONTROL_CARDS, 1, 1, 2},
                 {CONTROL_READY, 1, 0, 0},
                 {CONTROL_LEFT, 1, CONTROL_LEFT_MOST + 1, 0},
                 {CONTROL_LEFT, 1, -1, 0},
                 {CONTROL_LEFT, 1, 1, 4},
                 {CONTROL_TERMS, 0, 0, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        control_message_begin(&m, wrong[i].kind, wrong[i].rank);
        m.count = wrong[i].count;
        if (wrong[i].kind == CONTROL_LEFT)
            m.body.ranks[0] = wrong[i].first;
        else if (wrong[i].kind == CONTROL_CARD)
            m.body.join.card.rank = wrong[i].first;
        else
            m.body.cards[0].rank = wrong[i].first;
        assert_false(control_message_check(&m, 4));
    }
}

/* ---- From a rank that says nonsense ------------------------------------------------ */

typedef struct liar {
    ring_unique_id id;
    control_message lie;
    void (*change)(puppet *p, control_sealed *sealed); /* on the way, NULL: it comes as it is */
} liar;

static ring_status lie(const liar *l, int size)
{
    puppet p;
    control_message m;
    RING_TRY(puppet_dial(&p, &l->id, 1, size));
    RING_TRY(puppet_prove(&p));
    RING_TRY(puppet_bring_card(&p, "li\nar", 7));
    do {
        RING_TRY(puppet_hear(&p, &m));
    } while (m.kind != CONTROL_CARDS);
    control_sealed sealed = puppet_seal(&p, &l->lie);
    if (l->change != NULL)
        l->change(&p, &sealed);
    RING_TRY(fd_write_all(p.fd, &sealed, sizeof sealed, clock_now() + 5));
    while (m.kind != CONTROL_VERDICT && puppet_hear(&p, &m) == RING_OK)
        continue;
    puppet_end(&p);
    return RING_OK;
}

static ring_status hear_lies(int rank, int size, void *context)
{
    const liar *l = context;
    control_world *w;
    if (rank == 1)
        return lie(l, size);
    RING_TRY(join_by_id(&l->id, size, rank, 5, &w));
    const ring_status status = control_agree(w, RING_OK);
    control_free(w);
    return status;
}

static void expect(const control_message *m, ring_status status, const char *text)
{
    liar l = {.id = new_id(), .lie = *m};
    crew *c = crew_new(2);
    crew_threads(c, 2, hear_lies, &l);
    outcome_assert(&c->outcomes[0], status, text);
    crew_free(c);
}

static void nonsense_ends_the_communicator_with_a_text(void **state)
{
    control_message m;
    control_message_reason(&m, CONTROL_PROPOSAL, 1, (ring_status)4711, "");
    expect(&m, RING_ERR_INTERNAL, "rank 1 gave no reason");
    control_message_reason(&m, CONTROL_PROPOSAL, 1, RING_ERR_MEMORY, "\033[2Jno memory");
    expect(&m, RING_ERR_MEMORY, "?[2Jno memory");
    control_message_begin(&m, (enum control_kind)4711, 1);
    expect(&m, RING_ERR_INTERNAL, "rank 1 (li?ar, pid 7) sent an invalid control message");
    control_message_begin(&m, CONTROL_CARDS, 0);
    m.count = 1;
    expect(&m, RING_ERR_INTERNAL, "an invalid control message");
}

/* ---- From a wire that changes what is said ----------------------------------------- */

static void flip(puppet *p, control_sealed *sealed)
{
    sealed->message.body.text[100] ^= 1;
}

static void flip_mac(puppet *p, control_sealed *sealed)
{
    sealed->mac[CONTROL_MAC - 1] ^= 0x80;
}

/* The message before this one was lost. */
static void leave_out(puppet *p, control_sealed *sealed)
{
    *sealed = puppet_seal(p, &sealed->message);
}

/* It is the card again that was brought before it. */
static void repeat(puppet *p, control_sealed *sealed)
{
    control_message_seal(sealed, p->keys.out, 0);
}

/* Of the other direction, or another connection. */
static void replant(puppet *p, control_sealed *sealed)
{
    control_message_seal(sealed, p->keys.in, p->said - 1);
}

static void a_changed_message_ends_the_communicator(void **state)
{
    static void (*const changes[])(puppet * p, control_sealed * sealed) = {flip, flip_mac,
                                                                           leave_out, repeat,
                                                                           replant};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        liar l = {.id = new_id(), .change = changes[i]};
        crew *c = crew_new(2);
        control_message_begin(&l.lie, CONTROL_BEAT, 1);
        crew_threads(c, 2, hear_lies, &l);
        outcome_assert(&c->outcomes[0], RING_ERR_SYSTEM,
                       "rank 1 (li?ar, pid 7) sent a control message that was altered on the way");
        crew_free(c);
    }
}

/* ---- One thread a process ---------------------------------------------------------- */

enum { RANKS = 4, WORLDS = 3 };

typedef struct census {
    ring_unique_id ids[WORLDS];
    atomic_int up, down;
    int threads;
} census;

static ring_status join_several(int rank, int size, void *context)
{
    census *s = context;
    control_world *worlds[WORLDS];
    for (int i = 0; i < WORLDS; i++) {
        RING_TRY(join_by_id(&s->ids[i], size, rank, 5, &worlds[i]));
        RING_TRY(control_agree(worlds[i], RING_OK));
        control_start(worlds[i], no_wake, NULL);
    }
    atomic_fetch_add(&s->up, 1);
    while (atomic_load(&s->up) < size)
        clock_sleep(0.001);
    if (rank == 0)
        s->threads = count_threads();
    atomic_fetch_add(&s->down, 1);
    while (atomic_load(&s->down) < size)
        clock_sleep(0.001);
    for (int i = 0; i < WORLDS; i++)
        control_free(worlds[i]);
    return RING_OK;
}

static void all_communicators_of_a_process_share_one_thread(void **state)
{
    census s = {.threads = 0};
    const int before = count_threads();
    for (int i = 0; i < WORLDS; i++)
        s.ids[i] = new_id();
    crew *c = crew_new(RANKS);
    crew_threads(c, RANKS, join_several, &s);
    crew_assert_all(c, RING_OK);
    assert_int_equal(s.threads, before + RANKS + 1);
    assert_int_equal(count_threads(), before);
    crew_free(c);
}

/* ---- Ids that nobody joins --------------------------------------------------------- */

static int port_of(const ring_unique_id *id)
{
    credential c;
    assert_int_equal(credential_from_id(id, &c), RING_OK);
    return address_port(&c.at[0]);
}

static void nobody_listens_at_the_port_of_an_id_before_rank_0_joins(void **state)
{
    setenv("RING_ADDR", "127.0.0.1", 1);
    const ring_unique_id id = new_id();
    assert_int_equal(connect_to(port_of(&id)), -1);
    assert_int_equal(listen_at(port_of(&id)), -1); /* nor can anybody else */
    int bound = id_listener_take(&id);
    assert_true(bound >= 0);
    fd_close(&bound);
    unsetenv("RING_ADDR");
}

static void the_port_of_an_id_that_nobody_joins_is_given_back(void **state)
{
    control_world *w;
    const int before = count_fds();
    set_number("RING_INIT_TIMEOUT", 0.2);
    const ring_unique_id id = new_id();
    assert_int_equal(count_fds(), before + 1);
    clock_sleep(0.25);
    assert_int_equal(join_by_id(&id, 2, 0, 1, &w), RING_ERR_USAGE);
    assert_non_null(strstr(fail_text(), "RING_INIT_TIMEOUT"));
    assert_int_equal(count_fds(), before);
}

typedef struct forgotten {
    ring_unique_id id, never_joined;
    bool held, given_back; /* the port of the other id: at first, and in the end */
} forgotten;

static bool is_taken(int port)
{
    int fd = listen_at(port);
    const bool taken = fd < 0;
    fd_close(&fd);
    return taken;
}

/* No call is made: the control thread gives the port back. */
static ring_status forget_an_id(int rank, int size, void *context)
{
    forgotten *f = context;
    settings s;
    control_world *w;
    RING_TRY(join_by_id(&f->id, size, rank, 5, &w));
    RING_TRY(control_agree(w, RING_OK));
    control_start(w, no_wake, NULL);
    if (rank == 0) {
        set_number("RING_INIT_TIMEOUT", 1);
        RING_TRY(settings_read(&s));
        RING_TRY(control_make_id(&s, &f->never_joined));
        const int port = port_of(&f->never_joined);
        const double deadline = clock_now() + 30;
        f->held = is_taken(port);
        while (!f->given_back && clock_now() < deadline) {
            clock_sleep(0.05);
            f->given_back = !is_taken(port);
        }
    }
    const ring_status status = control_agree(w, RING_OK);
    control_free(w);
    return status;
}

static void the_thread_gives_ports_back_too(void **state)
{
    setenv("RING_ADDR", "127.0.0.1", 1);
    forgotten f = {.id = new_id()};
    crew *c = crew_new(2);
    crew_threads(c, 2, forget_an_id, &f);
    crew_assert_all(c, RING_OK);
    assert_true(f.held);
    assert_true(f.given_back);
    crew_free(c);
    unsetenv("RING_ADDR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(a_reason_is_never_without_status_and_text),
        TIMED_TEST(texts_from_the_wire_are_made_printable),
        TIMED_TEST(numbers_from_the_wire_are_checked),
        TIMED_TEST(nonsense_ends_the_communicator_with_a_text),
        TIMED_TEST(a_changed_message_ends_the_communicator),
        TIMED_TEST(all_communicators_of_a_process_share_one_thread),
        TIMED_TEST(nobody_listens_at_the_port_of_an_id_before_rank_0_joins),
        TIMED_TEST(the_port_of_an_id_that_nobody_joins_is_given_back),
        TIMED_TEST(the_thread_gives_ports_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
