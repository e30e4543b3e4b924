/* SPDX-License-Identifier: Apache-2.0
 *
 * model: allocates a network's activations and runs its forward and backward passes.
 *
 * Parameters and their gradients are in the caller's memory and do not move during a pass.
 * Activations are in slots, one for each micro-batch in flight; all slots are allocated at
 * creation, and passes allocate nothing. Passes run over ranges of nodes, so that the caller may
 * hold the parameters of only some nodes at a time, or communicate between ranges.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "model_spec.h"

/** A node of the network. */
typedef struct model_node {
    op_use use;
    const op_functions *functions; /* the op's passes at the model's place */
    char name[NODE_NAME_MAX];
    int inputs[OP_INPUTS_MAX];   /* earlier nodes, or MODEL_INPUT */
    int tensors[OP_TENSORS_MAX]; /* numbers of its tensors in the table */
    int users;                   /* number of inputs of other nodes that read its output */
    int memory;                  /* the node whose memory holds the output: itself, or an earlier
                                    node or MODEL_INPUT, whose value is overwritten or viewed */
    bool wants_grad;             /* the gradient of its output is needed */
    bool grad_begun;             /* while planning: a later node writes that gradient */
    bool adds_input_grad[OP_INPUTS_MAX]; /* a later node writes the input's gradient, so this one
                                            adds to it */
    bool adds_grad[OP_TENSORS_MAX];      /* a later node writes the tied tensor's gradient, so this
                                            one adds to it */
    int segment;                         /* number of its segment (segments.h) */
    bool ends_segment;                   /* its output is kept until backward */
    bool keeps_memory;                   /* value_at and grad_at are offsets in the slot's memory;
                                            false: in the memory that all segments share */
    size_t value_at, grad_at, saved_at; /* offsets in bytes of output, its gradient, saved values */
} model_node;

/** The batch in a slot. */
typedef struct model_batch {
    const float *input; /* [rows, input of the model]; borrowed until the backward pass has ended */
    size_t rows;        /* samples, at most max_batch */
    bool training;      /* false: nothing is kept for backward, and dropout does nothing */
    op_random random;   /* for dropout */
} model_batch;

/** Activations of one batch. */
typedef struct model_slot {
    model_batch batch;
    unsigned char *memory;
} model_slot;

typedef struct train_model {
    const nn_place *place; /* of activations, and of the caller's parameters and gradients */
    char name[sizeof((model_spec *)0)->name];
    op_shape input, output;
    model_node *nodes; /* [node_count] */
    int node_count;
    int failed; /* the node that is invalid, after an error */
    tensor_table tensors;
    size_t max_batch;  /* most samples of a batch */
    model_slot *slots; /* [slot_count] */
    int slot_count;
    float **params, **grads; /* [tensors.count] addresses of the tensors in the caller's memory */
    float *spare[OP_INPUTS_MAX]; /* temporary gradients of inputs, which are then added to others */
    void *scratch, *scratch_beside; /* scratch memory of the op that is running */
    unsigned char *shared; /* memory that all segments use in turn; NULL: all activations are
                              kept (segments.h) */
    int interval;          /* nodes of a segment; 0: all activations are kept */
    size_t slot_bytes, shared_bytes;    /* bytes of a slot's memory, and of shared */
    size_t spare_bytes[OP_INPUTS_MAX];  /* bytes of each spare */
    size_t scratch_bytes, beside_bytes; /* bytes of scratch and of scratch_beside */
} train_model;

/** Makes the network of @p spec with @p slots slots for batches of up to @p max_batch samples.
 *  @return RING_OK; RING_ERR_CONFIG: a layer is invalid; RING_ERR_MEMORY. Free with model_destroy()
 *  whatever the result. */
ring_status model_create(train_model *model, const model_spec *spec, size_t max_batch, int slots);
void model_destroy(train_model *model);

/** The two steps of model_create(). After model_measure(), model_memory_bytes() returns the bytes
 * that model_allocate() will allocate. */
ring_status model_measure(train_model *model, const model_spec *spec, size_t max_batch, int slots);
ring_status model_allocate(train_model *model);

/** The first step of model_measure(): infers the nodes and the table of tensors, without memory for
 *  batches. */
ring_status model_plan(train_model *model, const model_spec *spec);

/** Checks a network without allocating its memory.
 *  @param[out] failed  the node that is invalid; 0 if the error is not about one node
 *  @return as model_create(). */
ring_status model_check(const model_spec *spec, int *failed);

/** @return number of elements of all tensors; tied ones are counted once. */
size_t model_parameters(const train_model *model);

/** Sets the addresses of all tensors by their offsets in the table.
 *  @param params, grads  [model->tensors.elements] flat buffers */
void model_bind(train_model *model, float *params, float *grads);

/** Sets the addresses of one tensor; a tied tensor and its original are set separately.
 *  @param param, grad  [count of the tensor] */
void model_place(train_model *model, int tensor, float *param, float *grad);

/** @return bytes of activations, their gradients, and values that layers save for backward. */
size_t model_activation_bytes(const train_model *model);

/** @return bytes of all memory of the network: activations, and the scratch memory of passes. */
size_t model_memory_bytes(const train_model *model);

/** Draws the initial parameters as PyTorch does after torch.manual_seed(seed), node after node and
 *  tensor after tensor. Uniform values have the same bits as PyTorch's; normal values may differ in
 *  the last digits. For a tensor whose address is NULL, only the generator advances. */
void model_init(train_model *model, uint64_t seed);

/** Puts a batch into a slot. @return RING_OK, or RING_ERR_MEMORY or RING_ERR_INTERNAL if the
 *  maths library cannot prepare for this number of rows. */
ring_status model_load(train_model *model, int slot, const model_batch *batch);

/** Runs the forward pass of nodes @p first to @p end - 1 on the slot's batch. */
void model_forward(train_model *model, int slot, int first, int end);

/** Runs the backward pass of nodes @p end - 1 down to @p first. The gradient of the output of node
 *  @p end - 1 must be complete. If segments share memory, the forward pass of the nodes' segment
 * must have run last.
 *  @param accumulate  adds to the parameters' gradients instead of replacing them. */
void model_backward(train_model *model, int slot, int first, int end, bool accumulate);

/** @return the output of @p node in the slot, [rows, its shape]; for MODEL_INPUT, the batch's
 *  input. */
float *model_value(const train_model *model, int slot, int node);

/** @return [rows, its shape] the gradient of the loss with respect to the output of @p node in the
 *  slot. The caller sets the gradient of the last node. */
float *model_value_grad(const train_model *model, int slot, int node);

/** @return the output of the last node, model_value(). */
const float *model_output(const train_model *model, int slot);

#endif
