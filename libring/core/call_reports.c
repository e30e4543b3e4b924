/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges reports about calls between ranks, over the control channel. A rank that refuses a call
 * sends no data for it, but reports the refusal to all ranks. A rank that has made this call then
 * ends the communicator with the reported reason; if all ranks refuse the call, the communicator
 * continues. A rank that waits for a long time reports the call that it waits in, and a rank that
 * has made a different call with the same number, or refused it, ends the communicator.
 */
#include "call_reports.h"

#include "channel_table.h"
#include "comm.h"
#include "mismatch.h"
#include "progress_thread.h"
#include "sleep.h"

/* If all slots are in use, the report with the highest call number is dropped, because this rank
 * reaches that call last. When it waits in that call, the other rank learns so and ends the
 * communicator. @return the slot for the new report; REPORTS_KEPT to drop the new one. */
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

/* Called by the control thread when a report arrives. */
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

/* The caller holds reports.lock, or no more reports can arrive. */
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

/* ---- Reports of other ranks ----------------------------------------------------------------- */

/* Compares the send of another rank with this rank's recv of the same number, or its recv with this
 * rank's send. @return CALL_UNKNOWN if this rank's call has ended or the report is for another
 * rank. */
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
        const bool alike = signature_unpack(s->signature).on_device == w->call.on_device;
        return alike && !s->refused ? CALL_SAME : CALL_OTHER;
    }
    const channel *c = channel_find(comm, TRAFFIC_PAIR, 0, rank);
    const uint64_t calls = c == NULL ? 0 : s->sends ? c->recvs : c->sends;
    return s->number >= calls ? CALL_NOT_MADE : CALL_UNKNOWN;
}

/* Compares each report with this rank's call of the same number. Keeps the reports about calls that
 * this rank has not made yet, and removes the others. */
static ring_status judge_all(const ring_comm *comm, call_reports *reports)
{
    int kept = 0;
    for (int i = 0; i < reports->count; i++) {
        const control_statement *s = &reports->of[i];
        const int rank = reports->rank[i];
        call_signature mine, theirs = signature_unpack(s->signature);
        own_call own;
        theirs.count = s->count;
        theirs.root = s->root;
        if (s->peer >= 0) {
            theirs.collective = s->sends ? PLAN_SEND : PLAN_RECV;
            own = compare_pair(comm, rank, s, &mine);
        } else {
            mine = mismatch_own(comm, s->number);
            own = mismatch_compare(comm, s->number, s->signature, &theirs);
        }
        if (s->refused && (own == CALL_OTHER || own == CALL_SAME))
            return mismatch_refused(comm, &mine, s->number, rank, s->text);
        if (own == CALL_OTHER)
            return mismatch_differ(comm, &mine, s->number, rank, &theirs, s->number);
        if (!s->refused && own == CALL_REFUSED) /* it has dropped the report of the refusal */
            return mismatch_collective(comm, s->number, rank, &theirs, s->number);
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

/* ---- Reports of this rank ------------------------------------------------------------------ */

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
        return; /* tagged calls have no number by which the peer could find its call */
    if (facts->pairwise &&
        (!has_peer || channel_get(comm, TRAFFIC_PAIR, 0, call->root, &on) != RING_OK))
        return; /* no other rank is affected */
    refusal.number = work_take_number(comm, call, HISTORY_REFUSED, on);
    comm->reports.own_number = refusal.number;
    text_format(comm->reports.own, sizeof comm->reports.own, "%s", refusal.text);
    if (comm->ranks > 1)
        control_state(comm->world, &refusal);
    if (reports_check(comm) != RING_OK)
        log_debug("%s", fail_text()); /* the next call returns the error */
}

void reports_wait(work *w)
{
    ring_comm *comm = w->comm;
    const bool pairwise = w->program->facts->pairwise;
    if (comm->ranks == 1 || (pairwise ? w->stream.stated : comm->reports.stated == w->seq + 1))
        return;
    if (pairwise)
        w->stream.stated = true;
    else
        comm->reports.stated = w->seq + 1;
    const control_statement waiting = {.number = w->seq,
                                       .signature = w->signature,
                                       .peer = pairwise ? w->call.root : -1,
                                       .sends = w->call.collective == PLAN_SEND,
                                       .count = w->call.count,
                                       .root = pairwise ? comm->rank : w->call.root};
    control_state(comm->world, &waiting);
}
