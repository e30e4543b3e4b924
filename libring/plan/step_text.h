/* SPDX-License-Identifier: Apache-2.0
 * step_text: writes the steps of plans as text, for the printers and the checker's messages. */
#ifndef RING_PLAN_STEP_TEXT_H
#define RING_PLAN_STEP_TEXT_H

#include "plan.h"

enum { STEP_TEXT = 160, STEP_RANGE_TEXT = 32 };

const char *step_kind_name(plan_kind kind);
const char *step_buffer_name(plan_buffer buffer);
/** Writes the chunks as "3" or "0..3". @return out. */
const char *step_range_text(plan_loc loc, char out[STEP_RANGE_TEXT]);
/** Writes text such as "fold r0:wire[2] + src[2] -> r2:wire[2]". If it does not fit, it ends in
 *  "...". */
void step_text(const plan_cursor *at, char *out, size_t size);

#endif
