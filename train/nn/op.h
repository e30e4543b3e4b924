/* SPDX-License-Identifier: Apache-2.0
 *
 * op: defines the contract of an operation (op) of a network, and the table of all ops. An op is a
 * table row with functions that infer the shapes of its output and parameters from its input, and
 * that compute a batch forward and backward. Each op has a file of its own (op_*.c), whose head
 * gives the shapes.
 *
 * Activations are float32, sample after sample, [batch, dims of the sample]. An op allocates
 * nothing in a step: its shape function says how much memory it needs beside its operands.
 */
#ifndef TRAIN_OP_H
#define TRAIN_OP_H

#include <stdbool.h>

#include "tensors.h"

enum { SHAPE_DIMS_MAX = 3, OP_INPUTS_MAX = 2, OP_TENSORS_MAX = 2 };

/** Shape of one sample: [features], [tokens, features], [channels, rows, columns], or [tokens]. The
 *  last one holds token numbers, which are whole and exact in a float (below 2^24). */
typedef struct op_shape {
    size_t dim[SHAPE_DIMS_MAX];
    int dims;
} op_shape;

/** The settings of one use of an op. */
typedef struct op_settings {
    size_t outputs; /* features of linear and embedding, channels of conv2d */
    size_t kernel, stride, padding;
    double probability; /* of dropping an element: of dropout, and of attention's weights */
    size_t words;       /* rows of embedding's table */
    size_t heads;       /* of attention */
    double deviation;   /* of normal initial weights, biases are 0 then; 0: as PyTorch's layer */
    bool no_bias;       /* of linear */
    bool by_tanh;       /* use gelu's approximation */
    /* Of dropout and attention that have some features of a row only (tensor_split.h): the features
     * of the whole row, and the number of the first one. row_width 0: the row is whole. */
    size_t row_width, row_first;
} op_settings;

/** Which settings an op takes, for readers of layer lists. */
enum {
    TAKES_OUTPUTS = 1,
    TAKES_WINDOW = 2,      /* kernel and padding, stride 1 unless given */
    TAKES_POOL = 4,        /* kernel and padding, stride equal to the kernel unless given */
    TAKES_PROBABILITY = 8, /* 0.5 unless given */
    TAKES_BIAS = 16,       /* may be left out */
    TAKES_DEVIATION = 32,
    TAKES_WORDS = 64,
    TAKES_HEADS = 128,
    TAKES_APPROXIMATE = 256
};

/** Initial values of a parameter. */
typedef enum op_start {
    START_UNIFORM, /* within ±1/sqrt(fan_in) */
    START_NORMAL,  /* of mean 0 and its deviation */
    START_ZEROS,
    START_ONES
} op_start;

/** A parameter of an op. */
typedef struct op_tensor {
    const char *name; /* "weight", "bias" */
    size_t shape[TENSOR_DIMS_MAX];
    int dims;
    tensor_group group;
    op_start start; /* as in PyTorch */
    size_t fan_in;  /* inputs of one output */
    double deviation;
} op_tensor;

/** One use of an op in a network: everything that does not change from batch to batch. */
typedef struct op_use {
    const struct nn_op *op;
    op_settings settings;
    op_shape in[OP_INPUTS_MAX], out;
    op_tensor tensors[OP_TENSORS_MAX];
    int tensor_count;
    size_t saved_bytes;   /* for each sample, saved by forward for backward beside activations */
    size_t scratch_bytes; /* of a call, whatever the batch */
    uint32_t number;      /* of the node in its network */
    void *plans;          /* made by prepare(), freed by release() */
} op_use;

/** Determines random numbers: they are a pure function of these and the place in the sample. */
typedef struct op_random {
    uint64_t seed;
    uint32_t step;           /* the update */
    const uint32_t *samples; /* [batch] numbers in the data set; borrowed */
} op_random;

/** One batch through one use. */
typedef struct op_run {
    const op_use *use;
    size_t batch;
    bool training;
    const float *in[OP_INPUTS_MAX];      /* [batch, use->in] */
    float *out;                          /* [batch, use->out]; may be in[0] if the op allows it */
    uint8_t *saved;                      /* [batch, use->saved_bytes] */
    void *scratch;                       /* [use->scratch_bytes] */
    const float *params[OP_TENSORS_MAX]; /* as use->tensors */
    float *grads[OP_TENSORS_MAX];
    bool add[OP_TENSORS_MAX];      /* add to the gradient instead of replacing it */
    const float *out_grad;         /* [batch, use->out], the loss's gradient with respect to out */
    float *in_grad[OP_INPUTS_MAX]; /* [batch, use->in], replaced; NULL: not needed */
    op_random random;
} op_run;

typedef void op_function(const op_run *run);

/** Backward is split in two, so that the gradients of parameters, which come first, can be sent
 *  while those of the inputs are computed. */
typedef struct op_functions {
    op_function *forward;
    op_function *params; /* backward: gradients of the parameters; NULL without parameters */
    op_function *inputs; /* backward: gradients of the inputs */
} op_functions;

typedef struct nn_op {
    const char *name;
    int inputs;
    unsigned takes;    /* TAKES_… */
    bool in_place;     /* out may be in[0], and then in_grad[0] is out_grad */
    bool is_view;      /* out has the elements of in[0] in their order */
    bool keeps_output; /* backward reads out, so it must not be overwritten */
    bool is_received;  /* the caller provides out and takes its gradient; op_received only */
    /* Before the node runs, ranks sum its operand: in[0] in forward (op_summed only), or out_grad
     * in backward (op_copied only); see tensor_split.h. */
    bool sums_input, sums_grad;

    /** Fills out, tensors, saved_bytes and scratch_bytes from settings and in.
     *  @return RING_OK, or RING_ERR_CONFIG with a text that is put after the layer's name. */
    ring_status (*shape)(op_use *use);

    op_functions fast;

    /** Prepares for batches of @p batch samples. Called before each of them, and cheap if that size
     *  is prepared already. May be NULL, like release. */
    ring_status (*prepare)(op_use *use, size_t batch);
    void (*release)(op_use *use);
} nn_op;

extern const nn_op op_linear, op_conv2d, op_max_pool2d, op_avg_pool2d, op_relu, op_tanh, op_gelu,
    op_flatten, op_dropout, op_add, op_embedding, op_position_embedding, op_layer_norm,
    op_attention, op_received, op_copied, op_summed;

/** All of them, ended by NULL. */
extern const nn_op *const nn_ops[];

/** @return the op called @p name, or NULL. */
const nn_op *op_find(const char *name);

/** @return elements of one sample. */
size_t shape_count(const op_shape *shape);

/** @return the elements of a row, which is the last dimension. */
size_t shape_width(const op_shape *shape);

/** @return the rows of a sample: its elements divided by the width. */
size_t shape_rows(const op_shape *shape);

enum { SHAPE_TEXT_MAX = 72 };

/** Writes "[3, 32, 32]". @return text. */
char *shape_text(const op_shape *shape, char text[SHAPE_TEXT_MAX]);

#endif
