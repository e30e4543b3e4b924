/* SPDX-License-Identifier: Apache-2.0
 *
 * tagged: implements sends and receives that are matched by tag, and receives from any source.
 *
 * Two kinds of traffic: TRAFFIC_TAGGED carries one message for each send, in call order. A short
 * message is sent ahead with its payload; for a longer one only a question is sent. The receiver
 * consumes frames as they arrive. A message for which a receive waits is written directly into its
 * buffer; any other is set aside. When a receive is matched with a question, it answers with a
 * grant. Both ends then give their works the next message numbers of TRAFFIC_GRANTED, in the order
 * of the grants, and from then on the two are an ordinary send and receive (channel.h), with any
 * memory and any way to move it. Of long messages, only the questions are ever set aside.
 *
 * Bounds: a receiver keeps at most TAGGED_WINDOW bytes that a sender has sent ahead; credits
 * announce the bytes that it has freed. A send that does not fit becomes a question, as if it were
 * long, so no message ever blocks a later one with another tag. There are at most as many questions
 * as the sender has sends in flight.
 *
 * Order: a call takes its place when it is made, even if it waits for an event. A message is
 * matched with receives in the order of their calls, and a receive with messages in the order of
 * their arrival. Links are visited round robin, starting after the one that last served a receive
 * from any source.
 *
 * A frame of TRAFFIC_TAGGED is one of:
 *     TAGGED_BYTES   the next bytes of a message that is sent ahead. The frames of one message
 *                    follow each other, and all have its tag and signature. Up to 40 bytes are in
 *                    the header; else ext.bytes bytes follow it, and ext.count is the call's count.
 *     TAGGED_ASK     the question of a send: its number among the questions, and its count
 *     TAGGED_GRANT   the number of a question whose message may now be sent
 *     TAGGED_CREDIT  the number of bytes that the receiver has freed
 * `message` is the tag. `call` is the kind in its low 2 bits and the number of the frame above
 * them.
 */
#ifndef RING_CORE_TAGGED_H
#define RING_CORE_TAGGED_H

#include "comm.h"

/** Reads the tag of the options into the call. @param status  the result of earlier checks.
 *  @return @p status if that is an error, else RING_OK or RING_ERR_ARGUMENT. */
ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status);
/** Checks the options of a start of a prepared call, whose tag is already set. */
ring_status tagged_read_again(const call_signature *call, const ring_call *options);
/** Enters the work into its list, before the caller starts it. */
ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope);
/** Advances a work whose gate is open. @return RING_OK: its ops may run; RING_IN_PROGRESS: it waits
 *  here, and is held when it may continue. */
ring_status tagged_advance(work *w, bool *moved);
/** @return RING_ERR_TIMEOUT, with a message that names the tag and the peer. */
ring_status tagged_timed_out(const work *w);

#endif
