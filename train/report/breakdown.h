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

/** Of the parts, what gpt-neox tells apart. */
typedef enum report_detail {
    DETAIL_SEND,  /* activations to the next stage, or their gradients to the one before: started,
                     moved and waited for */
    DETAIL_RECV,  /* the same of what comes from these */
    DETAIL_TIES,  /* of PART_REDUCE: gradients that stages share */
    DETAIL_NORM,  /* of PART_STEP: the gradients' norm, */
    DETAIL_CHECK, /* and whether the update is to be left out */
    DETAILS
} report_detail;

/** Seconds. */
typedef struct report_times {
    double parts[PARTS]; /* they add up to the time of the updates */
    double details[DETAILS];
    double reduce_wait; /* of PART_WAIT, for sums of gradients */
    double reducing;    /* while such sums were under way, whatever this rank did meanwhile */
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
