/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_list: reads a network from a JSON file, for example the file of --model. The file is parsed
 * as leniently as a configuration:
 *
 *     {"name": "…", "input": [1, 28, 28], "layers": [{"type": "conv2d", "channels": 6, …}, …]}
 *
 * docs/programs/ringtrain.md lists the types of layers and their keys.
 */
#ifndef TRAIN_LAYER_LIST_H
#define TRAIN_LAYER_LIST_H

#include "model_spec.h"

/** Parses a list of layers in memory. Free @p spec with model_spec_free() whatever the result.
 *  @param own   types of layers that the caller defines; the list ends with NULL. They must outlive
 * the network, and must not have the names of other types. NULL: the caller defines no types.
 *  @param name  name of the file, with which messages begin: "name:line:column: …".
 *  @return RING_OK; RING_ERR_CONFIG: the text is not a list of layers, or the shapes of its layers
 * do not fit; RING_ERR_MEMORY. */
ring_status layer_list_parse(model_spec *spec, const nn_op *const *own, const char *name,
                             const char *text, size_t length);

/** Reads and parses the file @p path in the same way. @return also RING_ERR_SYSTEM. */
ring_status layer_list_read(model_spec *spec, const nn_op *const *own, const char *path);

#endif
