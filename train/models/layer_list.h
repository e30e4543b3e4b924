/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_list: reads a network from a JSON file, which is parsed as leniently as a configuration:
 *
 *     {"name": "…", "input": [1, 28, 28], "layers": [{"type": "conv2d", "channels": 6, …}, …]}
 *
 * docs/programs/ringtrain.md lists types and their keys.
 */
#ifndef TRAIN_LAYER_LIST_H
#define TRAIN_LAYER_LIST_H

#include "model_spec.h"

/** Parses a text. Free @p spec with model_spec_free() whatever the result.
 *  @param own   the caller's own layers, ended by NULL. They must outlive the network, and their
 * names must differ from those of other ops. NULL: there are none.
 *  @param name  of the file, for messages: "name:line:column: …".
 *  @return RING_OK; RING_ERR_CONFIG: not a list of layers, or its shapes do not fit. */
ring_status layer_list_parse(model_spec *spec, const nn_op *const *own, const char *name,
                             const char *text, size_t length);

/** The same from the file @p path; also RING_ERR_SYSTEM. */
ring_status layer_list_read(model_spec *spec, const nn_op *const *own, const char *path);

#endif
