/* SPDX-License-Identifier: Apache-2.0
 * pipe_chart: when the stages of a pipeline ran their passes, beside the schedule of equally long
 * ones. */
#ifndef TRAIN_PIPE_CHART_H
#define TRAIN_PIPE_CHART_H

#include <cjson/cJSON.h>
#include <stdio.h>

/** @param pipeline  the object "pipeline" of metrics; nothing is drawn if it is NULL or not as
 *  --metrics writes it. */
void pipe_chart_write(FILE *out, const cJSON *pipeline);

#endif
