/* SPDX-License-Identifier: Apache-2.0
 *
 * mismatch: detects ranks that made different calls. A rank learns of another rank's call from a
 * frame, a call report, a message with a matching tag, or its GPU. In each case this file compares
 * that call with the rank's own, and returns the same error, RING_ERR_MISMATCH, if they differ.
 */
#ifndef RING_CORE_MISMATCH_H
#define RING_CORE_MISMATCH_H

#include "comm.h"

/** The result of comparing this rank's collective with another rank's collective of the same
 *  number. CALL_UNKNOWN: this rank's collective is not in the history any more. */
typedef enum own_call { CALL_NOT_MADE, CALL_UNKNOWN, CALL_REFUSED, CALL_SAME, CALL_OTHER } own_call;

/** Compares this rank's collective @p seq with another rank's. @param packed  the packed signature
 *  of the other rank's call. @param theirs  the same call, unpacked. */
own_call mismatch_compare(const ring_comm *comm, uint64_t seq, uint64_t packed,
                          const call_signature *theirs);
/** @return this rank's collective @p seq if it is in the history, else the latest one. */
call_signature mismatch_own(const ring_comm *comm, uint64_t seq);

/** @return RING_ERR_MISMATCH, with a message that names both calls. */
ring_status mismatch_differ(const ring_comm *comm, const call_signature *mine, uint64_t my_seq,
                            int rank, const call_signature *theirs, uint64_t their_seq);
/** As mismatch_differ(), for this rank's collective @p my_seq, which it has made or refused. */
ring_status mismatch_collective(const ring_comm *comm, uint64_t my_seq, int rank,
                                const call_signature *theirs, uint64_t their_seq);
/** @return RING_ERR_MISMATCH, because rank @p refuser refused a call that this rank made.
 *  @param why  the reason of the refusal. */
ring_status mismatch_refused(const ring_comm *comm, const call_signature *mine, uint64_t seq,
                             int refuser, const char *why);
/** Checks that the receive or send @p w has the count and type of the call with which it was
 *  matched. @return RING_ERR_MISMATCH if it has not. */
ring_status mismatch_check_pair(const work *w, int rank, const call_signature *theirs,
                                uint64_t their_seq);

/** Reports a frame that does not belong to the work's call. @return RING_ERR_MISMATCH, or
 *  RING_IN_PROGRESS if the frame belongs to a later collective. The peer may then have refused this
 *  one, and its call report may still be in flight. */
ring_status mismatch_of_frame(const work *w, const channel *c, const transport_frame *frame);
/** Checks the next frame on the channel of a stalled work. A frame of a later collective is an
 *  error, too, because a call report would have arrived by now. */
ring_status mismatch_check_stalled(const work *w);
/** Checks whether the channel has a frame that no work has consumed, while the communicator is
 *  being destroyed. @return RING_ERR_MISMATCH if this rank made a different call. */
ring_status mismatch_check_left_over(const channel *c);
/** @return RING_ERR_MISMATCH because the message of a rank in a v-form has @p theirs elements and
 *  this rank expects @p mine. */
ring_status mismatch_of_length(const work *w, int rank, size_t theirs, size_t mine);

#endif
