/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and frees a membership, and frees its connections and dialers that have ended. The keys
 * of the membership are in a page that is locked in memory and wiped when it is freed.
 */
#include "membership.h"

#include "roll.h"
#include "verdict.h"

#include <sodium.h>
#include <stdlib.h>

void membership_free_ended(membership *m)
{
    for (connection **at = &m->connections; *at != NULL;) {
        connection *c = *at;
        if (connection_is_open(c)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        connection_free(c);
    }
    for (dialer **at = &m->dialers; *at != NULL;) {
        dialer *d = *at;
        if (!d->ended) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        free(d);
    }
}

/* Allocates the page with the keys. If the process may not lock memory, the page is not locked. */
static ring_status make_terms(membership *m)
{
    m->job = sodium_malloc(2 * sizeof *m->job);
    if (m->job == NULL)
        return fail(RING_ERR_MEMORY, "no memory to store the key of a start");
    memset(m->job, 0, 2 * sizeof *m->job);
    m->terms = m->job + 1;
    m->job->rank = m->terms->rank = m->world.rank;
    m->job->size = m->terms->size = m->world.size;
    return RING_OK;
}

/* Allocates the arrays, and fills in this rank's card. */
static ring_status fill(membership *m, const settings *s, uint32_t transports)
{
    const size_t size = (size_t)m->world.size;
    m->world.cards = calloc(size, sizeof *m->world.cards);
    m->ranks = calloc(size, sizeof *m->ranks);
    m->goodbyes.leavers = calloc(size, sizeof *m->goodbyes.leavers);
    m->all.votes = calloc(size, sizeof *m->all.votes);
    /* The log of statements is allocated now, since a rank that waits must not fail for lack of
     * memory. */
    bulletin *recent = &m->bulletins[BULLETIN_RECENT];
    recent->notes = calloc(BULLETIN_STATEMENTS, sizeof *recent->notes);
    recent->room = BULLETIN_STATEMENTS;
    if (m->world.cards == NULL || m->ranks == NULL || m->goodbyes.leavers == NULL ||
        m->all.votes == NULL || recent->notes == NULL)
        return fail(RING_ERR_MEMORY, "no memory to store the cards of %zu rank%s", size,
                    plural(size));
    for (size_t r = 0; r < size; r++)
        m->world.cards[r].rank = -1;
    control_card *card = &m->world.cards[m->world.rank];
    card->rank = m->world.rank;
    card->transports = transports;
    card->runs_programs = s->device_programs;
    return card_fill(card, s->host_id);
}

static void init_parts(membership *m)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->client = (control_client){.rank = m->world.rank,
                                 .size = m->world.size,
                                 .due = CONTROL_NEVER,
                                 .tick = m->dispatch->tick};
    m->rendezvous.source.fd = m->tcp.source.fd = m->local.source.fd = -1;
    m->start.maker.fd = -1;
    m->ways.unanswered = -1;
    m->ways.attach_at = m->ways.adopt_at = CONTROL_NEVER;
    m->groups = &m->all;
    m->references = 1;
    m->all.member = m;
    m->all.round = 1;
    m->all.decide_by = m->all.accuse_at = CONTROL_NEVER;
}

ring_status membership_new(const settings *s, const launch_info *launch, uint32_t transports,
                           const control_dispatch *dispatch, membership **out)
{
    membership *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "no memory to join as rank %d", launch->rank);
    m->world.start = m;
    m->world.rank = launch->rank;
    m->world.size = launch->size;
    m->world.settings = *s;
    m->dispatch = dispatch;
    text_format(m->world.launcher, sizeof m->world.launcher, "%s", launch->launcher);
    log_set_rank(launch->rank, launch->size);
    init_parts(m);
    ring_status status = make_terms(m);
    if (status == RING_OK)
        status = fill(m, s, transports);
    if (status == RING_OK)
        *out = m;
    else
        membership_free(m);
    return status;
}

ring_status membership_serve(membership *m)
{
    RING_TRY(control_enter(&m->client));
    control_lock();
    m->served = true;
    control_unlock();
    return RING_OK;
}

void membership_free(membership *m)
{
    if (m->job != NULL && m->job->users != NULL)
        fclose(m->job->users);
    /* The listeners are open if the start has failed before the thread served the membership. */
    fd_close(&m->rendezvous.source.fd);
    fd_close(&m->tcp.source.fd);
    fd_close(&m->local.source.fd);
    sodium_free(m->job); /* wipes it */
    pthread_cond_destroy(&m->changed);
    for (int i = 0; i < BULLETINS; i++)
        free(m->bulletins[i].notes);
    verdict_free(m);
    roll_free(m);
    free(m->all.votes);
    free(m->all.decision);
    free(m->goodbyes.leavers);
    free(m->ranks);
    free(m->world.cards);
    free(m);
}
