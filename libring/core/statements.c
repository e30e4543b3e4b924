/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements of ranks about their calls, over the control channel. A refused call takes its number
 * and sends nothing; all ranks hear of it, and one that did make that call ends the communicator
 * with the reason. Where all ranks refused alike, nothing happens. A rank that waits for long
 * states its call, so that ranks that made different calls learn it, whichever rank waits.
 */
#include "statements.h"

#include "channel_table.h"
#include "comm.h"
#include "mismatch.h"
#include "progress_thread.h"
#include "sleep.h"

/* @return the next free place; when all are taken, that of the statement with the highest
 * number. */
static int place_for(const statements *heard, const control_statement *new)
{
    int last = 0;
    if (heard->count < STATEMENTS_HEARD)
        return heard->count;
    for (int i = 1; i < heard->count; i++)
        if (heard->of[i].number > heard->of[last].number)
            last = i;
    return new->number < heard->of[last].number ? last : STATEMENTS_HEARD;
}

/* By the control thread. */
static void hear(void *context, int rank, const control_statement *statement)
{
    ring_comm *comm = context;
    statements *heard = &comm->statements;
    pthread_mutex_lock(&heard->lock);
    const int place = place_for(heard, statement);
    if (place < STATEMENTS_HEARD) {
        heard->of[place] = *statement;
        heard->rank[place] = rank;
        heard->count += place == heard->count;
        atomic_store(&heard->any, true);
        if (!heard->fresh)
            orphans_count(comm, 1);
        heard->fresh = true;
    }
    pthread_mutex_unlock(&heard->lock);
    sleep_wake(comm);
    progress_call(comm);
}

/* Locked. */
static void set_judged(ring_comm *comm)
{
    if (comm->statements.fresh)
        orphans_count(comm, -1);
    comm->statements.fresh = false;
}

void statements_listen(ring_comm *comm)
{
    pthread_mutex_init(&comm->statements.lock, NULL);
    control_set_statement_sink(comm->world, hear, comm);
}

void statements_stop(ring_comm *comm)
{
    control_set_statement_sink(comm->world, NULL, NULL);
    set_judged(comm);
}

/* ---- Other ranks' statements ---------------------------------------------------------------- */

static call_signature call_of(const control_statement *s)
{
    call_signature call = signature_unpack(s->signature);
    call.count = s->count;
    call.root = s->root;
    return call;
}

/* A send meets a recv of the same number, and a recv a send. CALL_UNKNOWN: it is over, or does not
 * concern this rank. */
static own_call compare_pair(const ring_comm *comm, int rank, const control_statement *s,
                             call_signature *mine)
{
    if (s->peer != comm->rank)
        return CALL_UNKNOWN;
    const plan_collective collective = s->sends ? PLAN_RECV : PLAN_SEND;
    for (const work *w = comm->works.first; w != NULL; w = w->next) {
        if (w->call.collective != collective || w->call.root != rank || w->seq != s->number ||
            w->call.tagged)
            continue;
        *mine = w->call;
        return CALL_OTHER;
    }
    const channel *c = channel_find(comm, TRAFFIC_PAIR, 0, rank);
    const uint64_t calls = c == NULL ? 0 : s->sends ? c->recvs : c->sends;
    return s->number >= calls ? CALL_NOT_MADE : CALL_UNKNOWN;
}

static own_call compare(const ring_comm *comm, int rank, const control_statement *s,
                        call_signature *mine)
{
    if (s->peer >= 0)
        return compare_pair(comm, rank, s, mine);
    const call_signature theirs = call_of(s);
    *mine = mismatch_own(comm, s->number);
    return mismatch_compare(comm, s->number, s->signature, &theirs);
}

static ring_status blame(const ring_comm *comm, int rank, const control_statement *s,
                         const call_signature *mine)
{
    if (s->refused)
        return mismatch_refused(comm, mine, s->number, rank, s->text);
    const call_signature theirs = call_of(s);
    return mismatch_differ(comm, mine, s->number, rank, &theirs, s->number);
}

/* Keeps statements about calls that this rank has not made yet. */
static ring_status judge_all(const ring_comm *comm, statements *heard)
{
    int kept = 0;
    for (int i = 0; i < heard->count; i++) {
        const control_statement *s = &heard->of[i];
        const int rank = heard->rank[i];
        call_signature mine;
        const own_call own = compare(comm, rank, s, &mine);
        if (own == CALL_OTHER || (own == CALL_SAME && s->refused))
            return blame(comm, rank, s, &mine);
        if (own != CALL_NOT_MADE)
            continue;
        heard->of[kept] = *s;
        heard->rank[kept++] = rank;
    }
    heard->count = kept;
    atomic_store(&heard->any, kept > 0);
    return RING_OK;
}

ring_status statements_judge(ring_comm *comm)
{
    statements *heard = &comm->statements;
    pthread_mutex_lock(&heard->lock);
    const ring_status status = judge_all(comm, heard);
    set_judged(comm);
    pthread_mutex_unlock(&heard->lock);
    return status;
}

/* ---- This rank's statements ---------------------------------------------------------------- */

void statements_refuse(ring_comm *comm, const call_signature *call)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    control_statement refusal = {.peer = facts->pairwise ? call->root : -1,
                                 .refused = true,
                                 .sends = call->collective == PLAN_SEND};
    const bool has_peer = call->root >= 0 && call->root < comm->ranks && call->root != comm->rank;
    channel *on = NULL;
    text_format(refusal.text, sizeof refusal.text, "%s", fail_text());
    if (facts->pairwise && call->tagged)
        return; /* no call number: no peer could find it */
    if (facts->pairwise &&
        (!has_peer || channel_get(comm, TRAFFIC_PAIR, 0, call->root, &on) != RING_OK))
        return; /* it concerns no peer */
    refusal.number = work_take_number(comm, call, HISTORY_REFUSED, on);
    comm->statements.own_number = refusal.number;
    text_format(comm->statements.own, sizeof comm->statements.own, "%s", refusal.text);
    if (comm->ranks > 1)
        control_state(comm->world, &refusal);
    if (statements_check(comm) != RING_OK)
        log_debug("%s", fail_text()); /* calls that go on report it again */
}

void statements_wait(work *w)
{
    ring_comm *comm = w->comm;
    if (comm->statements.stated == w->seq + 1 || comm->ranks == 1)
        return;
    comm->statements.stated = w->seq + 1;
    const control_statement waiting = {.number = w->seq,
                                       .signature = w->signature,
                                       .peer = -1,
                                       .count = w->call.count,
                                       .root = w->program->facts->pairwise ? 0 : w->call.root};
    control_state(comm->world, &waiting);
}
