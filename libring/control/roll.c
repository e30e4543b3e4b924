/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the arrivals of each round, closes rounds, and implements the calls that wait for the
 * answer of a round: control_meet(), control_agree_id() and control_agree_made().
 */
#include "roll.h"

#include "bulletin.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/** The keys of a communicator's rolls: control_meet(); control_agree_made(); and
 * control_agree_id(), whose key is a hash of the list, KEY_LISTS or greater. */
enum { KEY_BARRIER, KEY_MADE, KEY_LISTS };

/** The latest round of a roll, open or closed. */
typedef struct roll_round {
    control_message close; /* the note that will close the round, with the error that
                              a rank has reported, if any */
    unsigned char came[CONTROL_ROLL_TEXT]; /* bits: ranks of the membership that have arrived */
    int count;                             /* the number of these ranks */
    double close_by; /* open: the earliest deadline; closed: the time of its end */
} roll_round;

struct roll {
    uint64_t communicator, key;
    int closed;        /* the number of the latest closed round, from 1; 0: there is none */
    roll_round *round; /* NULL: no round has begun, or the latest one is not needed any more */
    struct roll *next;
};

/** A call of this rank that waits for the answer of a round. */
struct roll_caller {
    uint64_t communicator, key;
    int wanted, tag; /* the number of ranks to wait for; the tag of the list */
    int round;       /* the number of the round that the call is in; 0: none yet */
    double deadline;
    const control_list *despite_end; /* ends the wait if one of its ranks is lost or leaves, but not
                                        with the communicator; NULL: the end of that does */
    bool complains;                  /* it has announced that the round cannot succeed */
    bool answered;                   /* `answer` is set */
    control_message answer;          /* the note that has closed the round */
    struct roll_caller *next;
};

/* @return true if a closing note lists ranks; otherwise it has an error and its text. */
static bool names_ranks(const control_message *close)
{
    return close->status == RING_OK || close->status == RING_IN_PROGRESS;
}

/* ---- Rolls ------------------------------------------------------------------------- */

static roll *find(const membership *m, uint64_t communicator, uint64_t key)
{
    roll *r = m->calls.rolls;
    while (r != NULL && (r->communicator != communicator || r->key != key))
        r = r->next;
    return r;
}

/* @return the roll of a key, which is created if necessary; NULL if there is no memory. */
static roll *find_or_make(membership *m, uint64_t communicator, uint64_t key)
{
    roll *r = find(m, communicator, key);
    if (r != NULL)
        return r;
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->communicator = communicator;
    r->key = key;
    r->next = m->calls.rolls;
    m->calls.rolls = r;
    return r;
}

static void drop(membership *m, roll *r)
{
    roll **at = &m->calls.rolls;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    free(r->round);
    free(r);
}

void roll_free(membership *m)
{
    while (m->calls.rolls != NULL)
        drop(m, m->calls.rolls);
}

static bool is_open(const roll *r)
{
    return r->round != NULL && r->round->close.count > r->closed;
}

/* Rolls with an open round are kept, since other ranks may be in the round, and this rank may have
 * to close it. */
void roll_forget(membership *m, uint64_t communicator)
{
    roll *next;
    for (roll *r = m->calls.rolls; r != NULL; r = next) {
        next = r->next;
        if (r->communicator == communicator && !is_open(r))
            drop(m, r);
    }
}

/* Allocates the round of a roll. @return false if there is no memory. */
static bool make_room(roll *r)
{
    if (r->round == NULL)
        r->round = calloc(1, sizeof *r->round);
    return r->round != NULL;
}

/* Begins the round of the arrival @p note. */
static void begin_round(roll *r, const control_message *note)
{
    if (!make_room(r))
        return;
    *r->round = (roll_round){.close_by = CONTROL_NEVER};
    control_message *close = &r->round->close;
    control_message_begin(close, CONTROL_ROLL, 0);
    close->communicator = r->communicator;
    close->count = note->count;
    close->body.roll.key = r->key;
    close->body.roll.wanted = note->body.roll.wanted;
    close->body.roll.tag = note->body.roll.tag;
}

