/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_lines: reports a pipeline to the user: at the start how layers and ranks are divided, at
 * the end how long ranks were idle. Prints nothing without a pipeline.
 */
#ifndef TRAIN_PIPELINE_LINES_H
#define TRAIN_PIPELINE_LINES_H

#include "report.h"
#include "train_engine.h"

/** Collective. @return RING_OK, or an error of libring. */
ring_status pipeline_lines_start(train_report *report, const train_engine *engine);
ring_status pipeline_lines_end(train_report *report, const train_engine *engine);

#endif
