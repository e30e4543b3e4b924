/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps two logs of notes and floods them. The lasting log drops old notes after all neighbours
 * have received them; the log of recent statements is a ring that overwrites the oldest. Each
 * connection counts the notes of each log that were sent over it. A note that is in a log already
 * is not forwarded, so notes do not circulate. A note that was dropped, and arrives again over a
 * new connection, counts as new.
 */
#include "bulletin.h"

#include "peers.h"

#include <stdlib.h>

#define BYPASS_SECONDS 0.1 /* the time in which a neighbour must confirm a note */

/* ---- Keeping ----------------------------------------------------------------------- */

static int log_of(const control_message *note)
{
    return note->kind == CONTROL_STATEMENT ? BULLETIN_RECENT : BULLETIN_LASTING;
}

static int oldest_kept(const bulletin *b)
{
    return b->count > b->room ? b->count - b->room : 0;
}

/* Statements of different ranks that wait in the same collective count as equal. */
static bool is_same_statement(const control_message *a, const control_message *b)
{
    const control_statement *x = &a->body.statement, *y = &b->body.statement;
    return !x->refused && !y->refused && x->number == y->number && x->signature == y->signature &&
           x->count == y->count && x->root == y->root && x->peer == y->peer &&
           x->sends == y->sends && (x->peer < 0 || a->rank == b->rank);
}

/* Compares the fields that identify a note of each kind. */
static bool is_same(const control_message *a, const control_message *b)
{
    if (a->kind != b->kind || a->communicator != b->communicator)
        return false;
    switch (a->kind) {
    case CONTROL_VERDICT:
        return true;
    case CONTROL_DECISION:
        return a->count == b->count;
    case CONTROL_LOST:
    case CONTROL_VOTE:
        return a->rank == b->rank && a->count == b->count;
    case CONTROL_PRESENT:
        /* Several threads of a rank may arrive at one round with different deadlines, of which the
         * earliest counts, so each of these notes is forwarded. */
        return a->rank == b->rank && a->count == b->count && a->status == b->status &&
               a->body.roll.key == b->body.roll.key &&
               (a->status != RING_OK || a->body.roll.remaining == b->body.roll.remaining);
    case CONTROL_ROLL:
        return a->count == b->count && a->body.roll.key == b->body.roll.key;
    case CONTROL_STATEMENT:
        return is_same_statement(a, b);
    default:
        return false; /* not a note to all ranks */
    }
}

/* @return true if an equal note has arrived before. Statements are also recognized by their number,
 * since the recent log overwrites them soon, and a copy that arrives later would count as new. A
 * number that is lower than the latest one by SEEN_STATEMENTS counts as known. */
static bool is_known(const membership *m, const control_message *note)
{
    const bulletin *b = &m->bulletins[log_of(note)];
    if (note->kind == CONTROL_STATEMENT) {
        const statements_seen *s = &m->ranks[note->rank].statements;
        const int age = s->latest - note->count;
        if (age >= SEEN_STATEMENTS || (age >= 0 && (s->bits >> age & 1)))
            return true;
    }
    for (int i = oldest_kept(b); i < b->count; i++)
        if (is_same(&b->notes[i % b->room], note))
            return true;
    return false;
}

/* Grows the lasting log if it is full. @return false if there is no memory. */
static bool make_room(bulletin *b)
{
    const int wanted = b->room > 0 ? 2 * b->room : 8;
    if (b->count < b->room)
        return true;
    control_message *notes = realloc(b->notes, (size_t)wanted * sizeof *notes);
    if (notes == NULL)
        return false;
    b->notes = notes;
    b->room = wanted;
    return true;
}

static void keep(membership *m, const control_message *note)
{
    const int which = log_of(note);
    bulletin *b = &m->bulletins[which];
    if (which == BULLETIN_RECENT || make_room(b))
        b->notes[b->count++ % b->room] = *note;
    else
        log_warn("no memory to forward a control message");
    if (which == BULLETIN_RECENT)
        return;
    m->posted_at = clock_now();
    membership_due(m, m->posted_at + BYPASS_SECONDS);
}

