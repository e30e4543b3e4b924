/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer: implements SGD, Adam, AdamW, Lion and Adagrad over one flat range of parameters, and
 * clipping by the global norm. The kernels do the arithmetic; this file keeps the states and the
 * settings.
 */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "config.h"
#include "schedule.h"
#include "tensors.h"

/** Neighbours in the flat buffer that are of one parameter group. */
typedef struct optimizer_run {
    size_t end; /* one past the last element */
    bool decays;
} optimizer_run;

enum { OPTIMIZER_STATES = 2 };

typedef struct train_optimizer {
    optimizer_config config;
    size_t count;
    float *first, *second; /* momentum, Adam's two moments, Adagrad's sum; NULL if not needed */
    bool outside;          /* they are the caller's */
    long step;             /* updates done */
    double no_decay_lr;    /* of the next update, by tensors that do not decay; below 0: as all */
    optimizer_run *runs;   /* [run_count], the last one without end; NULL: all decay */
    int run_count;
} train_optimizer;

/** @return what PyTorch calls the first (0) or second (1) state of a parameter; NULL: there is
 * none. */
const char *optimizer_state_name(const optimizer_config *config, int state);

ring_status optimizer_create(train_optimizer *optimizer, const optimizer_config *config,
                             size_t count);

/** The same with states of the caller's, zeros, which outlive it. */
void optimizer_create_at(train_optimizer *optimizer, const optimizer_config *config, size_t count,
                         float *states[OPTIMIZER_STATES]);
void optimizer_destroy(train_optimizer *optimizer);

/** Tells the groups of the configuration's param_groups apart; without this call all tensors are in
 *  one. @param tensors  at their final offsets. @return RING_OK or RING_ERR_MEMORY. */
ring_status optimizer_group(train_optimizer *optimizer, const tensor_table *tensors);

/** A range of what an optimiser updates. */
typedef struct optimizer_range {
    size_t offset; /* elements before it in the flat buffers of all parameters */
    size_t at;     /* of its states among those that this optimiser holds */
    size_t count;
    float *params;      /* [count] */
    const float *grads; /* [count] */
} optimizer_range;

/** Sets what the next update takes beside its rate: the other group's rate, and the betas. */
void optimizer_set_rates(train_optimizer *optimizer, const schedule_rates *rates);

/** Begins the next update, which takes each range once. */
void optimizer_begin(train_optimizer *optimizer);

/** The update of one range. Both numbers are read now, where they lie.
 *  @param lr  [1] of all groups, unless optimizer->no_decay_lr is set
 *  @param scale  [1] multiplies the gradients */
void optimizer_step(train_optimizer *optimizer, const optimizer_range *range, const double *lr,
                    const double *scale);

/** @return bytes of the states of @p count parameters, without anything allocated. */
size_t optimizer_needs(const optimizer_config *config, size_t count);

/** @return bytes of the states that it has allocated. */
size_t optimizer_bytes(const train_optimizer *optimizer);

/** @return the sum of squares of @p values [count] in float64. It is summed in blocks of 4096, so
 *  that ranks that hold different parts compute the same bits. */
double optimizer_sum_squares(const float *values, size_t count);

/** @return what to multiply gradients of norm @p norm with so that it is at most @p most;
 *  1 if @p most is 0. As torch.nn.utils.clip_grad_norm_. */
double optimizer_clip(double norm, double most);

#endif
