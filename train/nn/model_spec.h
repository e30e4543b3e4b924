/* SPDX-License-Identifier: Apache-2.0
 *
 * model_spec: a network as a list of nodes, before there is memory for it. Each node is one use
 * of an op on the outputs of earlier nodes (or on the model's input), so an output may be used
 * several times, and chains, branches and residual connections are all the same.
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
    int number;                /* in the network as it was written, which dropout draws by */
} node_spec;

typedef struct model_spec {
    char name[64];    /* "mlp", or a file's */
    op_shape input;   /* of one sample */
    node_spec *nodes; /* [count]; the last one's output is the model's */
    int count, room;
    int interval; /* 0: all activations are kept; else those of every so-manyth node (segments.h) */
    bool any_output; /* need not be one number for each class of the data sets that are read */
} model_spec;

/** Begins an empty network. Free with model_spec_free(). */
void model_spec_start(model_spec *spec, const char *name, op_shape input);
void model_spec_free(model_spec *spec);

/** Appends a node on the output of the one before it, named by its number; @p settings may be
 *  NULL. @return the node, to be changed as wanted until the next call; NULL without memory or
 *  with more than NODES_MAX nodes. */
node_spec *model_spec_add(model_spec *spec, const nn_op *op, const op_settings *settings);

/** @return how many words a network for text knows: those of its first embedding; else 0. */
size_t model_spec_words(const model_spec *spec);

/** @return how many features (or channels) a layer puts out: the embeddings of a network for text,
 *  its hidden size; else the largest of all, 1 without any. */
size_t model_spec_width(const model_spec *spec);

/** @return a number that tells networks apart, whatever their names; quick, and no secret. */
uint64_t model_spec_hash(const model_spec *spec);

#endif
