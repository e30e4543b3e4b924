/* SPDX-License-Identifier: Apache-2.0
 *
 * tagged: implements sends and receives that are matched by tag, and receives from any source.
 *
 * Two kinds of traffic: TRAFFIC_TAGGED carries one message for each send, in call order. A short
 * message is sent ahead of its receive, with its payload. For a longer message only a question is
 * sent: may the payload follow? The receiver consumes frames as they arrive. If a receive already
 * waits for a message, the payload is written directly into its buffer; otherwise the message is
 * stored. A receive that is matched with a question answers with a grant. Both ends then give their
 * works the next message numbers of TRAFFIC_GRANTED, in the order of the grants. From then on these
 * works are an ordinary send and receive (channel.h). A receiver therefore never stores the payload
 * of a long message.
 *
 * Limits: a receiver stores at most TAGGED_WINDOW bytes that a sender has sent ahead. Its credits
 * announce the bytes that it has freed. If the window has no room for a short message, a question
 * is sent instead, so that no message blocks a later one with another tag. There are at most as
 * many questions as the sender has sends in flight.
 *
 * Order: a call takes its place when it is made, even if it waits for an event. A message is
 * matched with receives in the order of their calls, and a receive with messages in the order of
 * their arrival. The links are served round robin, starting after the link that last delivered to
 * a receive from any source.
 *
 * A frame of TRAFFIC_TAGGED is one of:
 *     TAGGED_BYTES   the next bytes of a message that is sent ahead. The frames of one message
 *                    follow each other, and all have its tag and signature. Up to 40 bytes are in
 *                    the header; else ext.bytes bytes follow it, and ext.count is the call's count.
 *     TAGGED_ASK     the question of a send: the question's number, and the count of the call
 *     TAGGED_GRANT   the number of a question whose message may now be sent
 *     TAGGED_CREDIT  the number of bytes that the receiver has freed
 * The field `message` holds the tag. The field `call` holds the kind of the frame in its low 2
 * bits, and the low bits of the frame's number in the others.
 */
#ifndef RING_CORE_TAGGED_H
#define RING_CORE_TAGGED_H

#include "comm.h"

/** Reads the tag of the options into the call. @param status  the result of earlier checks.
 *  @return @p status if that is an error, else RING_OK or RING_ERR_ARGUMENT. */
ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status);
/** Checks the options of a start of a prepared call, whose tag is already set. */
ring_status tagged_read_again(const call_signature *call, const ring_call *options);
/** Adds a send to the queue of its peer. Matches a receive with a message that has arrived, or
 *  lists it as waiting. Call this before engine_start(). @param envelope  the caller's, or NULL. */
ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope);
/** Advances a work whose gate is open. @return RING_OK if its ops may run; RING_IN_PROGRESS if it
 *  waits for a message or a grant. When that arrives, the work is held for the next turn. */
ring_status tagged_advance(work *w, bool *moved);
/** @return RING_ERR_TIMEOUT, with a message that names the tag and the peer. */
ring_status tagged_timed_out(const work *w);

#endif
