/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spec: describes a network as a list of nodes, before memory is allocated for it. Each node
 * is one use of an op on the outputs of earlier nodes or on the model's input. Any number of nodes
 * may use the same output, so the list can express chains, branches and residual connections.
 */
#ifndef TRAIN_MODEL_SPEC_H
#define TRAIN_MODEL_SPEC_H

#include "place.h"

enum { MODEL_INPUT = -1, NOT_TIED = -1, NODE_NAME_MAX = 32, NODES_MAX = 1024 };

/** One node of the list. */
typedef struct node_spec {
    char name[NODE_NAME_MAX]; /* prefix of its tensors' names: "0", or "features.0" */
    const nn_op *op;
    op_settings settings;
    int inputs[OP_INPUTS_MAX]; /* earlier nodes, or MODEL_INPUT */
    int tie;                   /* the node whose tensors this one shares, or NOT_TIED */
    int number;                /* of the node in the whole network; masks of dropout depend on it */
} node_spec;

typedef struct model_spec {
    char name[64];    /* "mlp", or the name of a file */
    op_shape input;   /* of one sample */
    node_spec *nodes; /* [count]; the output of the last node is the model's output */
    int count, room;
    int interval; /* nodes of a segment that is recomputed (segments.h); 0: all activations are
                     kept */
    const nn_place *place; /* that computes the network; borrowed. NULL: the host */
    bool any_output; /* true: the output may have any shape; false: one number for each class */
} model_spec;

/** Begins an empty network. Free with model_spec_free(). */
void model_spec_start(model_spec *spec, const char *name, op_shape input);
void model_spec_free(model_spec *spec);

/** Appends a node whose input is the output of the node before it, and whose name is its number.
 *  @param settings  may be NULL
 *  @return the node, which the caller may change until the next call; NULL if there is no memory or
 *  the network already has NODES_MAX nodes. */
node_spec *model_spec_add(model_spec *spec, const nn_op *op, const op_settings *settings);

/** @return size of the vocabulary of a network for text, which is that of its first embedding; 0
 * for other networks. */
size_t model_spec_words(const model_spec *spec);

/** @return the hidden size: for text, the features of the first embedding; otherwise the largest
 * number of features or channels that any layer outputs, at least 1. */
size_t model_spec_width(const model_spec *spec);

/** @return a hash of the network without its names. It is not cryptographic. */
uint64_t model_spec_hash(const model_spec *spec);

#endif
