/* SPDX-License-Identifier: Apache-2.0
 * folds: an op that combines, as far as it goes. */
#ifndef RING_CORE_FOLDS_H
#define RING_CORE_FOLDS_H

#include "comm.h"

ring_status fold_run(work *w, const program_op *o, bool *moved);

#endif
