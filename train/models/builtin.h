/* SPDX-License-Identifier: Apache-2.0
 *
 * builtin: builds the networks that can be selected by name with --model.
 */
#ifndef TRAIN_BUILTIN_H
#define TRAIN_BUILTIN_H

#include "model_spec.h"

/** A network that has a name. */
typedef struct model_builtin {
    const char *name, *help;
    ring_status (*build)(model_spec *spec);
} model_builtin;

/** All such networks; the list ends with a NULL name. */
extern const model_builtin model_builtins[];

/** Builds the network with the name @p name. Free @p spec with model_spec_free() whatever the
 * result.
 *  @return RING_OK, RING_ERR_ARGUMENT (no such name), RING_ERR_MEMORY. */
ring_status model_build(model_spec *spec, const char *name);

/** Builds linear layers with ReLU between them. @param widths  [layers + 1] numbers of inputs, of
 * the units of each hidden layer, and of outputs. */
ring_status model_build_mlp(model_spec *spec, const char *name, const size_t *widths, int layers);

#endif
