/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements of ranks about their calls, over the control channel. A refused call takes its number
 * and sends nothing; all ranks hear of it, and one that did make that call ends the communicator
 * with the reason. Where all ranks refused alike, nothing happens. A rank that waits for long
 * states its call, so that ranks that made different calls learn it, whichever rank waits.
 */
#include "call_reports.h"

#include "channel_table.h"
#include "comm.h"
#include "mismatch.h"
#include "progress_thread.h"
#include "sleep.h"

/* @return the next free place; when all are taken, that of the statement with the highest
 * number. */
static int slot_for(const call_reports *reports, const control_statement *new)
{
    int last = 0;
    if (reports->count < REPORTS_KEPT)
        return reports->count;
    for (int i = 1; i < reports->count; i++)
        if (reports->of[i].number > reports->of[last].number)
            last = i;
    return new->number < reports->of[last].number ? last : REPORTS_KEPT;
}

/* By the control thread. */
static void receive_report(void *context, int rank, const control_statement *statement)
{
    ring_comm *comm = context;
    call_reports *reports = &comm->reports;
    pthread_mutex_lock(&reports->lock);
    const int place = slot_for(reports, statement);
    if (place < REPORTS_KEPT) {
        reports->of[place] = *statement;
        reports->rank[place] = rank;
        reports->count += place == reports->count;
        atomic_store(&reports->any, true);
        if (!reports->fresh)
            orphans_count(comm, 1);
        reports->fresh = true;
    }
    pthread_mutex_unlock(&reports->lock);
    sleep_wake(comm);
    progress_call(comm);
}

/* Locked. */
static void set_judged(ring_comm *comm)
{
    if (comm->reports.fresh)
        orphans_count(comm, -1);
    comm->reports.fresh = false;
}

void reports_listen(ring_comm *comm)
{
    pthread_mutex_init(&comm->reports.lock, NULL);
    control_set_statement_sink(comm->world, receive_report, comm);
}

void reports_stop(ring_comm *comm)
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

static ring_status fail_by_report(const ring_comm *comm, int rank, const control_statement *s,
                                  const call_signature *mine)
{
    if (s->refused)
        return mismatch_refused(comm, mine, s->number, rank, s->text);
    const call_signature theirs = call_of(s);
    return mismatch_differ(comm, mine, s->number, rank, &theirs, s->number);
}

/* Keeps statements about calls that this rank has not made yet. */
static ring_status judge_all(const ring_comm *comm, call_reports *reports)
{
    int kept = 0;
    for (int i = 0; i < reports->count; i++) {
        const control_statement *s = &reports->of[i];
        const int rank = reports->rank[i];
        call_signature mine;
        const own_call own = compare(comm, rank, s, &mine);
        if (own == CALL_OTHER || (own == CALL_SAME && s->refused))
            return fail_by_report(comm, rank, s, &mine);
        if (own != CALL_NOT_MADE)
            continue;
        reports->of[kept] = *s;
        reports->rank[kept++] = rank;
    }
    reports->count = kept;
    atomic_store(&reports->any, kept > 0);
    return RING_OK;
}

ring_status reports_judge(ring_comm *comm)
{
    call_reports *reports = &comm->reports;
    pthread_mutex_lock(&reports->lock);
    const ring_status status = judge_all(comm, reports);
    set_judged(comm);
    pthread_mutex_unlock(&reports->lock);
    return status;
}

/* ---- This rank's statements ---------------------------------------------------------------- */

void reports_refuse(ring_comm *comm, const call_signature *call)
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
    comm->reports.own_number = refusal.number;
    text_format(comm->reports.own, sizeof comm->reports.own, "%s", refusal.text);
    if (comm->ranks > 1)
        control_state(comm->world, &refusal);
    if (reports_check(comm) != RING_OK)
        log_debug("%s", fail_text()); /* calls that go on report it again */
}

void reports_wait(work *w)
{
    ring_comm *comm = w->comm;
    if (comm->reports.stated == w->seq + 1 || comm->ranks == 1)
        return;
    comm->reports.stated = w->seq + 1;
    const control_statement waiting = {.number = w->seq,
                                       .signature = w->signature,
                                       .peer = -1,
                                       .count = w->call.count,
                                       .root = w->program->facts->pairwise ? 0 : w->call.root};
    control_state(comm->world, &waiting);
}
