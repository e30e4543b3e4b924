/* SPDX-License-Identifier: Apache-2.0
 *
 * statement: a rank's statement about a call, to all ranks of a communicator (their meaning:
 * core/call_reports.c). Each rank numbers its own, so that one that comes twice is not sent on
 * again.
 */
#ifndef RING_CONTROL_STATEMENT_H
#define RING_CONTROL_STATEMENT_H

#include "membership_state.h"

/** Gives another rank's statement to the sink of @p g. */
void statement_on_note(group *g, const control_message *note);

#endif
