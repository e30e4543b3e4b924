/* SPDX-License-Identifier: Apache-2.0
 *
 * rdma_trial: a port of an adapter that sends to itself, by the links that jobs use.
 */
#ifndef DOCTOR_RDMA_TRIAL_H
#define DOCTOR_RDMA_TRIAL_H

#include "facts.h"

/** Fills in what was measured, or `error`; takes about a second, and at most a few.
 *  @param t  `port` is set: "mlx5_0:1". */
void rdma_trial(fact_trial *t);

#endif
