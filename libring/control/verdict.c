/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the proposals to end communicators, and decides on them. Normally the rank at the top of
 * the tree decides. If it does not answer in time, each rank that has the proposal decides itself.
 */
#include "verdict.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "peers.h"

#include <stdlib.h>

#define ANSWER_SECONDS 0.2  /* the time in which the top must answer a proposal */
#define SUSPECT_SECONDS 0.4 /* the time in which the rank that caused a failure can report it */

/** A proposal to end a communicator that the top has not answered yet. */
struct proposal {
    control_message message;
    int announced_to; /* the rank to which it was sent; -1: none */
    double decide_by; /* the time at which this rank decides if there is no answer */
    proposal *next;
};

/* ---- Deciding ---------------------------------------------------------------------- */

/* Makes a proposal the verdict, and announces it. */
static void decide(membership *m, const control_message *reason)
{
    control_message note = *reason;
    note.kind = CONTROL_VERDICT;
    bulletin_post(m, &note);
}

void verdict_decide(membership *m, ring_status status, const char *text)
{
    control_message reason;
    if (group_is_decided(&m->all))
        return;
    control_message_reason(&reason, CONTROL_VERDICT, m->world.rank, status, text);
    bulletin_post(m, &reason);
}

static proposal **find_proposal(membership *m, uint64_t communicator)
{
    proposal **at = &m->proposals;
    while (*at != NULL && (*at)->message.communicator != communicator)
        at = &(*at)->next;
    return at;
}

void verdict_on_note(membership *m, const control_message *note)
{
    proposal **at = find_proposal(m, note->communicator), *answered = *at;
    if (answered != NULL)
        *at = answered->next;
    free(answered);
    data_sockets_forget(m, note->communicator);
}

/* Writes the text, and then stores the verdict with release order. The text does not change after
 * that, so a thread that has loaded the verdict may read the text without the lock. */
void verdict_end_group(group *g, const control_message *note)
{
    const bool lost = note->kind == CONTROL_LOST;
    if (group_is_decided(g) || (lost && group_rank(g, note->rank) < 0))
        return;
    text_format(g->text, sizeof g->text, "%s", note->body.text);
    atomic_store_explicit(&g->verdict, lost ? (int)RING_ERR_PEER : (int)note->status,
                          memory_order_release);
    data_sockets_end(g);
    if (g->wake != NULL)
        g->wake(g->wake_context);
}

/* Stores the proposal and sends it up. If this rank is the top, makes it the verdict. */
static void consider(membership *m, const control_message *reason)
{
    const group *g = group_find(m, reason->communicator); /* NULL: this rank is not in it */
    if ((g != NULL && group_is_decided(g)) ||
        bulletin_find(m, CONTROL_VERDICT, reason->communicator, 0) != NULL ||
        *find_proposal(m, reason->communicator) != NULL)
        return;
    proposal *p = m->served && peers_up(m) != NULL ? malloc(sizeof *p) : NULL;
    if (p == NULL) {
        decide(m, reason);
        return;
    }
    *p = (proposal){.message = *reason,
                    .announced_to = -1,
                    .decide_by = clock_now() + ANSWER_SECONDS,
                    .next = m->proposals};
    m->proposals = p;
    membership_due(m, p->decide_by);
    peers_flush(m);
}

void verdict_receive(membership *m, connection *c, const control_message *reason)
{
    c->has_card |= !c->edge; /* a joining rank that fails sends a proposal instead of its card */
    consider(m, reason);
}

void verdict_propose(group *g, ring_status status, const char *text)
{
    control_message reason;
    control_message_reason(&reason, CONTROL_PROPOSAL, g->member->world.rank, status, text);
    reason.communicator = g->world.id;
    consider(g->member, &reason);
}

