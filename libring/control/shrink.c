/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the votes for continuing, decides, and derives the new communicator. Two separate groups
 * of ranks must never continue, so a rank that is silent but may be alive can prevent the decision.
 */
#include "shrink.h"

#include "bulletin.h"

#include <stdlib.h>
#include <string.h>

enum { RESIGNED = -1 }; /* the vote of a rank that has left the communicator */

/* ---- Remaining ranks --------------------------------------------------------------- */

static enum loss loss_of(const group *g, int r)
{
    return g->member->ranks[group_member_rank(g, r)].lost;
}

/* @return true if rank @p r of the communicator remains: it is not lost, and has not left. */
static bool is_there(const group *g, int r)
{
    return loss_of(g, r) == LOSS_NONE && !control_left(&g->world, r) && g->votes[r] != RESIGNED;
}

static bool has_voted(const group *g, int r)
{
    return is_there(g, r) && g->votes[r] >= g->round;
}

static int count(const group *g, bool (*is)(const group *g, int r))
{
    int ranks = 0;
    for (int r = 0; r < g->world.size; r++)
        ranks += is(g, r);
    return ranks;
}

/* @return true if this rank is the lowest remaining one, which decides. */
static bool is_leader(const group *g)
{
    int r = 0;
    while (r < g->world.size && !is_there(g, r))
        r++;
    return r == g->world.rank;
}

/* ---- Deciding ---------------------------------------------------------------------- */

/* @return true if a remaining rank is on the host of @p rank. */
static bool shares_host(const group *g, int rank)
{
    const control_card *cards = g->world.cards;
    for (int r = 0; r < g->world.size; r++)
        if (is_there(g, r) && memcmp(cards[r].host, cards[rank].host, sizeof cards[r].host) == 0)
            return true;
    return false;
}

/* @return a silent rank; with @p near, one on the host of a remaining rank; -1 if there is none. */
static int find_silent(const group *g, bool near)
{
    for (int r = 0; r < g->world.size; r++)
        if (loss_of(g, r) == LOSS_SILENT && !control_left(&g->world, r) &&
            (!near || shares_host(g, r)))
            return r;
    return -1;
}

/* @return RING_OK, or the reason why the ranks may not continue. A silent rank on the host of a
 * remaining rank is only stopped, and could resume. Other silent ranks may be cut off by a broken
 * network, and could decide to continue, too; so the voters must be a majority. */
static ring_status judge(const group *g)
{
    char name[128];
    const int near = find_silent(g, true), any = find_silent(g, false);
    const int voters = count(g, has_voted);
    if (any < 0)
        return RING_OK;
    const int silent = group_member_rank(g, near >= 0 ? near : any);
    card_name(&g->member->world.cards[silent], silent, name, sizeof name);
    if (near >= 0)
        return fail(RING_ERR_PEER,
                    "%s is stopped, but has not ended: it could resume and write to shared memory; "
                    "kill it and shrink again",
                    name);
    return 2 * voters > g->world.size
               ? RING_OK
               : fail(RING_ERR_PEER,
                      "%s may still be alive, cut off by a broken network, and only %d of %d ranks "
                      "have "
                      "called ring_comm_shrink, which is not a majority; shrink again when that "
                      "rank "
                      "has ended",
                      name, voters, g->world.size);
}

/* Announces the decision of this round. */
static void decide(group *g)
{
    control_message note;
    const ring_status status = judge(g);
    control_message_reason(&note, CONTROL_DECISION, g->member->world.rank, status,
                           status != RING_OK ? fail_text() : "");
    note.communicator = g->world.id;
    note.count = g->round;
    if (status == RING_OK) {
        note.body.decision.id = group_new_id(g->member);
        for (int r = 0; r < g->world.size; r++)
            if (has_voted(g, r))
                control_set_bit(note.body.decision.members, r);
    }
    bulletin_post(g->member, &note);
}

void shrink_tick(membership *m, double now)
{
    /* The last notes of a rank that was just lost must arrive before a decision. */
    const double settled = m->ways.lost_at + BULLETIN_SETTLE_SECONDS;
    for (group *g = m->groups; g != NULL; g = g->next) {
        if (g->decide_by < CONTROL_NEVER && count(g, has_voted) == 0)
            g->decide_by = CONTROL_NEVER; /* all voters were lost, or the round has ended */
        if (g->decide_by >= CONTROL_NEVER || !is_leader(g))
            continue;
        const bool ripe = now >= g->decide_by || count(g, has_voted) == count(g, is_there) ||
                          find_silent(g, true) >= 0;
        if (now >= settled && ripe)
            decide(g);
        else
            membership_due(m, now < settled ? settled : g->decide_by);
    }
}

