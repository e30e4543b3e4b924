/* SPDX-License-Identifier: Apache-2.0
 *
 * op: defines the interface of an operation (op) of a network, and the table of all ops. An op is a
 * struct of functions that infer the shapes of its output and parameters from its input, and that
 * compute a batch forward and backward. Each op has a file of its own (op_*.c), whose head states
 * the shapes.
 *
 * Activations are float32 [batch, dimensions of the sample]. An op allocates nothing in a pass: its
 * shape function states how much memory it needs in addition to its operands.
 */
#ifndef TRAIN_OP_H
#define TRAIN_OP_H

#include <stdbool.h>

#include "tensors.h"

enum { SHAPE_DIMS_MAX = 3, OP_INPUTS_MAX = 2, OP_TENSORS_MAX = 2 };

/** Shape of one sample: [features], [tokens, features], [channels, rows, columns], or [tokens]. A
 *  sample [tokens] contains numbers of tokens, which a float can represent exactly (below 2^24). */
typedef struct op_shape {
    size_t dim[SHAPE_DIMS_MAX];
    int dims;
} op_shape;

/** The settings of one use of an op. */
typedef struct op_settings {
    size_t outputs; /* features of linear and embedding, channels of conv2d */
    size_t kernel, stride, padding;
    double probability; /* dropout, attention: probability that an element or weight is dropped */
    size_t words;       /* embedding: rows of the table */
    size_t heads;       /* attention */
    double deviation; /* standard deviation of normal initial weights, and biases are 0; 0: initial
                         values as in PyTorch's layer */
    bool no_bias;     /* linear, summed: there is no bias */
    bool by_tanh;     /* gelu: uses the approximation */
    /* For dropout and attention on a tensor rank that has only some features of a row
     * (tensor_split.h): number of features of the whole row, and index of this rank's first one.
     * row_width 0: the rank has the whole row. */
    size_t row_width, row_first;
} op_settings;

/** Flags for the settings that an op accepts in a list of layers. */
enum {
    TAKES_OUTPUTS = 1,
    TAKES_WINDOW = 2,      /* kernel, padding and stride, which is 1 by default */
    TAKES_POOL = 4,        /* kernel, padding and stride, which is equal to the kernel by default */
    TAKES_PROBABILITY = 8, /* 0.5 by default */
    TAKES_BIAS = 16,       /* whether there is a bias */
    TAKES_DEVIATION = 32,
    TAKES_WORDS = 64,
    TAKES_HEADS = 128,
    TAKES_APPROXIMATE = 256
};

/** Initial values of a parameter. */
typedef enum op_start {
    START_UNIFORM, /* uniform within ±1/sqrt(fan_in) */
    START_NORMAL,  /* normal with mean 0 and standard deviation op_tensor.deviation */
    START_ZEROS,
    START_ONES
} op_start;

/** A parameter of an op. */
typedef struct op_tensor {
    const char *name; /* "weight", "bias" */
    size_t shape[TENSOR_DIMS_MAX];
    int dims;
    tensor_group group;
    op_start start;
    size_t fan_in; /* number of inputs that one output depends on */
    double deviation;
} op_tensor;

/** One use of an op in a network: everything that does not change from batch to batch. */
typedef struct op_use {
    const struct nn_op *op;
    op_settings settings;
    op_shape in[OP_INPUTS_MAX], out;
    op_tensor tensors[OP_TENSORS_MAX];
    int tensor_count;
    size_t saved_bytes;   /* for each sample: bytes that forward saves for backward */
    size_t scratch_bytes; /* scratch memory of a pass on the host, independent of the batch */
    uint32_t number;      /* of the node in the whole network */
    bool has_relu;        /* of linear, conv2d: a relu overwrites the output, and forward at a place
                             other than the host includes it */
    bool is_done_before;  /* of relu: the op before it has_relu */
    void *plans;          /* made by prepare(), freed by release() */
} op_use;

