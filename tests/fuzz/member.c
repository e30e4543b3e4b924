/* SPDX-License-Identifier: Apache-2.0
 * A member that has joined and then says anything: what rank 0 makes of it. */
#include "control/puppet.h"
#include "fuzz.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

enum { RANKS = 2, MESSAGES = 8 };

#define PATIENCE 8.0 /* s, far more than any of it takes */

/* ---- Rank 1 --------------------------------------------------------------------- */

typedef struct member {
    ring_unique_id id;
    const unsigned char *bytes;
    size_t count;       /* messages */
    atomic_bool agreed; /* rank 0 has ended its part of the start, one way or the other */
} member;

static ring_status join_as_member(const member *m, puppet *p)
{
    control_message heard;
    RING_TRY(puppet_dial(p, &m->id, 1, RANKS));
    RING_TRY(puppet_prove(p));
    RING_TRY(puppet_bring_card(p, "node1", 7));
    do {
        RING_TRY(puppet_hear(p, &heard));
    } while (heard.kind != CONTROL_CARDS);
    return RING_OK;
}

/* Without a wait of the kernel for late packets: there are many connections a second. */
static void leave_at_once(puppet *p)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    puppet_end(p);
}

/* A message before the end of the start ends it. */
static void await_start(const member *m, const control_message *said)
{
    const double deadline = clock_now() + PATIENCE / 4;
    if (said->kind != CONTROL_READY || said->rank != 1 || said->count != 1)
        return;
    while (!atomic_load(&m->agreed) && clock_now() < deadline)
        clock_sleep(1e-4);
}

static void *live_as_member(void *context)
{
    const member *m = context;
    control_message message;
    puppet p;
    must(join_as_member(m, &p) == RING_OK);
    for (size_t i = 0; i < m->count; i++) {
        memcpy(&message, m->bytes + i * sizeof message, sizeof message);
        if (puppet_say(&p, &message) != RING_OK)
            break;
        await_start(m, &message);
    }
    shutdown(p.fd, SHUT_WR);
    while (puppet_hear(&p, &message) == RING_OK)
        continue;
    leave_at_once(&p);
    return NULL;
}

/* ---- Rank 0 --------------------------------------------------------------------- */

static void wake_nobody(void *unused)
{
}

/* It has lived until the other left: by a goodbye, or by a verdict. */
static ring_status see_the_end(control_world *w)
{
    const double deadline = clock_now() + PATIENCE;
    control_start(w, wake_nobody, NULL);
    while (control_verdict(w) == RING_OK && !control_left(w, 1)) {
        must(clock_now() < deadline);
        clock_sleep(1e-4);
    }
    if (control_verdict(w) != RING_OK)
        fuzz_check_refusal(control_verdict(w), control_text(w));
    return RING_OK;
}

static ring_status live_as_rank_0(member *other)
{
    settings s;
    control_world *w;
    must(settings_read(&s) == RING_OK);
    s.init_timeout = s.peer_timeout = PATIENCE;
    RING_TRY(control_join(&s, &other->id, RANKS, 0, 1, NULL, &w));
    ring_status status = control_agree(w, RING_OK);
    atomic_store(&other->agreed, true);
    if (status == RING_OK)
        status = see_the_end(w);
    control_free(w);
    return status;
}

/* ---- Inputs --------------------------------------------------------------------- */

static void say(control_message *m, enum control_kind kind, int count)
{
    control_message_begin(m, kind, 1);
    m->count = count;
    if (kind == CONTROL_STATEMENT)
        (void)text_format(m->body.statement.text, sizeof m->body.statement.text, "count 5 here");
    if (kind == CONTROL_VOTE)
        m->body.remaining = 1;
    if (kind == CONTROL_PRESENT || kind == CONTROL_ROLL)
        m->body.roll.wanted = 2;
    if (kind == CONTROL_PROPOSAL || kind == CONTROL_VERDICT || kind == CONTROL_LOST)
        control_message_reason(m, kind, 1, RING_ERR_ABORTED, "a reason");
    m->count = count;
}

static void seed_membership(fuzz_seeds *to)
{
    static const enum control_kind others[] = {CONTROL_STATEMENT, CONTROL_VOTE,    CONTROL_LOST,
                                               CONTROL_LEFT,      CONTROL_BEAT,    CONTROL_PROPOSAL,
                                               CONTROL_DECISION,  CONTROL_PRESENT, CONTROL_ROLL};
    control_message all[MESSAGES];
    say(&all[0], CONTROL_READY, 1);
    say(&all[1], CONTROL_GOODBYE, 0);
    fuzz_add(to, all, 2 * sizeof *all);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        say(&all[1], others[i], 1);
        say(&all[2], CONTROL_VERDICT, 1);
        say(&all[3], CONTROL_GOODBYE, 0);
        fuzz_add_any(to, all, 4 * sizeof *all);
    }
}

static ring_status parse_membership(const unsigned char *bytes, size_t size)
{
    member m = {.bytes = bytes, .count = size / sizeof(control_message)};
    pthread_t thread;
    settings s;
    must(settings_read(&s) == RING_OK && control_make_id(&s, &m.id) == RING_OK);
    must(thread_start(&thread, live_as_member, &m) == 0);
    const ring_status status = live_as_rank_0(&m);
    pthread_join(thread, NULL);
    return status;
}

const fuzz_target fuzz_membership = {.name = "membership",
                                     .reads = "what a member says once it has joined",
                                     .most = MESSAGES * sizeof(control_message),
                                     .seeds = seed_membership,
                                     .parse = parse_membership,
                                     .reason = fail_text};