/* ---- Closing ----------------------------------------------------------------------- */

/* A round is closed when all ranks have arrived, at its deadline, or after an error. If a rank has
 * reported a lack of memory, the round stays open until then, since ranks that arrive later must
 * get the error, too. */
static bool can_close(const roll_round *o, double now)
{
    const ring_status trouble = names_ranks(&o->close) ? RING_OK : (ring_status)o->close.status;
    return o->count == o->close.body.roll.wanted || now >= o->close_by ||
           (trouble != RING_OK && trouble != RING_ERR_MEMORY);
}

static void close_round(membership *m, const roll *r)
{
    control_message note = r->round->close;
    note.rank = m->world.rank;
    if (names_ranks(&note)) {
        const bool all = r->round->count == note.body.roll.wanted;
        note.status = all ? RING_OK : RING_IN_PROGRESS;
        note.body.roll.id = all ? group_new_id(m) : 0;
        memcpy(note.body.roll.came, r->round->came, sizeof note.body.roll.came);
    }
    bulletin_post(m, &note);
    roll_on_note(m, &note); /* closes the round here even if the bulletin knew the note */
}

/* Closes one of the rounds that are due. Closing changes the list of rolls, so the caller starts
 * again.
 * @param settled  the time before which no round may be closed. @return true if it closed a round.
 */
static bool close_one(membership *m, double now, double settled)
{
    for (const roll *r = m->calls.rolls; r != NULL; r = r->next) {
        if (!is_open(r))
            continue;
        if (now >= settled && can_close(r->round, now)) {
            close_round(m, r);
            return true;
        }
        membership_due(m, now < settled ? settled : r->round->close_by);
    }
    return false;
}

void roll_tick(membership *m, double now)
{
    /* The last notes of a rank that was just lost must arrive first. */
    const double settled = m->ways.lost_at + BULLETIN_SETTLE_SECONDS;
    if (m->calls.rolls == NULL || m->state < STATE_LINKING || m->state == STATE_LEAVING)
        return;
    if (!membership_has(m, m->world.rank))
        return; /* this rank was stopped, the others have reported it as lost, and one of them
                   closes the rounds; a second note would have another id */
    for (int lower = 0; lower < m->world.rank; lower++)
        if (membership_has(m, lower))
            return; /* the lowest remaining rank closes the rounds */
    while (close_one(m, now, settled))
        ;
}

/* ---- Notes -------------------------------------------------------------------------- */

/* Adds an arrived rank to the round, or the error that it reports. */
static void add_arrival(roll_round *o, const control_message *note)
{
    const double deadline = clock_now() + note->body.roll.remaining;
    if (deadline < o->close_by)
        o->close_by = deadline;
    if (!control_has_bit(o->came, note->rank)) {
        control_set_bit(o->came, note->rank);
        o->count++;
    }
    if (note->status == RING_OK || !names_ranks(&o->close))
        return;
    o->close.status = note->status;
    memcpy(o->close.body.roll.text, note->body.roll.text, sizeof note->body.roll.text);
}

static void on_present(membership *m, const control_message *note)
{
    /* The round may have been closed before the rank arrived, and must not begin again. Rolls of
     * communicators that this rank is not in are dropped at the end of a round; for these the
     * bulletin has the number of the round. */
    roll *r = find(m, note->communicator, note->body.roll.key);
    if (note->count <= (r != NULL ? r->closed : bulletin_last_round(m, note)))
        return;
    r = find_or_make(m, note->communicator, note->body.roll.key);
    if (r != NULL && (r->round == NULL || r->round->close.count < note->count))
        begin_round(r, note);
    if (r == NULL || r->round == NULL)
        log_warn("no memory to record which ranks have arrived at a call");
    else if (r->round->close.count == note->count)
        add_arrival(r->round, note);
    membership_due(m, 0);
}

/* Answers the calls of this rank that are in the closed round, if it has arrived in time. Otherwise
 * these calls enter the next round (await_answer()). */
