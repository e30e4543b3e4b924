/* SPDX-License-Identifier: Apache-2.0
 *
 * run_page: runs as one HTML page that needs no other file. A table is there without scripts; the
 * page's own script draws the rest. Programs can read it as XML, too.
 */
#ifndef TRAIN_RUN_PAGE_H
#define TRAIN_RUN_PAGE_H

#include <stdio.h>

#include "metrics_file.h"

/** Adds to the facts of each run what the page shows of its tables.
 *  @return RING_OK, RING_ERR_MEMORY; an error of @p out is the caller's to find. */
ring_status run_page_write(FILE *out, metrics_runs *runs);

#endif
