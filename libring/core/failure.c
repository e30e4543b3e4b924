/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends communicators that fail. The first failure on any rank ends the communicator on all ranks. A
 * broken link may only be a consequence of a failure elsewhere, so its rank asks control for the
 * cause before it blames the peer. Until control has the verdict, no work of the communicator
 * moves, and each engine turn asks for the verdict. No thread waits for it with the lock held.
 */
#include "progress_thread.h"
#include "sleep.h"

#include <stdio.h>

/* Prepends "rank 2 (host7), all_reduce #3 (count 5, float32, sum): " unless the text already names
 * the ranks and calls. */
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
    comm_fail_by(comm, w, w != NULL ? w->wait.last : NULL, status);
}

void comm_fail_by(ring_comm *comm, const work *w, const channel *suspect, ring_status status)
{
    char text[480];
    if (comm->failure.pending)
        return;
    comm->failure.pending = true;
    comm->failure.seeks_reason = status == RING_ERR_PEER && suspect != NULL;
    orphans_count(comm, 1);
    add_context(comm, w, status, text, sizeof text);
    if (comm->failure.seeks_reason)
        control_suspect(comm->world, suspect->rank, text);
    else
        control_propose(comm->world, status, text);
    failure_settle(comm);
}

void failure_settle(ring_comm *comm)
{
    if (!comm->failure.pending)
        return;
    sleep_look(comm);
    /* The peer may have refused this rank's call and left. A call report then tells the reason. */
    if (comm->failure.seeks_reason && reports_check(comm) != RING_OK) {
        comm->failure.seeks_reason = false;
        control_propose(comm->world, RING_ERR_MISMATCH, fail_text());
    }
    if (comm_verdict(comm) == RING_OK)
        return;
    comm->failure.pending = false;
    orphans_count(comm, -1);
}

void failure_await(ring_comm *comm)
{
    for (failure_settle(comm); comm->failure.pending; failure_settle(comm))
        poll_links(comm, clock_now() + 1);
}

ring_status comm_verdict(ring_comm *comm)
{
    const int broken = atomic_load_explicit(&comm->failure.status, memory_order_acquire);
    if (broken != RING_OK)
        return (ring_status)broken;
    const bool asks = comm->failure.pending || control_verdict(comm->world) != RING_OK;
    const ring_status verdict = asks ? control_answer(comm->world) : RING_OK;
    if (verdict != RING_OK) {
        snprintf(comm->failure.text, sizeof comm->failure.text, "%s", control_text(comm->world));
        atomic_store_explicit(&comm->failure.status, (int)verdict, memory_order_release);
    }
    return verdict;
}

ring_status comm_check_alive(ring_comm *comm)
{
    comm_lock(comm);
    failure_await(comm);
    const ring_status verdict = comm_verdict(comm);
    comm_unlock(comm);
    return verdict == RING_OK ? RING_OK : fail(verdict, "%s", comm->failure.text);
}
