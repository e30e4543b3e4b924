/* SPDX-License-Identifier: Apache-2.0
 *
 * statement: sends a rank's statements about its calls (control_statement) to all ranks of a
 * communicator. core/call_reports.c uses them to explain why ranks wait. Each rank numbers its own
 * statements, so that a statement that arrives twice is forwarded only once.
 */
#ifndef RING_CONTROL_STATEMENT_H
#define RING_CONTROL_STATEMENT_H

#include "membership_state.h"

/** Passes another rank's statement to the sink of @p g. */
void statement_on_note(group *g, const control_message *note);

#endif
