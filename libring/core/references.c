/* SPDX-License-Identifier: Apache-2.0
 * Accesses memory that a message refers to: through a mapping if the link maps memory, else with a
 * get. */
#include "references.h"

uint64_t channel_ref(const work *w, const channel *c, const char *at, size_t bytes)
{
    if (channel_transfers(c) && !work_may_lend(w, at))
        return 0;
    return c->link->transport->ref(c->link, at, bytes);
}

void *channel_map(const work *w, const channel *c, uint64_t ref, size_t bytes)
{
    void *at = c->link->transport->map(c->link, ref, bytes);
    const size_t element = ring_dtype_size(w->program->call.dtype);
    if (at != NULL && (uintptr_t)at % element == 0)
        return at;
    fail(RING_ERR_PEER, "rank %d sent a reference to memory %s", c->rank,
         at == NULL ? "outside its heap" : "that is not aligned to the call's elements");
    return NULL;
}

RING_RARE ring_status channel_fetch(work *w, channel *c, char *to, uint64_t ref, size_t bytes)
{
    ring_status status = RING_OK;
    w->wait.last = c; /* the error names this peer if the link fails */
    if (w->step.phase == PHASE_NONE) {
        status = c->link->transport->get(c->link, to, ref, bytes, &w->step.over);
        w->step.phase = status == RING_OK ? PHASE_FETCHING : PHASE_NONE;
    }
    if (w->step.phase == PHASE_FETCHING)
        status = ticket_status(&w->step.over);
    if (status == RING_IN_PROGRESS)
        return channel_await(w, c, WAIT_FREE, c->received);
    const bool began = w->step.phase == PHASE_FETCHING;
    w->step.phase = PHASE_NONE;
    if (status == RING_OK || !began)
        return status;
    /* A ticket has no error text, but the progress() of a broken link sets the reason. */
    RING_TRY(c->link->transport->progress(c->link));
    return fail(status, "fetching a message from the memory of rank %d failed", c->rank);
}
