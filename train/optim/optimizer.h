/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer: implements SGD, Adam, AdamW, Lion and Adagrad over flat ranges of parameters, and
 * clipping by the global norm. It keeps the states and settings; the kernels do the arithmetic.
 */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H

#include "config.h"
#include "place.h"
#include "schedule.h"
#include "tensors.h"

/** Adjacent elements of the flat buffer that belong to the same parameter group. A run begins where
 *  the run before it ends. */
typedef struct optimizer_run {
    size_t end;  /* offset after the last element */
    bool decays; /* the group has weight decay */
} optimizer_run;

enum { OPTIMIZER_STATES = 2 };

typedef struct train_optimizer {
    const nn_place *place; /* of parameters, gradients and states; borrowed */
    optimizer_config config;
    size_t count;          /* elements of each state */
    float *first, *second; /* [count] momentum, Adam's two moments or Adagrad's sum; NULL if the
                              optimiser does not need it */
    bool outside;          /* first and second belong to the caller */
    long step;             /* updates done */
    double no_decay_lr;  /* rate of the group without weight decay in the next update; below 0: the
                            same rate as the other group */
    optimizer_run *runs; /* [run_count] the end of the last one is SIZE_MAX; NULL: there is only one
                            group, which decays */
    int run_count;
} train_optimizer;

/** @return PyTorch's name of the first (0) or second (1) state of a parameter; NULL if the
 * optimiser does not have this state. */
const char *optimizer_state_name(const optimizer_config *config, int state);

/** Allocates the states of @p count parameters, with their initial values.
 *  @param place  borrowed until optimizer_destroy()
 *  @return RING_OK, RING_ERR_MEMORY, or a failure of the place. Free with optimizer_destroy()
 *  whatever the result. */
ring_status optimizer_create(train_optimizer *optimizer, const nn_place *place,
                             const optimizer_config *config, size_t count);

/** As optimizer_create() on the host, but with the caller's memory.
 *  @param states  each is [count] zeros, which must outlive the optimiser; NULL for a state that
 * the optimiser does not need */
void optimizer_create_at(train_optimizer *optimizer, const optimizer_config *config, size_t count,
                         float *states[OPTIMIZER_STATES]);
void optimizer_destroy(train_optimizer *optimizer);

/** Assigns the tensors to the groups of the configuration's param_groups. Without this call, all
 *  tensors are in one group. @param tensors  at their final offsets. @return RING_OK or
 *  RING_ERR_MEMORY. */
ring_status optimizer_group(train_optimizer *optimizer, const tensor_table *tensors);

/** A range of adjacent parameters to be updated. */
typedef struct optimizer_range {
    size_t offset; /* of the first parameter in the flat buffer of all parameters */
    size_t at;     /* index of its state in the arrays of this optimiser */
    size_t count;
    float *params;      /* [count] */
    const float *grads; /* [count] */
} optimizer_range;

/** Sets the rate of the group without weight decay, and the betas, for the next updates. */
void optimizer_set_rates(train_optimizer *optimizer, const schedule_rates *rates);

/** Begins the next update, in which optimizer_step() must process each parameter once. */
void optimizer_begin(train_optimizer *optimizer);

/** Updates the parameters and states of one range.
 *  @param lr  [1] learning rate; groups without weight decay use optimizer->no_decay_lr if it is
 * set
 *  @param scale  [1] factor of the gradients */
void optimizer_step(train_optimizer *optimizer, const optimizer_range *range, const double *lr,
                    const double *scale);

/** @return bytes of the states of @p count parameters; needs no optimiser. */
size_t optimizer_needs(const optimizer_config *config, size_t count);

/** @return bytes of the states that the optimiser has allocated itself. */
size_t optimizer_bytes(const train_optimizer *optimizer);

/** @return the factor by which gradients of norm @p norm must be multiplied so that their norm is
 * at most @p most; 1 if @p most is 0. Same as in torch.nn.utils.clip_grad_norm_(). */
double optimizer_clip(double norm, double most);

#endif
