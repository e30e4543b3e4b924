/* SPDX-License-Identifier: Apache-2.0
 * steps: one op of a program, as far as it goes. */
#ifndef RING_CORE_STEPS_H
#define RING_CORE_STEPS_H

#include "comm.h"

ring_status step_run(work *w, const program_op *o, bool *moved);

#endif