static bool is_live_edge(const membership *m, const connection *c)
{
    return c->edge && connection_is_open(c) && !c->left && m->ranks[c->peer].lost == LOSS_NONE;
}

/* @return true if the neighbour must still confirm notes. It sends each of its notes once, so when
 * it has sent as many notes as this rank keeps, it has all of them. */
static bool is_awaited(const membership *m, const connection *c)
{
    return is_live_edge(m, c) && !c->bypassed &&
           c->confirmed < m->bulletins[BULLETIN_LASTING].count;
}

/* Losses are not dropped: they are few, and must be sent over every new connection. */
static bool may_be_dropped(const control_message *note)
{
    return note->kind != CONTROL_LOST;
}

/* Drops the @p count oldest notes of the lasting log that may be dropped. If a dropped note was
 * sent over a connection, or the peer has confirmed it, the connection's counter is lowered. */
static void drop_notes(membership *m, int count)
{
    bulletin *b = &m->bulletins[BULLETIN_LASTING];
    int to = 0;
    for (int at = 0; at < b->count; at++) {
        if (count == 0 || !may_be_dropped(&b->notes[at])) {
            b->notes[to++] = b->notes[at];
            continue;
        }
        count--;
        for (connection *c = m->connections; c != NULL; c = c->next) {
            c->announced[BULLETIN_LASTING] -= c->announced[BULLETIN_LASTING] > to;
            c->confirmed -= c->confirmed > 0;
        }
    }
    b->count = to;
}

/* Drops old notes if there are too many, and if all neighbours have received and confirmed all
 * notes. A bypassed neighbour need not confirm, because it may never do so: it sends each note only
 * once, and that may have been before this rank dropped the note and received it again from
 * another. */
static void prune(membership *m)
{
    const bulletin *b = &m->bulletins[BULLETIN_LASTING];
    const int most = bulletin_most_ends(m->world.size);
    int ends = 0; /* notes that may be dropped, which are about ended communicators */
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (is_awaited(m, c) || (is_live_edge(m, c) && c->announced[BULLETIN_LASTING] < b->count))
            return;
    if (b->count <= most)
        return;
    for (int i = 0; i < b->count; i++)
        ends += may_be_dropped(&b->notes[i]);
    if (ends > most)
        drop_notes(m, ends - most + BULLETIN_ENDS / 2);
}

/* Passes a note to a communicator. A loss concerns all communicators. */
static void deliver(group *g, const control_message *note)
{
    const control_rule *rule = &g->member->dispatch->rules[note->kind];
    if (rule->group_note != NULL &&
        (note->kind == CONTROL_LOST || note->communicator == g->world.id))
        rule->group_note(g, note);
}

/* Handles a new note: marks the number of a statement as known, and calls the note's rule. */
static void apply(membership *m, const control_message *note)
{
    const control_rule *rule = &m->dispatch->rules[note->kind];
    if (note->kind == CONTROL_STATEMENT) {
        statements_seen *s = &m->ranks[note->rank].statements;
        const int ahead = note->count - s->latest;
        if (ahead > 0) {
            s->bits = ahead < SEEN_STATEMENTS ? s->bits << ahead : 0;
            s->latest = note->count;
        }
        s->bits |= UINT64_C(1) << (s->latest - note->count);
    }
    if (rule->note != NULL)
        rule->note(m, note);
    for (group *g = m->groups; g != NULL; g = g->next)
        deliver(g, note);
}

void bulletin_post(membership *m, const control_message *note)
{
    if (is_known(m, note))
        return;
    keep(m, note);
    apply(m, note);
    peers_flush(m);
    prune(m);
}

