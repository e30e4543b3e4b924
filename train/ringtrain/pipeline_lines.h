/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_lines: what a user reads of a pipeline: how layers and ranks are divided at the start,
 * how long ranks were idle at the end. Nothing without a pipeline.
 */
#ifndef TRAIN_PIPELINE_LINES_H
#define TRAIN_PIPELINE_LINES_H

#include "report.h"
#include "train_engine.h"

/** Collective. @return RING_OK, or that of libring. */
ring_status pipeline_lines_start(train_report *report, const train_engine *engine);
ring_status pipeline_lines_end(train_report *report, const train_engine *engine);

#endif
