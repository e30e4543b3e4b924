/* SPDX-License-Identifier: Apache-2.0
 *
 * run_page: runs as one HTML page that needs no other file and no script. It is XML, too.
 */
#ifndef TRAIN_RUN_PAGE_H
#define TRAIN_RUN_PAGE_H

#include <stdio.h>

#include "metrics_file.h"

void run_page_write(FILE *out, const metrics_runs *runs);

#endif
