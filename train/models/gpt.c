/* SPDX-License-Identifier: Apache-2.0
 * Adds the nodes of the embeddings, the blocks and the output layer. Each block computes
 * x + c_proj(attention(c_attn(ln_1(x)))), then x + c_proj(gelu(c_fc(ln_2(x)))). */
#include "gpt.h"

#include <math.h>
#include <stdio.h>

#include "errors.h"

enum { BLOCK_NODES = 10, BLOCK_DROPOUTS = 2, OTHER_NODES = 4 };

/* Standard deviation of initial weights. */
static const double deviation = 0.02;

const gpt_sizes gpt_small = {
    .layers = 4, .heads = 4, .width = 128, .tokens = 64, .words = 256, .tied = true};

size_t gpt_layers(const gpt_sizes *sizes)
{
    const size_t dropouts = sizes->dropout > 0.0 ? BLOCK_DROPOUTS * sizes->layers + 1 : 0;
    return BLOCK_NODES * sizes->layers + OTHER_NODES + dropouts;
}

/* A network that is being built. After a failure, no more nodes are added. */
typedef struct gpt_writer {
    model_spec *spec;
    const gpt_sizes *sizes;
    char prefix[24]; /* of the names of nodes */
    bool failed;
} gpt_writer;

/* Adds a node whose input is the latest node. @return the number of the new node. */
static int add(gpt_writer *writer, const nn_op *op, op_settings settings, const char *name)
{
    node_spec *node = writer->failed ? NULL : model_spec_add(writer->spec, op, &settings);
    writer->failed = node == NULL;
    if (node == NULL)
        return 0;
    snprintf(node->name, sizeof node->name, "%s%s", writer->prefix, name);
    return writer->spec->count - 1;
}

/* Adds dropout if its probability is above 0. @return the number of the latest node. */
static int add_dropout(gpt_writer *writer, const char *name)
{
    const double probability = writer->sizes->dropout;
    if (probability > 0.0)
        add(writer, &op_dropout, (op_settings){.probability = probability}, name);
    return writer->spec->count - 1;
}

/* Adds the sum of the latest node and node @p from, at which the branch began. */
static int add_residual(gpt_writer *writer, int from, const char *name)
{
    const int sum = add(writer, &op_add, (op_settings){0}, name);
    if (!writer->failed)
        writer->spec->nodes[sum].inputs[1] = from;
    return sum;
}

/* @return the settings of a projection onto the residual stream. The initial weights decrease with
 * the number of projections, of which each block has two. */
static op_settings projection(const gpt_sizes *sizes)
{
    return (op_settings){.outputs = sizes->width,
                         .deviation = deviation / sqrt(2.0 * (double)sizes->layers)};
}

static op_settings linear(size_t outputs)
{
    return (op_settings){.outputs = outputs, .deviation = deviation};
}

/* Adds the first half of a block, after node @p from. */
static int add_attention(gpt_writer *writer, int from)
{
    const gpt_sizes *sizes = writer->sizes;
    add(writer, &op_layer_norm, (op_settings){0}, "ln_1");
    add(writer, &op_linear, linear(3 * sizes->width), "attn.c_attn");
    add(writer, &op_attention,
        (op_settings){.heads = sizes->heads, .probability = sizes->attention_dropout}, "attn");
    add(writer, &op_linear, projection(sizes), "attn.c_proj");
    add_dropout(writer, "attn.dropout");
    return add_residual(writer, from, "attn.sum");
}

/* Adds the second half of a block, after node @p from. */
static int add_mlp(gpt_writer *writer, int from)
{
    const gpt_sizes *sizes = writer->sizes;
    add(writer, &op_layer_norm, (op_settings){0}, "ln_2");
    add(writer, &op_linear, linear(4 * sizes->width), "mlp.c_fc");
    add(writer, &op_gelu, (op_settings){.by_tanh = sizes->by_tanh}, "mlp.gelu");
    add(writer, &op_linear, projection(sizes), "mlp.c_proj");
    add_dropout(writer, "mlp.dropout");
    return add_residual(writer, from, "mlp.sum");
}

ring_status model_build_gpt(model_spec *spec, const char *name, const gpt_sizes *sizes)
{
    gpt_writer writer = {.spec = spec, .sizes = sizes};
    op_settings words = linear(sizes->width), output = linear(sizes->words);
    char own[sizeof spec->name];
    snprintf(own, sizeof own, "%s", name);
    model_spec_start(spec, own, (op_shape){.dim = {sizes->tokens}, .dims = 1});
    words.words = sizes->words;
    output.no_bias = true;
    const int table = add(&writer, &op_embedding, words, "transformer.wte");
    add(&writer, &op_position_embedding, (op_settings){.deviation = deviation}, "transformer.wpe");
    int stream = add_dropout(&writer, "transformer.drop");
    for (size_t layer = 0; layer < sizes->layers && !writer.failed; layer++) {
        snprintf(writer.prefix, sizeof writer.prefix, "transformer.h.%zu.", layer % NODES_MAX);
        stream = add_mlp(&writer, add_attention(&writer, stream));
    }
    writer.prefix[0] = '\0';
    add(&writer, &op_layer_norm, (op_settings){0}, "transformer.ln_f");
    const int head = add(&writer, &op_linear, output, "lm_head");
    if (writer.failed)
        return train_fail(RING_ERR_MEMORY, "no memory for the layers of %s, or there are too many",
                          own);
    spec->nodes[head].tie = sizes->tied ? table : NOT_TIED;
    return RING_OK;
}