/* ---- Notes -------------------------------------------------------------------------- */

static void on_vote(group *g, const control_message *note)
{
    const int rank = group_rank(g, note->rank);
    const double deadline = clock_now() + note->body.remaining;
    if (rank < 0 || g->votes[rank] == RESIGNED)
        return;
    if (note->count == 0)
        g->votes[rank] = RESIGNED;
    else if (note->count > g->votes[rank])
        g->votes[rank] = note->count;
    if (note->count >= g->round && deadline < g->decide_by)
        g->decide_by = deadline;
}

/* Stores the decision in the group, since the bulletin may drop the note before this rank calls
 * control_shrink(). */
static void on_decision(group *g, const control_message *note)
{
    if (note->count < g->round)
        return;
    control_message *kept = g->decision != NULL ? g->decision : malloc(sizeof *kept);
    g->round = note->count + 1;
    g->decision = kept;
    if (kept != NULL)
        *kept = *note;
    else
        log_warn("no memory to store the ranks that continue");
}

void shrink_on_note(group *g, const control_message *note)
{
    if (note->kind == CONTROL_VOTE)
        on_vote(g, note);
    else if (note->kind == CONTROL_DECISION)
        on_decision(g, note);
    membership_due(g->member, 0);
}

/* @return the latest decision if it is to continue; NULL if it is an error, or there is none. */
static const control_message *success(const group *g)
{
    return g->decision != NULL && g->decision->status == RING_OK ? g->decision : NULL;
}

/* Announces this rank's vote in @p round; round 0 resigns. */
static void vote(group *g, int round, double deadline)
{
    control_message note;
    control_message_begin(&note, CONTROL_VOTE, g->member->world.rank);
    note.communicator = g->world.id;
    note.count = round;
    note.body.remaining = deadline - clock_now();
    bulletin_post(g->member, &note);
}

void shrink_resign(group *g)
{
    if (group_is_decided(g) && success(g) == NULL)
        vote(g, 0, 0);
}

/* ---- For callers ------------------------------------------------------------------- */

/* Votes, unless the ranks have decided to continue already, and waits for the decision of this
 * round. The caller holds the lock. */
static ring_status await_decision(group *g, double deadline, control_message *decision)
{
    membership *m = g->member;
    const int round = g->round;
    const control_message *found = success(g);
    if (found == NULL) {
        vote(g, round, deadline);
        shrink_tick(m, clock_now());
    }
    while (found == NULL) {
        found = g->round > round ? g->decision : NULL;
        if (found == NULL && !control_wait(&m->changed, deadline + BULLETIN_GRACE_SECONDS))
            return fail(RING_ERR_TIMEOUT,
                        "the remaining ranks did not agree in time on which ranks continue");
    }
    *decision = *found;
    return RING_OK;
}

/* Creates the communicator of the ranks that continue, if this rank is one of them. */
static ring_status take(group *g, const control_message *decision, control_world **out)
{
    int members = 0;
    const unsigned char *in = decision->body.decision.members;
    int *ranks = malloc((size_t)g->world.size * sizeof *ranks);
    if (ranks == NULL)
        return fail(RING_ERR_MEMORY, "no memory to shrink a communicator of %d ranks",
                    g->world.size);
    for (int r = 0; r < g->world.size; r++)
        if (control_has_bit(in, r))
            ranks[members++] = r;
    const ring_status status =
        control_has_bit(in, g->world.rank)
            ? control_derive(&g->world, decision->body.decision.id, ranks, members, out)
            : fail(RING_ERR_PEER,
                   "rank %d is excluded: %d rank%s continued without it, since it had not "
                   "called ring_comm_shrink in time or was considered lost",
                   g->world.rank, members, plural(members));
    free(ranks);
    return status;
}

ring_status control_shrink(control_world *broken, double deadline, control_world **out)
{
    control_message decision;
    group *g = group_of(broken);
    *out = NULL;
    if (control_verdict(broken) == RING_OK)
        return fail(RING_ERR_USAGE,
                    "the communicator is alive; only one that has failed or was aborted can be "
                    "shrunk");
    if (broken->size > CONTROL_SHRINK_MOST)
        return fail(RING_ERR_UNSUPPORTED, "cannot shrink %d ranks; the limit is %d", broken->size,
                    CONTROL_SHRINK_MOST);
    control_lock();
    const ring_status status = await_decision(g, deadline, &decision);
    control_unlock();
    RING_TRY(status);
    if (decision.status != RING_OK)
        return fail((ring_status)decision.status, "%s", decision.body.text);
    return take(g, &decision, out);
}
