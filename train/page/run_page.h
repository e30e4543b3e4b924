/* SPDX-License-Identifier: Apache-2.0
 *
 * run_page: shows runs on one HTML page that needs no other file. The table is plain HTML, and the
 * script of the page draws the rest. The page is also well-formed XML, which programs can read.
 */
#ifndef TRAIN_RUN_PAGE_H
#define TRAIN_RUN_PAGE_H

#include <stdio.h>

#include "metrics_file.h"

/** Adds the points that the page draws to the facts of each run.
 *  @return RING_OK, RING_ERR_MEMORY. The caller checks @p out for errors of writing. */
ring_status run_page_write(FILE *out, metrics_runs *runs);

#endif