static void answer(const membership *m, const control_message *note)
{
    for (struct roll_caller *c = m->calls.callers; c != NULL; c = c->next) {
        if (c->answered || c->communicator != note->communicator || c->key != note->body.roll.key ||
            c->round != note->count)
            continue;
        c->answered = !names_ranks(note) || control_has_bit(note->body.roll.came, m->world.rank);
        c->answer = *note;
    }
}

/* Frees the round of a roll unless ranks were missing, since find_other_list() reads such rounds.
 */
static void end_round(roll *r, const control_message *note)
{
    if (r->round == NULL || is_open(r))
        return;
    r->round->close_by = clock_now();
    if (note->status == RING_IN_PROGRESS)
        return;
    free(r->round);
    r->round = NULL;
}

static void on_closed(membership *m, const control_message *note)
{
    roll *r = find_or_make(m, note->communicator, note->body.roll.key);
    if (r == NULL) {
        log_warn("no memory to record the end of a call of several ranks");
        return;
    }
    if (note->count <= r->closed)
        return;
    r->closed = note->count;
    end_round(r, note);
    answer(m, note);
    if (!is_open(r) && group_find(m, r->communicator) == NULL)
        drop(m, r); /* bulletin_replay() delivers the note if the communicator is created later */
}

void roll_on_note(membership *m, const control_message *note)
{
    if (note->kind == CONTROL_PRESENT)
        on_present(m, note);
    else if (note->kind == CONTROL_ROLL)
        on_closed(m, note);
}

void roll_replay(group *g, const control_message *note)
{
    roll_on_note(g->member, note);
}

/* ---- Callers ----------------------------------------------------------------------- */

/* Announces to all ranks that this rank has arrived.
 * @param trouble  RING_OK, or the error, with its @p text, for which the round cannot succeed. */
static void announce_arrival(membership *m, const struct roll_caller *c, ring_status trouble,
                             const char *text)
{
    control_message note;
    control_message_begin(&note, CONTROL_PRESENT, m->world.rank);
    note.communicator = c->communicator;
    note.count = c->round;
    note.status = (int32_t)trouble;
    note.body.roll.key = c->key;
    note.body.roll.wanted = c->wanted;
    note.body.roll.tag = c->tag;
    note.body.roll.remaining = c->deadline - clock_now();
    if (trouble != RING_OK)
        text_format(note.body.roll.text, sizeof note.body.roll.text, "%s", text);
    bulletin_post(m, &note);
}

/* @return true if another call of this rank waits for a round of the same roll. */
static bool another_waits(const membership *m, uint64_t communicator, uint64_t key)
{
    const struct roll_caller *c = m->calls.callers;
    while (c != NULL && (c->communicator != communicator || c->key != key))
        c = c->next;
    return c != NULL;
}

/* Enters the next round if the call is in no round, or its round was closed without this rank. A
 * lack of memory is announced to the others, so that they do not wait for this rank. */
static ring_status enter_round(membership *m, struct roll_caller *c)
{
    roll *r = find_or_make(m, c->communicator, c->key);
    const int closed = r != NULL ? r->closed : 0;
    if (c->round > closed)
        return RING_OK;
    c->round = closed + 1;
    c->complains = false;
    if (r == NULL || !make_room(r)) {
        static const char why[] = "no memory for a call of several ranks";
        announce_arrival(m, c, RING_ERR_MEMORY, why);
        return fail(RING_ERR_MEMORY, "%s", why);
    }
    announce_arrival(m, c, RING_OK, NULL);
    return RING_OK;
}

/* @return RING_OK, or the reason why the call cannot succeed: the verdict of the communicator @p g,
 * or, if that does not matter, a rank of the list that was lost or has left. */
static ring_status find_obstacle(const struct roll_caller *c, const group *g)
{
    if (c->despite_end == NULL)
        return group_is_decided(g) ? fail(control_verdict(&g->world), "%s", g->text) : RING_OK;
    for (int i = 0; i < c->despite_end->count; i++) {
        const int rank = c->despite_end->ranks[i];
        const bool lost = g->member->ranks[group_member_rank(g, rank)].lost != LOSS_NONE;
        if (lost || control_left(&g->world, rank))
            return fail(RING_ERR_PEER, "rank %d (%s), which must call, too, %s", rank,
                        g->world.cards[rank].hostname,
                        lost ? "was lost" : "has left the communicator");
    }
    return RING_OK;
}

