/* SPDX-License-Identifier: Apache-2.0
 *
 * How a communicator ends: the first failure anywhere becomes everybody's. A rank that only
 * sees a broken link asks control who the culprit was before it blames its neighbour.
 */
#include "comm.h"

#include <stdio.h>

static void adopt(ring_comm *comm, ring_status status, const char *text)
{
    if (atomic_load_explicit(&comm->broken, memory_order_relaxed) != RING_OK)
        return;
    snprintf(comm->error, sizeof comm->error, "%s", text);
    atomic_store_explicit(&comm->broken, (int)status, memory_order_release);
}

/* "rank 2 (host7), all_reduce #3 (count 5, float32, sum): …", unless both are in the text. */
static void add_context(ring_comm *comm, const work *w, ring_status status, char *out, size_t size)
{
    char call[160] = "between calls";
    if (w != NULL)
        signature_describe(&w->call, w->seq, call, sizeof call);
    if (status == RING_ERR_MISMATCH)
        snprintf(out, size, "%s", fail_text());
    else
        snprintf(out, size, "rank %d (%s), %s: %s", comm->rank, comm_host(comm, comm->rank), call,
                 fail_text());
}

void comm_fail(ring_comm *comm, const work *w, ring_status status)
{
    comm_fail_by(comm, w, w != NULL ? w->suspect : NULL, status);
}

/* A link may break because the peer refused this rank's call, and left: then that is the reason,
 * and on its way. @return RING_ERR_MISMATCH with the reason, or RING_ERR_PEER. */
static ring_status await_reason(ring_comm *comm)
{
    char seen[400];
    const double end = clock_now() + 0.1;
    text_format(seen, sizeof seen, "%s", fail_text());
    do {
        const ring_status stated = statements_check(comm);
        if (stated != RING_OK)
            return stated;
        clock_sleep(1e-3);
    } while (control_verdict(comm->world) == RING_OK && clock_now() < end);
    return fail(RING_ERR_PEER, "%s", seen);
}

void comm_fail_by(ring_comm *comm, const work *w, const channel *suspect, ring_status status)
{
    char text[480];
    if (status == RING_ERR_PEER && suspect != NULL)
        status = await_reason(comm);
    add_context(comm, w, status, text, sizeof text);
    if (status == RING_ERR_PEER && suspect != NULL)
        control_suspect(comm->world, suspect->rank, text);
    else
        control_report(comm->world, status, text);
    adopt(comm, control_verdict(comm->world), control_text(comm->world));
}

ring_status comm_verdict(ring_comm *comm)
{
    const int broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    if (broken != RING_OK)
        return (ring_status)broken;
    const ring_status verdict = control_verdict(comm->world);
    if (verdict != RING_OK)
        adopt(comm, verdict, control_text(comm->world));
    return verdict;
}