void bulletin_receive(membership *m, connection *c, const control_message *note)
{
    c->confirmed += c->edge && log_of(note) == BULLETIN_LASTING;
    bulletin_post(m, note);
    prune(m);
}

const control_message *bulletin_find(const membership *m, enum control_kind kind,
                                     uint64_t communicator, int count)
{
    const bulletin *b = &m->bulletins[BULLETIN_LASTING];
    for (int i = 0; i < b->count; i++)
        if (b->notes[i].kind == kind && b->notes[i].communicator == communicator &&
            b->notes[i].count == count)
            return &b->notes[i];
    return NULL;
}

int bulletin_last_round(const membership *m, const control_message *present)
{
    const bulletin *b = &m->bulletins[BULLETIN_LASTING];
    int last = 0;
    for (int i = 0; i < b->count; i++)
        if (b->notes[i].kind == CONTROL_ROLL && b->notes[i].count > last &&
            b->notes[i].communicator == present->communicator &&
            b->notes[i].body.roll.key == present->body.roll.key)
            last = b->notes[i].count;
    return last;
}

void bulletin_replay(group *g, int which)
{
    const bulletin *b = &g->member->bulletins[which];
    for (int i = oldest_kept(b); i < b->count; i++)
        deliver(g, &b->notes[i % b->room]);
}

/* ---- Sending ----------------------------------------------------------------------- */

/* @return true if the note may be sent over @p c now. While ranks join, rank 0 sends a verdict to
 * the ranks whose card has arrived, since the others do not read messages yet. All other notes are
 * sent only to ranks that have all cards. */
static bool is_for(const membership *m, const connection *c, const control_message *note)
{
    if (note->kind == CONTROL_VERDICT)
        return c->edge || c->distrusted || (m->world.rank == 0 && c->has_card);
    return c->edge && !c->gives_cards && m->state >= STATE_LINKING;
}

/* Composes the next note of one log for @p c. @return false if there is none. */
static bool announce(membership *m, connection *c, int which, control_message *out)
{
    const bulletin *b = &m->bulletins[which];
    if (c->announced[which] < oldest_kept(b))
        c->announced[which] = oldest_kept(b);
    if (c->announced[which] == b->count)
        return false;
    const control_message *next = &b->notes[c->announced[which] % b->room];
    if (!is_for(m, c, next))
        return false;
    c->announced[which]++;
    /* Lost ranks are counted elsewhere, so one that connects again is not counted here. */
    m->start.notified += !c->edge && m->ranks[c->peer].lost == LOSS_NONE;
    *out = *next;
    return true;
}

bool bulletin_compose(membership *m, connection *c, control_message *out)
{
    return announce(m, c, BULLETIN_LASTING, out) || announce(m, c, BULLETIN_RECENT, out);
}

/* ---- Neighbours that do not confirm notes -------------------------------------------- */

void bulletin_tick(membership *m, double now)
{
    if (m->state < STATE_LINKING)
        return; /* some ranks have no cards yet; rank 0 sends verdicts to each of them directly */
    for (connection *c = m->connections; c != NULL; c = c->next) {
        const double since = c->heard > m->posted_at ? c->heard : m->posted_at;
        if (!is_awaited(m, c))
            continue;
        if (now < since + BYPASS_SECONDS) {
            membership_due(m, since + BYPASS_SECONDS);
            continue;
        }
        c->bypassed = true; /* this rank sends the notes to the peer's neighbours in the tree */
        peers_dial_neighbour(m, tree_parent(c->peer));
        for (int i = 0; i < tree_children(c->peer, m->world.size); i++)
            peers_dial_neighbour(m, tree_first_child(c->peer) + i);
    }
    prune(m);
}

bool bulletin_is_spread(const membership *m)
{
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (is_awaited(m, c))
            return false;
    return m->bulletins[BULLETIN_LASTING].count == 0 || !peers_are_dialed(m, 0, m->world.size - 1);
}
