/* SPDX-License-Identifier: Apache-2.0
 *
 * breakdown: splits the time of a rank's updates into parts, such as forward, backward and waiting
 * for other ranks. All reports of time are made from these sums.
 */
#ifndef TRAIN_BREAKDOWN_H
#define TRAIN_BREAKDOWN_H

typedef enum report_part {
    PART_DATA, /* copying samples into the batch */
    PART_FORWARD,
    PART_BACKWARD,
    PART_STEP,     /* norm, clipping, optimizer */
    PART_WAIT,     /* idle until a call between ranks has ended */
    PART_BUBBLE,   /* idle until a call between stages of a pipeline has ended */
    PART_TRANSFER, /* starting and driving calls that carry values, between computations */
    PART_REDUCE,   /* starting and driving calls that sum gradients */
    PART_OTHER,
    PARTS
} report_part;

/** By report_part: "data", … */
extern const char *const part_names[PARTS];

/** Pieces of the parts that gpt-neox reports separately. */
typedef enum report_detail {
    DETAIL_SEND,  /* sending activations to the next stage, or gradients to the previous one,
                     waiting included */
    DETAIL_RECV,  /* receiving them from these stages, waiting included */
    DETAIL_TIES,  /* of PART_REDUCE: gradients that stages share */
    DETAIL_NORM,  /* of PART_STEP: the norm of the gradients */
    DETAIL_CHECK, /* of PART_STEP: the check whether to skip the update */
    DETAILS
} report_detail;

/** Seconds. */
typedef struct report_times {
    double parts[PARTS]; /* they add up to the time of the updates */
    double details[DETAILS];
    double reduce_wait; /* of PART_WAIT: waiting for sums of gradients */
    double reducing;    /* while sums of gradients were in flight, computing or not */
} report_times;

void breakdown_add(report_times *sum, const report_times *more);

/** @return the sum of the parts. */
double breakdown_total(const report_times *times);

/** @param[out] tenths  tenths of a per cent, which add up to 1000; zeroes if no time was spent. */
void breakdown_tenths(const report_times *times, int tenths[PARTS]);

/** @return how much of the reduction of gradients was hidden: the share of its time in which this
 *  rank neither waited for the reduction nor drove it, 0 to 1; -1 if nothing was reduced. */
double breakdown_overlap(const report_times *times);

#endif
