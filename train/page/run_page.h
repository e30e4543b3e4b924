/* SPDX-License-Identifier: Apache-2.0
 *
 * run_page: writes an HTML page about runs, which needs no other file. The table of runs is plain
 * HTML, and the script of the page draws the charts. The page is also well-formed XML, so that
 * programs can read it.
 */
#ifndef TRAIN_RUN_PAGE_H
#define TRAIN_RUN_PAGE_H

#include <stdio.h>

#include "metrics_file.h"

/** Writes the page. Also adds the points of the charts to the facts of each run.
 *  @return RING_OK or RING_ERR_MEMORY. The caller checks whether writing to @p out failed. */
ring_status run_page_write(FILE *out, metrics_runs *runs);

#endif
