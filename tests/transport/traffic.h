/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic for tests: frame number n has fields and bytes that follow from n, so that a
 * receiver knows what must arrive. Sending and receiving wait politely, as the engine does.
 */
#ifndef TEST_TRANSPORT_TRAFFIC_H
#define TEST_TRANSPORT_TRAFFIC_H

#include "ends.h"

/** With a payload that follows the header. */
transport_frame frame_make(uint64_t n, size_t bytes);
/** With its payload inside. */
transport_frame frame_make_short(uint64_t n, size_t bytes);
void frame_check(const transport_frame *frame, uint64_t n, size_t bytes);
void payload_fill(void *payload, uint64_t n, size_t bytes);
void payload_check(const void *payload, uint64_t n, size_t bytes);
/** @return true if the peers' memory is read and written in place over this link. */
bool can_map(const transport_link *l);
/** The same, or by put and get. */
bool can_refer(const transport_link *l);
/** A sequence that depends on n only. */
uint64_t scramble(uint64_t n);

/** Sends, waiting for room. */
void end_send(transport_link *l, const transport_frame *frame, const void *payload);
/** Waits until the oldest frame is here with its payload (NULL if it carries none). */
const transport_frame *end_receive(transport_link *l, const void **payload);
/** The same for an end whose other end is in this thread's hands as well. */
const transport_frame *ends_receive(transport_link *from, transport_link *to, const void **payload);
/** Pulls the payload of the peeked frame, waiting for it. */
void end_pull(transport_link *l, void *dst);
/** Until all that was sent is flushed. */
void end_flush(transport_link *l);
/** One turn of a wait: spins at first, then sleeps on the link until it wakes.
 *  @param turns  0 at the start of the wait. */
void end_idle(transport_link *l, bool wants_send, unsigned *turns);
/** Waits for the link to break and checks that it names @p peer, and stays broken. */
void end_expect_broken(transport_link *l, int peer, double seconds);

#endif
