/* SPDX-License-Identifier: Apache-2.0
 *
 * mismatch: ranks that made different calls. All that a rank learns of another one's call, by a
 * frame, a statement, a matching tag or its GPU, is compared with its own call here, and becomes
 * the same error, RING_ERR_MISMATCH.
 */
#ifndef RING_CORE_MISMATCH_H
#define RING_CORE_MISMATCH_H

#include "comm.h"

/** This rank's collective of a number, beside another rank's of that number. CALL_UNKNOWN: so many
 *  calls ago that it is not in the history. */
typedef enum own_call { CALL_NOT_MADE, CALL_UNKNOWN, CALL_REFUSED, CALL_SAME, CALL_OTHER } own_call;

/** @param packed  the signature of the other rank's call, which @p theirs says in words. */
own_call mismatch_compare(const ring_comm *comm, uint64_t seq, uint64_t packed,
                          const call_signature *theirs);
/** @return this rank's collective of a number that is in the history; else the latest one. */
call_signature mismatch_own(const ring_comm *comm, uint64_t seq);

/** Two ranks made different calls. */
ring_status mismatch_differ(const ring_comm *comm, const call_signature *mine, uint64_t my_seq,
                            int rank, const call_signature *theirs, uint64_t their_seq);
/** The same where this rank's call is its collective @p my_seq, which it may have refused. */
ring_status mismatch_collective(const ring_comm *comm, uint64_t my_seq, int rank,
                                const call_signature *theirs, uint64_t their_seq);
/** Another rank refused a call that this one made. */
ring_status mismatch_refused(const ring_comm *comm, const call_signature *mine, uint64_t seq,
                             int refuser, const char *why);
/** Checks a receive and the send that it has met, also of this rank itself. */
ring_status mismatch_check_pair(const work *w, int rank, const call_signature *theirs,
                                uint64_t their_seq);

/** A frame is not of the work's call. @return RING_IN_PROGRESS if it is of a later collective: the
 *  peer may have refused this one, with a statement on its way. */
ring_status mismatch_of_frame(const work *w, const channel *c, const transport_frame *frame);
/** Checks the frame that a stalled work waits for: then a later call is an error, too. */
ring_status mismatch_check_stalled(const work *w);
/** Checks the next frame, which no work took. */
ring_status mismatch_check_left_over(const channel *c);
/** The peer's message of a v-form has so many elements more or fewer than this rank expects. */
ring_status mismatch_of_length(const work *w, const channel *c, size_t theirs, size_t mine);

#endif
