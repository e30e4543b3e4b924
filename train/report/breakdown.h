/* SPDX-License-Identifier: Apache-2.0
 *
 * breakdown: splits the time of a rank's updates into parts, such as forward, backward and waiting
 * for other ranks. All reports of time are computed from the sums of these parts.
 */
#ifndef TRAIN_BREAKDOWN_H
#define TRAIN_BREAKDOWN_H

typedef enum report_part {
    PART_DATA, /* copying samples into the batch */
    PART_FORWARD,
    PART_BACKWARD,
    PART_STEP,     /* norm, clipping, optimizer */
    PART_WAIT,     /* waiting for the end of a call between ranks */
    PART_BUBBLE,   /* waiting for the end of a call between stages of a pipeline */
    PART_TRANSFER, /* starting and progressing calls that move values, between computations */
    PART_REDUCE,   /* starting and progressing calls that sum gradients */
    PART_OTHER,    /* the rest of the time */
    PARTS
} report_part;

/** The names of the parts, by report_part: "data", … */
extern const char *const part_names[PARTS];

/** Shares of the parts that gpt-neox reports separately. */
typedef enum report_detail {
    DETAIL_SEND,  /* sending activations and gradients to neighbouring stages, and waiting for it */
    DETAIL_RECV,  /* receiving activations and gradients from these stages, and waiting for it */
    DETAIL_TIES,  /* summing the gradients of parameters that stages share */
    DETAIL_NORM,  /* part of PART_STEP: computing the norm of the gradients */
    DETAIL_CHECK, /* part of PART_STEP: checking whether to skip the update */
    DETAILS
} report_detail;

/** Times in seconds. */
typedef struct report_times {
    double parts[PARTS]; /* their sum is the time of the updates */
    double details[DETAILS];
    double reduce_wait; /* part of PART_WAIT: waiting for sums of gradients */
    double reducing;    /* time in which sums of gradients were in flight */
} report_times;

/** Adds @p more to @p sum. */
void breakdown_add(report_times *sum, const report_times *more);

/** @return the sum of the parts. */
double breakdown_total(const report_times *times);

/** Computes the shares of the parts. @param[out] tenths  in tenths of a per cent; their sum is
 * 1000, or 0 if no time was spent. */
void breakdown_tenths(const report_times *times, int tenths[PARTS]);

/** @return how much of the reduction of gradients was hidden by computation, from 0 to 1: the share
 * of its time in which this rank neither waited for it nor progressed it; -1 if nothing was
 * reduced. */
double breakdown_overlap(const report_times *times);

#endif
