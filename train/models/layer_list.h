/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_list: a network from a JSON file, which may be written as leniently as a configuration:
 *
 *     {"name": "…", "input": [1, 28, 28], "layers": [{"type": "conv2d", "channels": 6, …}, …]}
 *
 * docs/programs/ringtrain.md lists types and their keys.
 */
#ifndef TRAIN_LAYER_LIST_H
#define TRAIN_LAYER_LIST_H

#include "model_spec.h"

/** Reads a text. Free @p spec with model_spec_free() whatever the result.
 *  @param own   layers of the caller's, ended by NULL; they outlive the network, and have names
 *               that no other op has. NULL: there are none.
 *  @param name  of the file, for messages: "name:line:column: …".
 *  @return RING_OK; RING_ERR_CONFIG: not a list of layers, or its shapes do not fit. */
ring_status layer_list_parse(model_spec *spec, const nn_op *const *own, const char *name,
                             const char *text, size_t length);

/** The same from the file @p path; also RING_ERR_SYSTEM. */
ring_status layer_list_read(model_spec *spec, const nn_op *const *own, const char *path);

#endif
