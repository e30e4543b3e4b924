/* SPDX-License-Identifier: Apache-2.0
 *
 * table: ringperf's output: nccl-tests' header lines, columns, footer and widths, so that readers
 * of its tables can read ours; the model's prediction is one more column, the last.
 */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include "measure.h"
#include <stdio.h>

#define TABLE_RANK_LINE 160

/** Everything the footer tells. */
typedef struct perf_totals {
    double busbw; /* sum over the measurements */
    uint64_t measurements;
    perf_wrong wrong;
    bool crowded;                      /* ranks share cores */
    uint64_t comm_bytes, buffer_bytes; /* memory of rank 0 */
} perf_totals;

void table_header(FILE *out, const perf_options *options);
/** This rank's line among the devices. @param gpu  NULL: it computes on the host. */
void table_rank_line(char line[TABLE_RANK_LINE], const ring_comm_info *info, const perf_gpu *gpu);
void table_columns(FILE *out, const perf_options *options);
void table_row(FILE *out, const perf_options *options, const perf_case *c,
               const perf_result *out_of_place, const perf_result *in_place);
void table_footer(FILE *out, const perf_options *options, const perf_totals *totals);

/** @return wrong elements and guard bytes together: what nccl-tests' footer counts. */
uint64_t perf_wrong_values(const perf_totals *totals);
/** @return average bus bandwidth; and whether something was measured, and values, guards and
 *  the bandwidth are good. */
double perf_average_busbw(const perf_totals *totals);
bool perf_fast_enough(const perf_options *options, const perf_totals *totals);
bool perf_good(const perf_options *options, const perf_totals *totals);

#endif
