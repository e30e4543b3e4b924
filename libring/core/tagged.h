/* SPDX-License-Identifier: Apache-2.0
 *
 * tagged: sends and receives that meet by tag, and receives from any source.
 *
 * Two kinds of traffic. TRAFFIC_TAGGED carries, in call order, one message for each send: a short
 * one with its payload (sent ahead), a longer one as a question alone. The receiver takes frames as
 * they come. A message that a receive waits for goes straight to its buffer, any other is set
 * aside. When a receive meets a question it answers with a grant. Both ends then give their works
 * the next message numbers of TRAFFIC_GRANTED, in the order of the grants: from there on the two
 * are a send and a receive like all others (channel.h), with any memory and any way to move it. So
 * of long messages only the questions are ever set aside.
 *
 * Bounds. A receiver keeps at most TAGGED_WINDOW of the bytes that a sender has sent ahead; credits
 * announce the bytes that it has freed. A send that does not fit becomes a question, as if it were
 * long: no message ever blocks a later one that has another tag. There are at most as many
 * questions as the sender has sends under way.
 *
 * Order. A call takes its place when it is made, also one behind an event that is not set. A
 * message is matched with receives in the order of their calls, a receive with messages in the
 * order of their arrival. Links are visited round robin, and one that has served a receive from any
 * source comes last.
 *
 * A frame of TRAFFIC_TAGGED is one of:
 *     TAGGED_BYTES   the next bytes of a message that is sent ahead; those of one message follow
 *                    each other, all with its tag and signature. Within 40 bytes they lie in the
 *                    header; else ext.bytes follow it, and ext.count is the call's.
 *     TAGGED_ASK     of a send, with its number among the questions and its count
 *     TAGGED_GRANT   the number of the question that may send
 *     TAGGED_CREDIT  bytes that the receiver has freed
 * `message` is the tag, `call` the kind in its low 2 bits and the number of the frame above them.
 */
#ifndef RING_CORE_TAGGED_H
#define RING_CORE_TAGGED_H

#include "comm.h"

/** Reads the tag of the options into the call. @param status  of earlier checks, kept. */
ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status);
/** The same for a start of a prepared call, whose tag is set already. */
ring_status tagged_read_again(const call_signature *call, const ring_call *options);
/** Enters the work in its list. The caller starts it next. */
ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope);
/** Goes on with a work whose gate is open. @return RING_OK: its ops may run; RING_IN_PROGRESS: it
 *  waits here, and is held when it may go on. */
ring_status tagged_advance(work *w, bool *moved);
/** @return the text of a deadline that passed. */
ring_status tagged_timed_out(const work *w);

#endif