/** Random numbers are a pure function of these members, the node, and the place in the sample. */
typedef struct op_random {
    uint64_t seed;
    uint32_t step;           /* number of the update */
    const uint32_t *samples; /* [batch] numbers of the samples in the data set; borrowed */
} op_random;

/** Operands of one pass of a batch through one node. */
typedef struct op_run {
    const struct nn_place *place; /* that computes, and whose memory all arrays are (place.h) */
    const op_use *use;
    size_t batch; /* samples */
    bool training;
    const float *in[OP_INPUTS_MAX];      /* [batch, use->in] */
    float *out;                          /* [batch, use->out]; may be in[0] if the op allows it */
    uint8_t *saved;                      /* [batch, use->saved_bytes] */
    void *scratch;                       /* [place->scratch_bytes()] shared by all nodes */
    void *scratch_beside;                /* [place->scratch_beside()] of params(), likewise */
    const float *params[OP_TENSORS_MAX]; /* shaped as use->tensors */
    float *grads[OP_TENSORS_MAX];        /* gradients of params, with the same shapes */
    bool add[OP_TENSORS_MAX];            /* add to the gradient instead of replacing it */
    const float *out_grad;               /* [batch, use->out] gradient of the loss with respect to
                                            out */
    float *in_grad[OP_INPUTS_MAX];       /* [batch, use->in] written by inputs(); NULL: the gradient
                                            is not needed */
    op_random random;
} op_run;

typedef void op_function(const op_run *run);

/** The passes of an op. Backward has two functions: params() runs first, then inputs(). */
typedef struct op_functions {
    op_function *forward;
    op_function *params; /* backward: gradients of the parameters; NULL without parameters */
    op_function *inputs; /* backward: gradients of the inputs */
} op_functions;

/** An operation. */
typedef struct nn_op {
    const char *name;
    int inputs;        /* number of inputs */
    unsigned takes;    /* TAKES_… flags */
    bool in_place;     /* out may be in[0], and then in_grad[0] is out_grad */
    bool is_view;      /* out has the same elements as in[0], in the same order */
    bool keeps_output; /* backward reads out, so it must not be overwritten */
    bool is_received;  /* op_received only: the caller fills out and reads its gradient */
    bool sums_input;   /* op_summed only: before forward, the tensor ranks sum in[0] */
    bool sums_grad;    /* op_copied only: before backward, the tensor ranks sum out_grad */

    /** Computes out, tensors, tensor_count, saved_bytes and scratch_bytes from settings and in.
     *  @return RING_OK, or RING_ERR_CONFIG: the caller puts the layer's name before the text. */
    ring_status (*shape)(op_use *use);

    op_functions fast; /* on the host; other places have functions of their own */

    /** Prepares passes on the host for batches of @p batch samples; NULL if that is not needed. It
     * is called before each batch, and is cheap if the size is prepared already. */
    ring_status (*prepare)(op_use *use, size_t batch);
    /** Frees what prepare() has made; NULL if prepare is NULL. */
    void (*release)(op_use *use);
} nn_op;

extern const nn_op op_linear, op_conv2d, op_max_pool2d, op_avg_pool2d, op_relu, op_tanh, op_gelu,
    op_flatten, op_dropout, op_add, op_embedding, op_position_embedding, op_layer_norm,
    op_attention, op_received, op_copied, op_summed;

/** All ops that a list of layers may contain, followed by NULL. */
extern const nn_op *const nn_ops[];

/** @return the op of nn_ops with the name @p name, or NULL. */
const nn_op *op_find(const char *name);

/** @return number of elements of one sample. */
size_t shape_count(const op_shape *shape);

/** @return number of elements of a row: the last dimension. */
size_t shape_width(const op_shape *shape);

/** @return number of rows of a sample: its elements divided by the width. */
size_t shape_rows(const op_shape *shape);

enum { SHAPE_TEXT_MAX = 72 };

/** Writes the shape as text, such as "[3, 32, 32]". @return @p text. */
char *shape_text(const op_shape *shape, char text[SHAPE_TEXT_MAX]);

#endif
