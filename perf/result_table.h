/* SPDX-License-Identifier: Apache-2.0
 *
 * result_table: prints the output of ringperf. It has the header lines, columns, widths and footer
 * of nccl-tests, so that programs that read those tables can read these. The last column is added:
 * the cost model's prediction.
 */
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include "measure.h"
#include <stdio.h>

#define TABLE_RANK_LINE 160

/** The results of all measurements, for the footer. */
typedef struct perf_totals {
    double busbw; /* sum over all measurements */
    uint64_t measurements;
    perf_wrong wrong;
    bool crowded;                      /* ranks share cores */
    uint64_t comm_bytes, buffer_bytes; /* memory of rank 0's communicator and buffers */
} perf_totals;

/** Prints the lines before the list of ranks. */
void table_header(FILE *out, const perf_options *options);
/** Writes this rank's line in the list of ranks. @param gpu  NULL: the buffers are on the host. */
void table_rank_line(char line[TABLE_RANK_LINE], const ring_comm_info *info, const perf_gpu *gpu);
/** Prints the titles of the columns. */
void table_columns(FILE *out, const perf_options *options);
/** Prints the row of one size. */
void table_row(FILE *out, const perf_options *options, const perf_case *c,
               const perf_result *out_of_place, const perf_result *in_place);
/** Prints the lines after the rows. */
void table_footer(FILE *out, const perf_options *options, const perf_totals *totals);

/** @return the number of wrong elements plus that of changed guard bytes, for the footer. */
uint64_t perf_wrong_values(const perf_totals *totals);
/** @return the average bus bandwidth in GB/s; 0 if nothing was measured. */
double perf_average_busbw(const perf_totals *totals);
/** @return true if the average bus bandwidth is at least 0.9 of the minimum, if there is one. */
bool perf_fast_enough(const perf_options *options, const perf_totals *totals);
/** @return true if something was measured, no value is wrong, and the bandwidth is high enough. */
bool perf_good(const perf_options *options, const perf_totals *totals);

#endif
