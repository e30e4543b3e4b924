/* SPDX-License-Identifier: Apache-2.0
 *
 * Composes, authenticates and checks messages. All fields of a received message are checked before
 * any part of control acts on it, because even a member of the job may be faulty.
 */
#include "control_message.h"

#include "numbers.h"

#include <sodium.h>
#include <string.h>

/* s: the longest accepted duration. It is the longest timeout that a user can set, and a second for
 * rounding. */
#define MOST_SECONDS (NUMBER_SECONDS_MOST + 1)

void control_message_begin(control_message *m, enum control_kind kind, int rank)
{
    memset(m, 0, sizeof *m);
    m->kind = kind;
    m->rank = rank;
}

void control_message_reason(control_message *m, enum control_kind kind, int rank,
                            ring_status status, const char *text)
{
    control_message_begin(m, kind, rank);
    m->status = (int32_t)status;
    text_format(m->body.text, sizeof m->body.text, "%s", text); /* a longer text is cut */
}

/* ---- MACs -------------------------------------------------------------------------- */

static void make_mac(const control_sealed *s, const unsigned char *key, uint64_t number,
                     unsigned char mac[CONTROL_MAC])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, CONTROL_KEY, CONTROL_MAC);
    crypto_generichash_update(&state, (const unsigned char *)&number, sizeof number);
    crypto_generichash_update(&state, (const unsigned char *)&s->message, sizeof s->message);
    crypto_generichash_final(&state, mac, CONTROL_MAC);
    sodium_memzero(&state, sizeof state);
}

void control_message_seal(control_sealed *s, const unsigned char key[CONTROL_KEY], uint64_t number)
{
    make_mac(s, key, number, s->mac);
}

bool control_message_is_genuine(const control_sealed *s, const unsigned char key[CONTROL_KEY],
                                uint64_t number)
{
    unsigned char mac[CONTROL_MAC];
    make_mac(s, key, number, mac);
    return sodium_memcmp(mac, s->mac, sizeof mac) == 0;
}

/* ---- Checks ------------------------------------------------------------------------ */

/* @return @p status if it is an error that this version defines; otherwise RING_ERR_INTERNAL. */
static ring_status known_error(int32_t status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) \
    case value: \
        return value == RING_OK || value == RING_IN_PROGRESS ? RING_ERR_INTERNAL : name;
        RING_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return RING_ERR_INTERNAL;
    }
}

/* Corrects a status that must be an error, and its text. @return true. */
static bool check_error(control_message *m, char *text, size_t size)
{
    m->status = (int32_t)known_error(m->status);
    text_make_printable(text, size);
    if (text[0] == '\0')
        text_format(text, size, "rank %d gave no reason: %s", m->rank,
                    ring_status_string((ring_status)m->status));
    return true;
}

static bool check_reason(control_message *m)
{
    return check_error(m, m->body.text, sizeof m->body.text);
}

/* A roll's message has either a set of ranks or the text of an error, in the same bytes. */
static bool check_roll(control_message *m, int size)
{
    const bool names_ranks = m->status == RING_OK ||
                             (m->kind == CONTROL_ROLL && m->status == RING_IN_PROGRESS);
    return m->count > 0 && m->body.roll.wanted > 0 && m->body.roll.wanted <= size &&
           m->rank < CONTROL_ROLL_MOST && m->body.roll.remaining <= MOST_SECONDS &&
           (names_ranks || check_error(m, m->body.roll.text, sizeof m->body.roll.text));
}

static bool seconds(double s)
{
    return s > 0 && s <= MOST_SECONDS; /* false for NaN */
}

static bool check_terms(control_message *m)
{
    text_make_printable(m->body.terms.algo, sizeof m->body.terms.algo);
    if (m->body.terms.channels < -SETTINGS_MOST_CHANNELS ||
        m->body.terms.channels > SETTINGS_MOST_CHANNELS)
        return false;
    if (m->body.terms.checksum != 0 && m->body.terms.checksum != 1)
        return false;
    if (m->body.terms.reproducible != 0 && m->body.terms.reproducible != 1)
        return false;
    if (m->body.terms.encrypt < ENCRYPT_NO || m->body.terms.encrypt >= ENCRYPT_BEST)
        return false;
    return seconds(m->body.terms.timeout) && seconds(m->body.terms.peer_timeout) &&
           m->body.terms.remaining <= MOST_SECONDS;
}

static bool check_cards(control_message *m, int size)
{
    if (m->count < 1 || m->count > CONTROL_CARDS_MOST || m->count > size - m->rank)
        return false;
    for (int i = 0; i < m->count; i++) {
        card_clean(&m->body.cards[i]);
        if (m->body.cards[i].rank != m->rank + i)
            return false;
    }
    return true;
}

static bool check_left(const control_message *m, int size)
{
    if (m->count < 1 || m->count > CONTROL_LEFT_MOST)
        return false;
    for (int i = 0; i < m->count; i++)
        if (m->body.ranks[i] < 0 || m->body.ranks[i] >= size)
            return false;
    return true;
}

bool control_message_check(control_message *m, int size)
{
    if (m->rank < 0 || m->rank >= size)
        return false;
    switch (m->kind) {
    case CONTROL_CARD:
        card_clean(&m->body.join.card);
        return m->body.join.card.rank == m->rank && m->body.join.remaining <= MOST_SECONDS;
    case CONTROL_TERMS:
        return check_terms(m);
    case CONTROL_CARDS:
        return check_cards(m, size);
    case CONTROL_READY:
    case CONTROL_GO:
        return m->count > 0;
    case CONTROL_PROPOSAL:
    case CONTROL_VERDICT:
        return check_reason(m);
    case CONTROL_STATEMENT:
        text_make_printable(m->body.statement.text, sizeof m->body.statement.text);
        return m->count > 0 && m->body.statement.peer >= -1 && m->body.statement.peer < size;
    case CONTROL_LOST:
        return check_reason(m) && (m->count == LOSS_SILENT || m->count == LOSS_ENDED);
    case CONTROL_VOTE:
        return m->count >= 0 && m->body.remaining <= MOST_SECONDS;
    case CONTROL_DECISION:
        return m->count > 0 && (m->status == RING_OK || check_reason(m));
    case CONTROL_LEFT:
        return check_left(m, size);
    case CONTROL_PRESENT:
    case CONTROL_ROLL:
        return check_roll(m, size);
    case CONTROL_SEATED:
    case CONTROL_BEAT:
    case CONTROL_GOODBYE:
    case CONTROL_MOVED:
        return true;
    default:
        return false;
    }
}
