/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spec: describes a network as a list of nodes, before memory is allocated for it. Each node
 * is one use of an op on the outputs of earlier nodes (or on the model's input). An output may be
 * used several times, so chains, branches and residual connections need no cases of their own.
 */
#ifndef TRAIN_MODEL_SPEC_H
#define TRAIN_MODEL_SPEC_H

#include "op.h"

enum { MODEL_INPUT = -1, NOT_TIED = -1, NODE_NAME_MAX = 32, NODES_MAX = 1024 };

typedef struct node_spec {
    char name[NODE_NAME_MAX]; /* before the names of its tensors: "0", or "features.0" */
    const nn_op *op;
    op_settings settings;
    int inputs[OP_INPUTS_MAX]; /* earlier nodes, or MODEL_INPUT */
    int tie;                   /* the node whose tensors this one shares, or NOT_TIED */
    int number;                /* in the whole network; dropout's masks depend on it */
} node_spec;

typedef struct model_spec {
    char name[64];    /* "mlp", or a file's */
    op_shape input;   /* of one sample */
    node_spec *nodes; /* [count]; the last one's output is the model's */
    int count, room;
    int interval;    /* nodes of a segment that is recomputed (segments.h); 0: all are kept */
    bool any_output; /* the output need not have one number for each class of the data set */
} model_spec;

/** Begins an empty network. Free with model_spec_free(). */
void model_spec_start(model_spec *spec, const char *name, op_shape input);
void model_spec_free(model_spec *spec);

/** Appends a node whose input is the output of the node before it, and whose name is its number;
 *  @p settings may be NULL. @return the node, which the caller may change until the next call; NULL
 *  if memory is exhausted or there are more than NODES_MAX nodes. */
node_spec *model_spec_add(model_spec *spec, const nn_op *op, const op_settings *settings);

/** @return the vocabulary of a network for text, which is that of its first embedding; else 0. */
size_t model_spec_words(const model_spec *spec);

/** @return the hidden size: the features of the first embedding in a network for text; else the
 * most features or channels that any layer has as its output, at least 1. */
size_t model_spec_width(const model_spec *spec);

/** @return a hash of the network without its names: quick to compute, not cryptographic. */
uint64_t model_spec_hash(const model_spec *spec);

#endif
