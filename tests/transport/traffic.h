/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic: sends and checks traffic for tests. The fields and bytes of frame number n follow from
 * n, so a receiver knows which frame must arrive. Waits sleep like the engine's.
 */
#ifndef TEST_TRANSPORT_TRAFFIC_H
#define TEST_TRANSPORT_TRAFFIC_H

#include "ends.h"

/** With a payload that follows the header. */
transport_frame frame_make(uint64_t n, size_t bytes);
/** With a payload inside the header. */
transport_frame frame_make_short(uint64_t n, size_t bytes);
void frame_check(const transport_frame *frame, uint64_t n, size_t bytes);
void payload_fill(void *payload, uint64_t n, size_t bytes);
void payload_check(const void *payload, uint64_t n, size_t bytes);
/** @return true if the peers' memory is read and written in place over this link. */
bool can_map(const transport_link *l);
/** @return true if that is so, or if put and get access it. */
bool can_refer(const transport_link *l);
/** @return a pseudo-random number that depends only on n. */
uint64_t scramble(uint64_t n);

/** Sends, waiting for room. */
void end_send(transport_link *l, const transport_frame *frame, const void *payload);
/** Waits until the oldest frame is here with its payload (NULL if it carries none). */
const transport_frame *end_receive(transport_link *l, const void **payload);
/** The same for an end whose other end this thread drives as well. */
const transport_frame *ends_receive(transport_link *from, transport_link *to, const void **payload);
/** Pulls the payload of the peeked frame, waiting for it. */
void end_pull(transport_link *l, void *dst);
/** Waits until all sent frames are flushed. */
void end_flush(transport_link *l);
/** Makes one turn of a wait: spins at first, then sleeps on the link until it wakes.
 *  @param turns  0 at the start of the wait. */
void end_idle(transport_link *l, bool wants_send, unsigned *turns);
/** Waits for the link to break and checks that it names @p peer, and stays broken. */
void end_expect_broken(transport_link *l, int peer, double seconds);

#endif
