/* SPDX-License-Identifier: Apache-2.0
 * Control connections: both sides of the handshake, before strangers and members, and the messages
 * that follow it. */
#include "control_message.h"
#include "give.h"
#include "handshake.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };

static handshake_terms terms_of(int rank, unsigned char key)
{
    handshake_terms terms = {.rank = rank, .size = RANKS};
    memset(terms.key, key, sizeof terms.key);
    memset(terms.session, 9, sizeof terms.session);
    return terms;
}

/* ---- Strangers: they do not have the key ---------------------------------------- */

static handshake_hello hello_of(int rank, int peer, enum handshake_kind kind)
{
    const handshake_terms terms = terms_of(rank, 1);
    const handshake_purpose purpose = {.communicator = 5, .kind = (uint16_t)kind, .transport = 1};
    handshake_hello hello = handshake_hello_to(&terms, peer, &purpose);
    memset(hello.nonce, 3, sizeof hello.nonce); /* the same in every run */
    return hello;
}

static void seed_handshake_stranger(fuzz_seeds *to)
{
    unsigned char bytes[sizeof(handshake_hello) + 2 * HANDSHAKE_MAC + 1] = {0};
    for (int kind = HANDSHAKE_JOIN; kind <= HANDSHAKE_LINK; kind++) {
        const handshake_hello hello = hello_of(1, 0, (enum handshake_kind)kind);
        memcpy(bytes, &hello, sizeof hello);
        bytes[sizeof bytes - 1] = 'w';
        fuzz_add_any(to, bytes, sizeof bytes);
    }
}

static ring_status answer_stranger(int fd)
{
    const handshake_terms terms = terms_of(0, 1);
    handshake h;
    handshake_accept(&h, fd, &terms);
    return handshake_step(&h);
}

static ring_status dial_stranger(int fd)
{
    const handshake_terms terms = terms_of(1, 1);
    const handshake_hello hello = hello_of(1, 0, HANDSHAKE_JOIN);
    handshake h;
    handshake_dial(&h, fd, &terms, &hello, 1);
    return handshake_step(&h);
}

/* Never welcome, and never blamed on a member. */
static void check_stranger(ring_status (*meet)(int fd), const unsigned char *bytes, size_t size)
{
    int ends[2];
    give_pair(ends);
    must(give_sent(ends[1], bytes, size));
    const ring_status status = meet(ends[0]);
    must(status != RING_OK && status != RING_ERR_CONFIG && status != RING_ERR_ABORTED);
    if (status != RING_IN_PROGRESS)
        fuzz_check_refusal(status, fail_text());
    give_close(ends);
}

static ring_status parse_handshake_stranger(const unsigned char *bytes, size_t size)
{
    check_stranger(answer_stranger, bytes, size);
    check_stranger(dial_stranger, bytes, size);
    return RING_ERR_AUTH;
}

const fuzz_target fuzz_handshake_stranger = {.name = "handshake_stranger",
                                             .reads = "first bytes of a connection",
                                             .most = 256,
                                             .seeds = seed_handshake_stranger,
                                             .parse = parse_handshake_stranger};

/* ---- Members: they have the key, and say what they like -------------------------- */

static void seed_handshake_member(fuzz_seeds *to)
{
    for (int kind = HANDSHAKE_JOIN; kind <= HANDSHAKE_LINK; kind++) {
        const handshake_hello hello = hello_of(1, 0, (enum handshake_kind)kind);
        fuzz_add(to, &hello, sizeof hello);
    }
    const handshake_hello itself = hello_of(0, 0, HANDSHAKE_JOIN);
    fuzz_add_any(to, &itself, sizeof itself);
}

/* A peer that is another rank of this world, with keys that match its own. */
static void check_welcome(handshake *accepts, handshake *dials)
{
    control_keys a, d;
    must(handshake_peer(accepts) > 0 && handshake_peer(accepts) < RANKS);
    must(accepts->dialer.peer == 0);
    must(handshake_welcome(accepts) == RING_OK && handshake_step(dials) == RING_OK);
    handshake_derive(accepts, &a);
    handshake_derive(dials, &d);
    must(memcmp(a.in, d.out, sizeof a.in) == 0 && memcmp(a.out, d.in, sizeof a.out) == 0);
}

static ring_status meet_member(const handshake_hello *hello, int ends[2])
{
    const handshake_terms mine = terms_of(0, 1), theirs = terms_of(hello->rank, 1);
    handshake accepts, dials;
    handshake_accept(&accepts, ends[0], &mine);
    handshake_dial(&dials, ends[1], &theirs, hello, 1);
    (void)handshake_step(&dials);
    ring_status status = handshake_step(&accepts);
    if (status == RING_IN_PROGRESS) {
        (void)handshake_step(&dials);
        status = handshake_step(&accepts);
    }
    if (status == RING_OK)
        check_welcome(&accepts, &dials);
    return status;
}

static ring_status parse_handshake_member(const unsigned char *bytes, size_t size)
{
    handshake_hello hello;
    int ends[2];
    if (size < sizeof hello)
        return RING_IN_PROGRESS;
    memcpy(&hello, bytes, sizeof hello);
    give_pair(ends);
    const ring_status status = meet_member(&hello, ends);
    give_close(ends);
    return status;
}

const fuzz_target fuzz_handshake_member = {.name = "handshake_member",
                                           .reads = "hellos of members",
                                           .most = sizeof(handshake_hello),
                                           .seeds = seed_handshake_member,
                                           .parse = parse_handshake_member,
                                           .reason = fail_text};