void verdict_propose_own(membership *m, ring_status status)
{
    char text[CONTROL_TEXT];
    text_format(text, sizeof text, "rank %d (%s): %s", m->world.rank,
                m->world.cards[m->world.rank].hostname, fail_text());
    for (group *g = m->groups; g != NULL; g = g->next)
        verdict_propose(g, status, text);
}

ring_status verdict_status(const membership *m)
{
    return fail(control_verdict(&m->world), "%s", m->all.text);
}

void verdict_free(membership *m)
{
    for (proposal *p = m->proposals, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
}

bool verdict_compose(membership *m, connection *c, control_message *out)
{
    if (m->proposals == NULL || c != peers_up(m))
        return false;
    for (proposal *p = m->proposals; p != NULL; p = p->next) {
        if (p->announced_to == c->peer)
            continue;
        p->announced_to = c->peer;
        *out = p->message;
        return true;
    }
    return false;
}

/* Proposes that the suspect was lost, since there is no verdict with another cause. */
static void accuse(group *g)
{
    char text[CONTROL_TEXT];
    const control_card *card = &g->world.cards[g->suspect];
    g->accuse_at = CONTROL_NEVER;
    text_format(text, sizeof text, "rank %d (%s, pid %d) %s: %s", g->suspect, card->hostname,
                card->pid,
                control_left(&g->world, g->suspect) ? "left the communicator while it was needed"
                                                    : "was lost",
                g->suspicion);
    verdict_propose(g, RING_ERR_PEER, text);
}

void verdict_tick(membership *m, double now)
{
    for (group *g = m->groups; g != NULL; g = g->next) {
        if (now >= g->accuse_at)
            accuse(g);
        membership_due(m, g->accuse_at);
    }
    for (const proposal *p = m->proposals; p != NULL; p = p->next) {
        if (now < p->decide_by) {
            membership_due(m, p->decide_by);
            continue;
        }
        decide(m, &p->message); /* frees p and changes the list */
        membership_due(m, 0);
        return;
    }
}

/* ---- For callers ------------------------------------------------------------------- */

/* Waits until the top answers, or the proposal is overdue and this thread decides. The caller holds
 * the lock. */
static void await_verdict(const group *g)
{
    const double deadline = clock_now() + ANSWER_SECONDS;
    while (!group_is_decided(g)) {
        (void)control_wait(&g->member->changed, deadline);
        verdict_tick(g->member, clock_now());
    }
}

void control_propose(control_world *world, ring_status status, const char *text)
{
    control_lock();
    verdict_propose(group_of(world), status, text);
    control_unlock();
}

void control_suspect(control_world *world, int peer, const char *what)
{
    group *g = group_of(world);
    control_lock();
    if (g->accuse_at >= CONTROL_NEVER) {
        g->suspect = peer;
        text_format(g->suspicion, sizeof g->suspicion, "%s", what);
        g->accuse_at = clock_now() + SUSPECT_SECONDS;
        membership_due(g->member, g->accuse_at);
    }
    control_unlock();
}

ring_status control_answer(control_world *world)
{
    control_lock();
    verdict_tick(group_of(world)->member, clock_now());
    const ring_status verdict = control_verdict(world);
    control_unlock();
    return verdict;
}

void control_report(control_world *world, ring_status status, const char *text)
{
    group *g = group_of(world);
    if (status == RING_OK)
        return;
    control_lock();
    verdict_propose(g, status, text);
    await_verdict(g);
    control_unlock();
}

void control_announce(control_world *world, ring_status mine)
{
    group *g = group_of(world);
    if (mine == RING_OK || world->size == 1)
        return;
    control_lock();
    const double deadline = clock_now() + SUSPECT_SECONDS;
    while (mine == RING_ERR_PEER && g->member->served && !group_is_decided(g))
        if (!control_wait(&g->member->changed, deadline))
            break; /* no other rank has reported the failure that caused the loss of a peer */
    verdict_propose_own(g->member, mine);
    await_verdict(g);
    control_unlock();
}
