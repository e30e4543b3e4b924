/* SPDX-License-Identifier: Apache-2.0
 *
 * health: a small thread a communicator that beats for this rank over the control
 * connections, notices dead and silent peers, and floods the first error to everybody.
 * A live process always beats, however busy it is; a stopped or dead one does not.
 *
 * Star: every rank beats to rank 0 and rank 0 to every rank, each interval =
 * peer_timeout / 5, at most 1 s. End of file without a goodbye is a dead peer at once.
 * Rank 0 decides which of several first errors is the verdict. When rank 0 has left in
 * order, the others go on with their data links' ends of file as the only sign of loss.
 */
#ifndef RING_HEALTH_H
#define RING_HEALTH_H

#include "boot.h"

enum { HEALTH_TEXT = 500 };

typedef struct health health;

/** Starts the thread. Takes over world->control and world->cards' names (borrowed until
 *  health_stop()).
 *  @param wake  called from the thread after a verdict was set, to end sleeps. */
ring_status health_start(boot_world *world, void (*wake)(void *), void *context, health **out);

/** Says goodbye, stops the thread, frees. */
void health_stop(health *h);

/** The verdict that ended the communicator, RING_OK while it lives. One atomic load. */
ring_status health_verdict(const health *h);
/** Text of the verdict: the same on every rank; "" while alive. */
const char *health_text(const health *h);

/** Sets the verdict (the first wins) and floods it. Any thread; returns when rank 0 has sent it
 *  to all, or another rank has rank 0's answer, at most after 0.2 s: the caller may end its
 *  process then. The text should name rank, host, call and cause; it is cut to
 *  HEALTH_TEXT - 1 letters. */
void health_report(health *h, ring_status status, const char *text);

/** After a data link to @p peer broke: waits up to 0.3 s for a verdict that names the real
 *  culprit; if none comes, reports that @p peer was lost, with @p what. */
void health_suspect(health *h, int peer, const char *what);

/** @return true if @p peer has said goodbye (left in order). */
bool health_left(const health *h, int peer);

#endif
