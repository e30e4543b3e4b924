/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that ranks refused for their arguments. A refused call takes its number and sends nothing;
 * all ranks hear of it over the control channel, and one that did make that call ends the
 * communicator with the reason. Where all ranks refused alike, nothing happens.
 */
#include "comm.h"


/* Behind the others; when all places are taken, that of the one which is needed last. */
static int place_for(const refusals *heard, const control_refusal *new)
{
    int last = 0;
    if (heard->count < REFUSALS_HEARD)
        return heard->count;
    for (int i = 1; i < heard->count; i++)
        if (heard->of[i].number > heard->of[last].number)
            last = i;
    return new->number < heard->of[last].number ? last : REFUSALS_HEARD;
}

/* By the control thread. */
static void hear(void *context, int rank, const control_refusal *refusal)
{
    ring_comm *comm = context;
    refusals *heard = &comm->refusals;
    pthread_mutex_lock(&heard->lock);
    const int place = place_for(heard, refusal);
    if (place < REFUSALS_HEARD) {
        heard->of[place] = *refusal;
        heard->rank[place] = rank;
        heard->count += place == heard->count;
        atomic_store(&heard->any, true);
    }
    pthread_mutex_unlock(&heard->lock);
    sleeper_wake(comm);
}

void refusals_listen(ring_comm *comm)
{
    pthread_mutex_init(&comm->refusals.lock, NULL);
    control_set_refusal_sink(comm->world, hear, comm);
}

void refusals_stop(ring_comm *comm)
{
    control_set_refusal_sink(comm->world, NULL, NULL);
}

/* ---- What it means here ------------------------------------------------------------------- */

typedef enum meaning { OF_NO_MATTER, OF_LATER, OF_A_CALL_MADE } meaning;

static meaning of_collective(const ring_comm *comm, const control_refusal *r,
                             call_signature *mine)
{
    if (r->number >= comm->calls)
        return OF_LATER;
    const uint64_t packed = comm->history[r->number % HISTORY_CALLS];
    if (comm->calls - r->number > HISTORY_CALLS || packed == HISTORY_REFUSED)
        return OF_NO_MATTER;
    *mine = signature_unpack(packed);
    return OF_A_CALL_MADE;
}

/* A send meets a recv of the same number, and a recv a send. */
static meaning of_pair(const ring_comm *comm, int rank, const control_refusal *r,
                       call_signature *mine)
{
    if (r->peer != comm->rank)
        return OF_NO_MATTER;
    const plan_collective collective = r->sends ? PLAN_RECV : PLAN_SEND;
    for (const work *w = comm->first; w != NULL; w = w->next) {
        if (w->call.collective != collective || w->call.root != rank || w->seq != r->number)
            continue;
        *mine = w->call;
        return OF_A_CALL_MADE;
    }
    return r->number >= comm->pair_calls[2 * rank + (r->sends ? 1 : 0)] ? OF_LATER : OF_NO_MATTER;
}

static ring_status refused(const ring_comm *comm, int rank, const control_refusal *r,
                           const call_signature *mine)
{
    char my_text[160];
    signature_describe(mine, r->number, my_text, sizeof my_text);
    return fail(RING_ERR_MISMATCH, "ranks made different calls: rank %d (%s) called %s, rank %d "
                "(%s) refused it: %s", comm->rank, comm_host(comm, comm->rank), my_text, rank,
                comm_host(comm, rank), r->text);
}

/* Keeps what is about calls that this rank has not come to. */
static ring_status judge_all(const ring_comm *comm, refusals *heard)
{
    int kept = 0;
    for (int i = 0; i < heard->count; i++) {
        const control_refusal *r = &heard->of[i];
        const int rank = heard->rank[i];
        call_signature mine;
        const meaning what = r->peer < 0 ? of_collective(comm, r, &mine)
                                         : of_pair(comm, rank, r, &mine);
        if (what == OF_A_CALL_MADE)
            return refused(comm, rank, r, &mine);
        if (what == OF_NO_MATTER)
            continue;
        heard->of[kept] = *r;
        heard->rank[kept++] = rank;
    }
    heard->count = kept;
    atomic_store(&heard->any, kept > 0);
    return RING_OK;
}

ring_status refusals_check(ring_comm *comm)
{
    refusals *heard = &comm->refusals;
    if (!atomic_load_explicit(&heard->any, memory_order_relaxed))
        return RING_OK;
    pthread_mutex_lock(&heard->lock);
    const ring_status status = judge_all(comm, heard);
    pthread_mutex_unlock(&heard->lock);
    return status;
}

/* ---- Refusing ------------------------------------------------------------------------------ */

void refusals_make(ring_comm *comm, const call_signature *call)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    control_refusal refusal = {.peer = facts->pairwise ? call->root : -1,
                               .sends = call->collective == PLAN_SEND};
    const bool has_peer = call->root >= 0 && call->root < comm->ranks && call->root != comm->rank;
    if (facts->pairwise && !has_peer)
        return; /* it is nobody's */
    refusal.number = work_take_number(comm, call, HISTORY_REFUSED);
    text_format(refusal.text, sizeof refusal.text, "%s", fail_text());
    comm->refusals.own_number = refusal.number;
    text_format(comm->refusals.own, sizeof comm->refusals.own, "%s", refusal.text);
    if (comm->ranks > 1)
        control_refuse(comm->world, &refusal);
    if (refusals_check(comm) != RING_OK)
        log_debug("%s", fail_text()); /* it shows again in a call that goes on */
}
