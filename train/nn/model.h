/* SPDX-License-Identifier: Apache-2.0
 *
 * model: a network with memory, forward and backward.
 *
 * Parameters and gradients live in memory of the caller, mostly in two flat buffers as the tensor
 * table says, and never move during a pass. Activations live in slots, one a micro-batch that is in
 * flight; all are allocated at creation, and a step allocates nothing. Passes run over ranges of
 * nodes, so that a caller may hold only some of them, or fetch and send between them.
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
    int memory;                  /* the node whose memory holds the output: itself, or in place of
                                    an earlier one's or of the MODEL_INPUT */
    bool wants_grad;             /* a gradient by its output is needed: parameters lie before it */
    bool grad_begun;             /* a node that uses it writes that gradient */
    bool adds_input_grad[OP_INPUTS_MAX]; /* a later node has written the input's gradient already */
    bool adds_grad[OP_TENSORS_MAX];      /* a later node has written the (tied) tensor's gradient */
    int segment;                         /* recomputed as one (segments.h) */
    bool ends_segment;                   /* its output is kept until backward */
    bool keeps_memory;                   /* what lies at value_at and grad_at is a slot's own */
    size_t value_at, grad_at, saved_at; /* bytes into a slot, or into the segments' shared memory */
} model_node;

/** A batch that a slot holds. */
typedef struct model_batch {
    const float *input; /* [rows, input of the model]; borrowed until its backward has ended */
    size_t rows;        /* at most max_batch */
    bool training;      /* else nothing is kept for backward, and dropout does nothing */
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
    float **params, **grads; /* [tensors.count] where each tensor lies, in the caller's memory */
    float *spare[OP_INPUTS_MAX]; /* gradients of inputs that are to be added to others */
    void *scratch;               /* of the ops, for the length of a call */
    unsigned char *shared;       /* memory that segments reuse; NULL: all is kept (segments.h) */
    int interval;                /* 0: all is kept */
    size_t shared_bytes, slot_bytes, spare_bytes[OP_INPUTS_MAX], scratch_bytes; /* allocated here */
} train_model;

/** Makes the network of @p spec with @p slots slots of batches of up to @p max_batch samples.
 *  Free with model_destroy() whatever the result.
 *  @return RING_OK; RING_ERR_CONFIG, which names the node that does not fit; RING_ERR_MEMORY. */
ring_status model_create(train_model *model, const model_spec *spec, size_t max_batch, int slots);
void model_destroy(train_model *model);

/** Both halves of it; before the second, model_memory_bytes() is what that will take. */
ring_status model_measure(train_model *model, const model_spec *spec, size_t max_batch, int slots);
ring_status model_allocate(train_model *model);

/** The same without memory: what each node is, and the table of tensors. */
ring_status model_plan(train_model *model, const model_spec *spec);

/** Checks a network without memory for it: as model_create().
 *  @param[out] failed  the node that does not fit; 0 if it is none of them alone. */
ring_status model_check(const model_spec *spec, int *failed);

/** @return elements of all tensors, tied ones once. */
size_t model_parameters(const train_model *model);

/** Places all tensors: @p params and @p grads have model->tensors.elements elements each, at the
 *  offsets of the table. */
void model_bind(train_model *model, float *params, float *grads);

/** Places one tensor (a tied one apart from its original). @param param, grad  [its count]. */
void model_place(train_model *model, int tensor, float *param, float *grad);

/** @return bytes of activations, their gradients, and what layers keep for backward. */
size_t model_activation_bytes(const train_model *model);

/** @return bytes of all memory of the network: activations, and what passes work in. */
size_t model_memory_bytes(const train_model *model);

/** Fills the parameters as PyTorch does after torch.manual_seed(seed), node after node, tensor
 *  after tensor: uniform ones bit for bit, normal ones to their last digits. Tensors at NULL
 *  are drawn, too. */
void model_init(train_model *model, uint64_t seed);

/** Puts a batch into a slot. @return RING_OK, or RING_ERR_MEMORY or RING_ERR_INTERNAL where the
 *  maths library cannot make ready for this number of rows. */
ring_status model_load(train_model *model, int slot, const model_batch *batch);

/** Runs nodes @p first to below @p end on the slot's batch. */
void model_forward(train_model *model, int slot, int first, int end);

/** Runs the nodes from @p end - 1 down to @p first, from the gradient by the output of the last.
 * Where segments share memory, theirs must be the one whose forward ran last.
 *  @param accumulate  add to the parameters' gradients instead of replacing them. */
void model_backward(train_model *model, int slot, int first, int end, bool accumulate);

/** @return the output of @p node in the slot, [rows, its shape]; of MODEL_INPUT the batch's
 *  input. */
float *model_value(const train_model *model, int slot, int node);

/** @return the gradient of the loss by that output; the caller fills that of the last node. */
float *model_value_grad(const train_model *model, int slot, int node);

/** @return model_value() of the last node. */
const float *model_output(const train_model *model, int slot);

#endif
