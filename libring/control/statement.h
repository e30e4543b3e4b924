/* SPDX-License-Identifier: Apache-2.0
 *
 * statement: sends a rank's statements about its calls to all ranks of a communicator; their
 * meaning is defined in core/call_reports.c. Each rank numbers its own statements, so that one that
 * arrives twice is not forwarded again.
 */
#ifndef RING_CONTROL_STATEMENT_H
#define RING_CONTROL_STATEMENT_H

#include "membership_state.h"

/** Passes another rank's statement to the sink of @p g. */
void statement_on_note(group *g, const control_message *note);

#endif