/* Waits for the answer, and enters the next round when the call was too late for one. An obstacle
 * in the communicator @p of ends the call at once; but with @p complains, this rank first announces
 * it to the other ranks of the round, and waits until it is closed.
 * @return RING_OK if c->answer is set. */
static ring_status await_answer(membership *m, struct roll_caller *c, const group *of,
                                bool complains)
{
    const double patience = m->world.settings.peer_timeout + BULLETIN_GRACE_SECONDS;
    double limit = c->deadline + patience;
    for (;;) {
        const ring_status obstacle = find_obstacle(c, of);
        if (c->answered)
            return RING_OK;
        if (obstacle != RING_OK && !complains)
            return obstacle;
        RING_TRY(enter_round(m, c));
        if (obstacle != RING_OK && !c->complains) {
            c->complains = true;
            limit = clock_now() + patience;
            announce_arrival(m, c, obstacle, fail_text());
        }
        roll_tick(m, clock_now());
        if (!c->answered && !control_wait(&m->changed, limit)) {
            RING_TRY(find_obstacle(c, of));
            return fail(RING_ERR_TIMEOUT, "timed out waiting for the list of arrived ranks");
        }
    }
}

/* Adds the call to the list of waiting calls, and waits for its answer. @return RING_OK if all
 * ranks have arrived, RING_IN_PROGRESS if c->answer lists those that have, or an error. */
static ring_status call_roll(membership *m, struct roll_caller *c, const group *of, bool complains)
{
    struct roll_caller **at = &m->calls.callers;
    c->next = *at;
    *at = c;
    const ring_status status = await_answer(m, c, of, complains);
    while (*at != c) /* other calls may have been added meanwhile */
        at = &(*at)->next;
    *at = c->next;
    RING_TRY(status);
    if (names_ranks(&c->answer))
        return (ring_status)c->answer.status;
    return fail((ring_status)c->answer.status, "%s", c->answer.body.roll.text);
}

static ring_status check_size(const membership *m)
{
    return m->world.size <= CONTROL_ROLL_MOST
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED, "%d ranks are too many for this call; the limit is %d",
                      m->world.size, CONTROL_ROLL_MOST);
}

/* ---- Barriers ---------------------------------------------------------------------- */

ring_status control_meet(control_world *world, double deadline, bool *came)
{
    group *g = group_of(world);
    membership *m = g->member;
    struct roll_caller c = {.communicator = world->id,
                            .key = KEY_BARRIER,
                            .wanted = world->size,
                            .deadline = deadline};
    RING_TRY(check_size(m));
    control_lock();
    const ring_status status = call_roll(m, &c, g, false);
    control_unlock();
    for (int r = 0; r < world->size; r++)
        came[r] = status == RING_OK ||
                  (c.answered && names_ranks(&c.answer) &&
                   control_has_bit(c.answer.body.roll.came, group_member_rank(g, r)));
    return status;
}

/* ---- Lists of ranks ---------------------------------------------------------------- */

/* @return the key of the roll for a list of ranks: a hash of the ranks and the tag. */
static uint64_t key_of(const group *g, const control_list *list)
{
    uint64_t key = 0;
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, crypto_generichash_BYTES_MIN);
    crypto_generichash_update(&state, (const unsigned char *)&list->tag, sizeof list->tag);
    for (int i = 0; i < list->count; i++) {
        const int32_t rank = group_member_rank(g, list->ranks[i]);
        crypto_generichash_update(&state, (const unsigned char *)&rank, sizeof rank);
    }
    unsigned char hash[crypto_generichash_BYTES_MIN];
    crypto_generichash_final(&state, hash, sizeof hash);
    memcpy(&key, hash, sizeof key);
    return key < KEY_LISTS ? key + KEY_LISTS : key;
}

/* @return the closing note of a recent round for another list of the same communicator, at which
 * @p rank of the membership has arrived; NULL if there is none. */
