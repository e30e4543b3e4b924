/* SPDX-License-Identifier: Apache-2.0
 * Texts of errors where ranks made different calls. */
#include "mismatch.h"

ring_status mismatch_differ(const ring_comm *comm, const call_signature *mine, uint64_t my_seq,
                            int rank, const call_signature *theirs, uint64_t their_seq)
{
    char my_text[160], their_text[160];
    signature_describe(mine, my_seq, my_text, sizeof my_text);
    signature_describe(theirs, their_seq, their_text, sizeof their_text);
    return fail(RING_ERR_MISMATCH,
                "ranks made different calls: rank %d (%s) called %s, rank %d (%s) called %s",
                comm->rank, comm_host(comm, comm->rank), my_text, rank, comm_host(comm, rank),
                their_text);
}

ring_status mismatch_refused(const ring_comm *comm, int caller, const call_signature *call,
                             uint64_t seq, int refuser, const char *why)
{
    char text[160];
    signature_describe(call, seq, text, sizeof text);
    return fail(RING_ERR_MISMATCH,
                "ranks made different calls: rank %d (%s) called %s, rank %d (%s) refused it: %s",
                caller, comm_host(comm, caller), text, refuser, comm_host(comm, refuser), why);
}

ring_status mismatch_refused_here(const ring_comm *comm, int rank, const call_signature *theirs,
                                  uint64_t seq)
{
    const char *why = comm->statements.own_number == seq ? comm->statements.own
                                                         : "its arguments were wrong";
    return mismatch_refused(comm, rank, theirs, seq, comm->rank, why);
}