/* ---- Messages ------------------------------------------------------------------- */

static void fill_body(control_message *m)
{
    switch (m->kind) {
    case CONTROL_CARD:
        m->body.join.remaining = 30;
        m->body.join.card.rank = m->rank;
        (void)text_format(m->body.join.card.hostname, CARD_NAME_MAX, "node1");
        break;
    case CONTROL_TERMS:
        m->body.terms.remaining = m->body.terms.timeout = m->body.terms.peer_timeout = 30;
        m->body.terms.channels = 1;
        break;
    case CONTROL_CARDS:
        m->body.cards[0].rank = m->rank;
        m->body.cards[1].rank = m->rank + 1;
        m->count = 2;
        break;
    case CONTROL_STATEMENT:
        (void)text_format(m->body.statement.text, sizeof m->body.statement.text, "count 5 here");
        break;
    case CONTROL_PRESENT:
    case CONTROL_ROLL:
        m->body.roll.key = 7;
        m->body.roll.remaining = 30;
        m->body.roll.wanted = 2;
        break;
    case CONTROL_LOST:
    case CONTROL_PROPOSAL:
    case CONTROL_VERDICT:
        m->status = RING_ERR_PEER;
        (void)text_format(m->body.text, sizeof m->body.text, "rank 2 was lost");
        break;
    default:
        break;
    }
}

static control_message message_of(enum control_kind kind)
{
    control_message m;
    control_message_begin(&m, kind, 1);
    m.count = 1;
    fill_body(&m);
    return m;
}

static void seed_control_message(fuzz_seeds *to)
{
    for (int kind = CONTROL_CARD; kind < CONTROL_KINDS; kind++) {
        const control_message m = message_of((enum control_kind)kind);
        fuzz_add(to, &m, sizeof m);
    }
}

#define CHECK_TEXT(text) must(memchr(text, '\0', sizeof(text)) != NULL && fuzz_is_printable(text))

static void check_card(const control_card *card, int rank)
{
    must(card->rank == rank);
    CHECK_TEXT(card->hostname);
    CHECK_TEXT(card->unix_name);
}

static bool has_reason(const control_message *m)
{
    return m->kind == CONTROL_PROPOSAL || m->kind == CONTROL_VERDICT || m->kind == CONTROL_LOST ||
           (m->kind == CONTROL_DECISION && m->status != RING_OK);
}

static void check_body(const control_message *m)
{
    if (m->kind == CONTROL_CARD)
        check_card(&m->body.join.card, m->rank);
    if (m->kind == CONTROL_CARDS)
        must(m->count >= 1 && m->count <= CONTROL_CARDS_MOST && m->rank + m->count <= RANKS);
    for (int i = 0; m->kind == CONTROL_CARDS && i < m->count; i++)
        check_card(&m->body.cards[i], m->rank + i);
    if (m->kind == CONTROL_TERMS)
        CHECK_TEXT(m->body.terms.algo);
    if (m->kind == CONTROL_STATEMENT)
        CHECK_TEXT(m->body.statement.text);
    if ((m->kind == CONTROL_PRESENT || m->kind == CONTROL_ROLL) && m->status != RING_OK &&
        m->status != RING_IN_PROGRESS)
        CHECK_TEXT(m->body.roll.text);
    if (!has_reason(m))
        return;
    CHECK_TEXT(m->body.text);
    fuzz_check_refusal((ring_status)m->status, m->body.text);
}

static ring_status parse_control_message(const unsigned char *bytes, size_t size)
{
    control_message m;
    if (size < sizeof m)
        return RING_IN_PROGRESS;
    memcpy(&m, bytes, sizeof m);
    if (!control_message_check(&m, RANKS))
        return RING_ERR_PEER;
    const control_message first = m;
    must(m.rank >= 0 && m.rank < RANKS && m.kind > 0 && m.kind < CONTROL_KINDS);
    check_body(&m);
    must(control_message_check(&m, RANKS) && memcmp(&m, &first, sizeof m) == 0);
    return RING_OK;
}

const fuzz_target fuzz_control_message = {.name = "control_message",
                                          .reads = "messages of the control channel",
                                          .most = sizeof(control_message),
                                          .seeds = seed_control_message,
                                          .parse = parse_control_message};

static control_sealed sealed_message(const unsigned char *key)
{
    control_sealed s = {.message = message_of(CONTROL_VERDICT)};
    control_message_seal(&s, key, 17);
    return s;
}

static const unsigned char seal_key[CONTROL_KEY] = "a key of a connection";

static void seed_control_seal(fuzz_seeds *to)
{
    const control_sealed s = sealed_message(seal_key);
    fuzz_add(to, &s, sizeof s);
}

/* The one message that was sealed, and no other. */
static ring_status parse_control_seal(const unsigned char *bytes, size_t size)
{
    const control_sealed genuine = sealed_message(seal_key);
    control_sealed s;
    if (size < sizeof s)
        return RING_IN_PROGRESS;
    memcpy(&s, bytes, sizeof s);
    const bool accepted = control_message_is_genuine(&s, seal_key, 17);
    must(accepted == (memcmp(&s, &genuine, sizeof s) == 0));
    must(!control_message_is_genuine(&s, seal_key, 18));
    return accepted ? RING_OK : RING_ERR_AUTH;
}

const fuzz_target fuzz_control_seal = {.name = "control_seal",
                                       .reads = "MACs of control messages",
                                       .most = sizeof(control_sealed),
                                       .seeds = seed_control_seal,
                                       .parse = parse_control_seal};
