/* SPDX-License-Identifier: Apache-2.0
 * Deciding, telling, and going around neighbours that do not pass it on. The text is complete
 * before the verdict is stored with release order, and never changes afterwards. */
#include "verdict.h"

#include "departure.h"

#define ANSWER_SECONDS 0.2  /* for the top to answer a proposal          */
#define SUSPECT_SECONDS 0.3 /* for the real culprit to be known          */
#define BYPASS_SECONDS 0.1  /* for a neighbour to say that it has heard  */

/* ---- Deciding ---------------------------------------------------------------------- */

void verdict_decide(membership *m, ring_status status, const char *text)
{
    if (membership_is_decided(m))
        return;
    text_format(m->text, sizeof m->text, "%s", text);
    atomic_store_explicit(&m->verdict, (int)status, memory_order_release);
    if (m->served) {
        m->bypass_at = clock_now() + BYPASS_SECONDS;
        membership_due(m, m->bypass_at);
        membership_flush(m);
    }
    if (m->wake != NULL)
        m->wake(m->wake_context);
}

void verdict_propose(membership *m, ring_status status, const char *text)
{
    if (membership_is_decided(m) || m->proposed)
        return;
    if (!m->served || membership_up(m) == NULL) {
        verdict_decide(m, status, text);
        return;
    }
    control_message_reason(&m->proposal, CONTROL_PROPOSAL, m->world.rank, status, text);
    m->proposed = true;
    m->decide_by = clock_now() + ANSWER_SECONDS;
    membership_due(m, m->decide_by);
    membership_flush(m);
}

void verdict_propose_own(membership *m, ring_status status)
{
    char text[CONTROL_TEXT];
    text_format(text, sizeof text, "rank %d (%s): %s", m->world.rank,
                m->world.cards[m->world.rank].hostname, fail_text());
    verdict_propose(m, status, text);
}

void verdict_lost(membership *m, int rank, const char *why)
{
    char name[128], text[CONTROL_TEXT];
    membership_name(m, rank, name, sizeof name);
    text_format(text, sizeof text, "%s was lost%s%s", name, m->state == STATE_JOINING ? " " : ": ",
                m->state == STATE_JOINING ? "while ranks were joining" : why);
    verdict_decide(m, RING_ERR_PEER, text);
}

ring_status verdict_status(const membership *m)
{
    return fail(control_verdict(&m->world), "%s", m->text);
}

/* ---- On the channel ---------------------------------------------------------------- */

void verdict_hear(membership *m, connection *c, const control_message *message)
{
    const ring_status status = (ring_status)message->status;
    if (message->kind == CONTROL_PROPOSAL) {
        verdict_propose(m, status, message->body.text);
        return;
    }
    c->heard_verdict = true;
    verdict_decide(m, status, message->body.text);
}

/* While ranks join, one is told only after its card came: it would not be listening before. */
static bool may_be_told(const membership *m, const connection *c)
{
    return c->edge || (m->world.rank == 0 && c->came);
}

bool verdict_speak(membership *m, connection *c, control_message *out)
{
    if (membership_is_decided(m)) {
        if (c->told_verdict || !may_be_told(m, c))
            return false;
        c->told_verdict = true;
        m->told++;
        control_message_reason(out, CONTROL_VERDICT, m->world.rank, control_verdict(&m->world),
                               m->text);
        return true;
    }
    if (!m->proposed || c->told_proposal || c != membership_up(m))
        return false;
    c->told_proposal = true;
    *out = m->proposal;
    return true;
}

/* ---- When nothing is heard --------------------------------------------------------- */

/* Its neighbours in the tree hear of it all the same. */
static void bypass(membership *m, int silent)
{
    const int first = tree_first_child(silent), children = tree_children(silent, m->world.size);
    departure_dial(m, tree_parent(silent));
    for (int i = 0; i < children; i++)
        departure_dial(m, first + i);
}

static void bypass_silent_ones(membership *m)
{
    for (connection *c = m->connections; c != NULL; c = c->next) {
        if (!c->edge || !connection_is_open(c) || c->heard_verdict || c->bypassed)
            continue;
        c->bypassed = true;
        bypass(m, c->peer);
    }
}

bool verdict_is_spread(const membership *m)
{
    if (!membership_is_decided(m))
        return true;
    for (const connection *c = m->connections; c != NULL; c = c->next)
        if (c->edge && connection_is_open(c) && !c->heard_verdict && !c->bypassed)
            return false;
    return !departure_is_dialing(m, -1);
}

void verdict_tick(membership *m, double now)
{
    if (membership_is_decided(m)) {
        if (m->state == STATE_JOINING || m->state == STATE_CARDS)
            return; /* not all have cards: rank 0 tells each */
        if (now >= m->bypass_at)
            bypass_silent_ones(m);
        else
            membership_due(m, m->bypass_at);
    } else if (m->proposed) {
        if (now >= m->decide_by)
            verdict_decide(m, (ring_status)m->proposal.status, m->proposal.body.text);
        else
            membership_due(m, m->decide_by);
    }
}

/* ---- For callers ------------------------------------------------------------------- */

ring_status control_verdict(const control_world *world)
{
    return (ring_status)atomic_load_explicit(&membership_at(world)->verdict,
                                             memory_order_acquire);
}

const char *control_text(const control_world *world)
{
    return control_verdict(world) != RING_OK ? membership_at(world)->text : "";
}

/* Locked. Whoever has proposed has a verdict soon, from above or its own. */
static void await_verdict(membership *m)
{
    while (!membership_is_decided(m))
        (void)control_wait(&m->changed, CONTROL_NEVER);
}

void control_report(control_world *world, ring_status status, const char *text)
{
    if (status == RING_OK)
        return;
    control_lock();
    verdict_propose(membership_of(world), status, text);
    await_verdict(membership_of(world));
    control_unlock();
}

/* Locked. What this rank saw may be the effect of another one's failure. */
static void await_better_reason(membership *m)
{
    const double deadline = clock_now() + SUSPECT_SECONDS;
    while (m->served && !membership_is_decided(m))
        if (!control_wait(&m->changed, deadline))
            break;
}

void control_suspect(control_world *world, int peer, const char *what)
{
    membership *m = membership_of(world);
    char name[128], text[CONTROL_TEXT];
    control_lock();
    await_better_reason(m);
    membership_name(m, peer, name, sizeof name);
    const bool left = control_left(world, peer);
    text_format(text, sizeof text, "%s %s: %s", name,
                left ? "left the communicator while it was needed" : "was lost", what);
    verdict_propose(m, RING_ERR_PEER, text);
    await_verdict(m);
    control_unlock();
}

void control_announce(control_world *world, ring_status mine)
{
    membership *m = membership_of(world);
    if (mine == RING_OK || world->size == 1)
        return;
    control_lock();
    if (mine == RING_ERR_PEER)
        await_better_reason(m);
    verdict_propose_own(m, mine);
    await_verdict(m);
    control_unlock();
}
