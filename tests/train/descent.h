/* SPDX-License-Identifier: Apache-2.0
 *
 * descent: updates of a network's flat parameters by the product's optimisers, and PyTorch's runs
 * of Adam to compare with.
 */
#ifndef TESTS_TRAIN_DESCENT_H
#define TESTS_TRAIN_DESCENT_H

#include <errors.h>
#include <optimizer.h>

#include "check.h"
#include "parsing.h"
#include "vectors.h"

/** Close with optimizer_destroy(). @param config  a whole one. */
static inline void descent_open(train_optimizer *optimizer, const char *config, size_t count)
{
    const parsed got = parse(config);
    if (got.status != RING_OK ||
        optimizer_create(optimizer, &place_host, &got.config.optimizer, count) != RING_OK)
        fail_msg("%s: %s", config, train_error());
}

/** One update of all. */
static inline void descent_step(train_optimizer *optimizer, float *params, const float *grads,
                                double rate)
{
    const optimizer_range all = {.count = optimizer->count, .params = params, .grads = grads};
    optimizer_begin(optimizer);
    optimizer_step(optimizer, &all, &rate, &(double){1.0});
}

/** Values stored by tables_of_adam() of make_vectors.py: PyTorch in float64, and the largest
 *  difference of its float32. */
typedef struct known_adam {
    double rate, drift;   /* of losses */
    const double *losses; /* a step */
    const float *moved;   /* some of each tensor, all steps together */
    const double *drifts; /* of parameters, a tensor */
} known_adam;

#define KNOWN_ADAM(name, steps) \
    { \
        vector_number(name "_adam_rate"), vector_number(name "_adam_drift"), \
            vector_doubles(name "_adam_losses", steps), vector_floats(name "_adam_moved", 0), \
            vector_doubles(name "_adam_drifts", 0) \
    }

/* So many times as far as PyTorch's float32 may ours be from float64. */
enum { DRIFT_ALLOWED = 10 };

#endif
