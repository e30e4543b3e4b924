/* SPDX-License-Identifier: Apache-2.0
 *
 * breakdown: where the time of updates went on one rank.
 */
#ifndef TRAIN_BREAKDOWN_H
#define TRAIN_BREAKDOWN_H

typedef enum report_part {
    PART_DATA, /* samples into place */
    PART_FORWARD,
    PART_BACKWARD,
    PART_STEP,     /* norm, clipping, optimizer */
    PART_WAIT,     /* nothing to compute before a call between ranks has ended */
    PART_BUBBLE,   /* the same of calls between stages of a pipeline */
    PART_TRANSFER, /* starting and moving calls that carry values, between computations */
    PART_REDUCE,   /* the same of calls that sum gradients */
    PART_OTHER,
    PARTS
} report_part;

/** By report_part: "data", … */
extern const char *const part_names[PARTS];

/** Seconds. */
typedef struct report_times {
    double parts[PARTS]; /* they add up to the time of the updates */
    double reduce_wait;  /* of PART_WAIT, for sums of gradients */
    double reducing;     /* while such sums were under way, whatever this rank did meanwhile */
} report_times;

void breakdown_add(report_times *sum, const report_times *more);

/** @return the sum of the parts. */
double breakdown_total(const report_times *times);

/** @param[out] tenths  tenths of a per cent, which add up to 1000; zeroes where no time went. */
void breakdown_tenths(const report_times *times, int tenths[PARTS]);

/** @return the share of the time in which gradients were reduced that this rank neither waited
 *  for them nor moved them: 0 to 1; -1 if there was none. */
double breakdown_overlap(const report_times *times);

#endif
