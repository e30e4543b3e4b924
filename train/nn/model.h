/* SPDX-License-Identifier: Apache-2.0
 *
 * model: allocates a network's activations and runs its forward and backward passes.
 *
 * Parameters and gradients are in the caller's memory, mostly in two flat buffers as the tensor
 * table says, and never move during a pass. Activations are in slots, one for each micro-batch that
 * is in flight; all are allocated at creation, and a step allocates nothing. Passes run over ranges
 * of nodes, so that a caller may hold only some of them, or fetch and send between them.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "model_spec.h"

/** A node of the network and what follows from its place in it. */
typedef struct model_node {
    op_use use;
    char name[NODE_NAME_MAX];
    int inputs[OP_INPUTS_MAX];
    int tensors[OP_TENSORS_MAX]; /* in the table */
    int users;                   /* inputs of other nodes that read its output */
    int memory;                  /* the node whose memory holds the output: itself, an earlier node
                                    or MODEL_INPUT, whose value it overwrites */
    bool wants_grad;             /* the gradient of its output is needed for parameters before it */
    bool grad_begun;             /* a node that uses it writes that gradient */
    bool adds_input_grad[OP_INPUTS_MAX]; /* a later node has written the input's gradient already */
    bool adds_grad[OP_TENSORS_MAX];      /* a later node has written the (tied) tensor's gradient */
    int segment;                         /* recomputed as one (segments.h) */
    bool ends_segment;                   /* its output is kept until backward */
    bool keeps_memory;                   /* value_at and grad_at are in the slot's own memory */
    size_t value_at, grad_at, saved_at; /* bytes into a slot, or into the segments' shared memory */
} model_node;

/** A batch that a slot holds. */
typedef struct model_batch {
    const float *input; /* [rows, input of the model]; borrowed until its backward has ended */
    size_t rows;        /* at most max_batch */
    bool training;      /* false: nothing is kept for backward, and dropout does nothing */
    op_random random;   /* for dropout */
} model_batch;

typedef struct model_slot {
    model_batch batch;
    unsigned char *memory;
} model_slot;

typedef struct train_model {
    char name[sizeof((model_spec *)0)->name];
    op_shape input, output;
    model_node *nodes; /* [node_count] */
    int node_count;
    int failed; /* the node that was refused */
    tensor_table tensors;
    size_t max_batch;
    model_slot *slots; /* [slot_count] */
    int slot_count;
    float **params, **grads; /* [tensors.count] addresses of the tensors in the caller's memory */
    float *spare[OP_INPUTS_MAX]; /* gradients of inputs that are then added to others */
    void *scratch;               /* of the ops, for the length of a call */
    unsigned char *shared;       /* memory that segments reuse; NULL: all is kept (segments.h) */
    int interval;                /* nodes of a segment; 0: all is kept */
    size_t shared_bytes, slot_bytes, spare_bytes[OP_INPUTS_MAX], scratch_bytes; /* allocated here */
} train_model;

/** Makes the network of @p spec with @p slots slots of batches of up to @p max_batch samples.
 *  Free with model_destroy() whatever the result.
 *  @return RING_OK; RING_ERR_CONFIG, which names the node that does not fit; RING_ERR_MEMORY. */
ring_status model_create(train_model *model, const model_spec *spec, size_t max_batch, int slots);
void model_destroy(train_model *model);

/** The two halves of model_create(). After the first, model_memory_bytes() returns what the second
 *  will allocate. */
ring_status model_measure(train_model *model, const model_spec *spec, size_t max_batch, int slots);
ring_status model_allocate(train_model *model);

/** As model_measure(), but only fills in the nodes and the table of tensors. */
ring_status model_plan(train_model *model, const model_spec *spec);

/** Checks a network without allocating its memory. @return as model_create().
 *  @param[out] failed  the node that does not fit; 0 if no single node is at fault. */
ring_status model_check(const model_spec *spec, int *failed);

/** @return elements of all tensors; tied ones are counted once. */
size_t model_parameters(const train_model *model);

/** Places all tensors: @p params and @p grads have model->tensors.elements elements each, at the
 *  offsets of the table. */
void model_bind(train_model *model, float *params, float *grads);

/** Places one tensor (a tied one apart from its original). @param param, grad  [its count]. */
void model_place(train_model *model, int tensor, float *param, float *grad);

/** @return bytes of activations, their gradients, and what layers keep for backward. */
size_t model_activation_bytes(const train_model *model);

/** @return bytes of all memory of the network: activations, and the scratch memory of passes. */
size_t model_memory_bytes(const train_model *model);

/** Fills the parameters as PyTorch does after torch.manual_seed(seed), node after node, tensor
 *  after tensor. Uniform ones are equal bit for bit, normal ones but for their last digits. For
 *  tensors at NULL the generator advances as well. */
void model_init(train_model *model, uint64_t seed);

/** Puts a batch into a slot. @return RING_OK, or RING_ERR_MEMORY or RING_ERR_INTERNAL if the
 *  maths library cannot prepare for this number of rows. */
ring_status model_load(train_model *model, int slot, const model_batch *batch);

/** Runs nodes @p first to below @p end on the slot's batch. */
void model_forward(train_model *model, int slot, int first, int end);

/** Runs the nodes from @p end - 1 down to @p first, starting from the gradient of the last node's
 *  output. If segments share memory, the nodes' segment must be the one whose forward ran last.
 *  @param accumulate  add to the parameters' gradients instead of replacing them. */
void model_backward(train_model *model, int slot, int first, int end, bool accumulate);

/** @return the output of @p node in the slot, [rows, its shape]; for MODEL_INPUT, the batch's
 *  input. */
float *model_value(const train_model *model, int slot, int node);

/** @return the gradient of the loss with respect to that output; the caller fills in the gradient
 *  of the last node. */
float *model_value_grad(const train_model *model, int slot, int node);

/** @return model_value() of the last node. */
const float *model_output(const train_model *model, int slot);

#endif