static const control_message *find_other_list(const membership *m, const control_message *here,
                                              int rank)
{
    const double since = clock_now() - m->world.settings.timeout;
    for (const roll *r = m->calls.rolls; r != NULL; r = r->next)
        if (r->communicator == here->communicator && r->key >= KEY_LISTS &&
            r->key != here->body.roll.key && r->round != NULL && r->round->close_by >= since &&
            control_has_bit(r->round->came, rank))
            return &r->round->close;
    return NULL;
}

static void add_text(char *out, size_t size, const char *text)
{
    const size_t used = strlen(out);
    text_format(out + used, size - used, "%s", text);
}

/* Appends the name of a missing rank to @p out, and the other list with which it has called, if
 * any. */
static void add_missing(const group *g, const control_message *close, int rank, char *out,
                        size_t size)
{
    char one[200];
    const control_message *other = find_other_list(g->member, close, group_member_rank(g, rank));
    text_format(one, sizeof one, "%srank %d (%s)", out[0] != '\0' ? ", " : "", rank,
                g->world.cards[rank].hostname);
    add_text(out, size, one);
    if (other == NULL)
        return;
    text_format(one, sizeof one, ", which called with another list of %d rank%s, tag %d",
                other->body.roll.wanted, plural(other->body.roll.wanted), other->body.roll.tag);
    add_text(out, size, one);
}

/* Fails with the names of the ranks that did not arrive. The caller holds the lock. */
static ring_status name_missing(const group *g, const control_list *list,
                                const control_message *close)
{
    char names[300] = "";
    int missing = 0;
    for (int i = 0; i < list->count; i++)
        if (!control_has_bit(close->body.roll.came, group_member_rank(g, list->ranks[i]))) {
            add_missing(g, close, list->ranks[i], names, sizeof names);
            missing++;
        }
    return fail(RING_ERR_TIMEOUT, "%d of %d ranks did not call with this list and tag in time: %s",
                missing, list->count, names);
}

/* Calls the roll of a list of ranks, and names the missing ranks. The caller holds the lock. */
static ring_status call_list(const group *g, const control_list *list, struct roll_caller *c,
                             const group *of, bool complains)
{
    const ring_status status = call_roll(g->member, c, of, complains);
    return status == RING_IN_PROGRESS ? name_missing(g, list, &c->answer) : status;
}

ring_status control_agree_id(control_world *world, const control_list *list, uint64_t *id)
{
    group *g = group_of(world);
    membership *m = g->member;
    struct roll_caller c = {.communicator = world->id,
                            .key = key_of(g, list),
                            .wanted = list->count,
                            .tag = list->tag,
                            .despite_end = list->despite_end ? list : NULL,
                            .deadline = list->deadline};
    RING_TRY(check_size(m));
    if (list->count == 1) {
        *id = control_new_id(world);
        return RING_OK;
    }
    control_lock();
    ring_status status = another_waits(m, c.communicator, c.key)
                             ? fail(RING_ERR_USAGE,
                                    "another thread is already in a call with the same list and "
                                    "tag; use a different tag for one of them")
                             : call_list(g, list, &c, g, true);
    control_unlock();
    *id = c.answer.body.roll.id;
    return status;
}

/* A rank that could not create the communicator announces that, and does not wait for an answer. */
ring_status control_agree_made(control_world *world, const control_list *list, uint64_t id,
                               control_world *made, ring_status mine)
{
    group *g = group_of(world);
    membership *m = g->member;
    struct roll_caller c = {.communicator = id,
                            .key = KEY_MADE,
                            .wanted = list->count,
                            .tag = list->tag,
                            .deadline = list->deadline};
    char text[CONTROL_TEXT];
    if (list->count == 1)
        return mine;
    text_format(text, sizeof text, "rank %d (%s) could not make the communicator: %s", world->rank,
                world->cards[world->rank].hostname, fail_text());
    ring_status status = mine;
    control_lock();
    if (mine == RING_OK) {
        status = call_list(g, list, &c, group_of(made), false);
    } else {
        c.round = 1;
        announce_arrival(m, &c, mine, text);
    }
    control_unlock();
    return status;
}
