/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_lines: reports a pipeline to the user. At the start it prints how layers and ranks are
 * divided, and at the end how long ranks were idle. Without a pipeline it prints nothing.
 */
#ifndef TRAIN_PIPELINE_LINES_H
#define TRAIN_PIPELINE_LINES_H

#include "report.h"
#include "train_engine.h"

/** Collective: print the lines at the start and at the end of a run. @return RING_OK, or an error
 * of libring. */
ring_status pipeline_lines_start(train_report *report, const train_engine *engine);
ring_status pipeline_lines_end(train_report *report, const train_engine *engine);

#endif
