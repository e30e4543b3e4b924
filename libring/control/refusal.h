/* SPDX-License-Identifier: Apache-2.0
 *
 * refusal: a call that a rank did not make, for its arguments: it took its number, and ranks that
 * did make it would wait for ever. Told to all over the tree's connections; what the rooms above
 * make of it is theirs.
 */
#ifndef RING_CONTROL_REFUSAL_H
#define RING_CONTROL_REFUSAL_H

#include "membership.h"

void refusal_hear(membership *m, const control_message *message);
/** The next one for @p c. @return false: it knows all. */
bool refusal_speak(membership *m, connection *c, control_message *out);

#endif
