/* SPDX-License-Identifier: Apache-2.0
 *
 * gpt: builds GPT-2's network (Radford et al., 2019) in any size, with the initial values and the
 * parameter names of nanoGPT, such as "transformer.h.0.attn.c_attn.weight". The input is [tokens]
 * token numbers. The output is [tokens, words]: for each token, the score of each word as the next
 * word.
 */
#ifndef TRAIN_GPT_H
#define TRAIN_GPT_H

#include "model_spec.h"

typedef struct gpt_sizes {
    size_t layers, heads, width; /* width: features of a token, a multiple of heads */
    size_t tokens, words;        /* tokens of a sample; words of the vocabulary */
    double dropout;           /* after the embeddings and before each residual sum; 0: no dropout */
    double attention_dropout; /* dropout of the attention's weights */
    bool by_tanh;             /* use GELU's approximation, as GPT-2 does */
    bool tied;                /* the output layer's weight is the table of words */
} gpt_sizes;

/** 4 layers, 4 heads, 128 wide, on 64 bytes of text, without dropout. */
extern const gpt_sizes gpt_small;

/** @return the number of nodes of the network. */
size_t gpt_layers(const gpt_sizes *sizes);

/** Builds the network. @p name may be spec->name. Free @p spec with model_spec_free() whatever
 *  the result. @return RING_OK or RING_ERR_MEMORY. Shapes are not checked here. */
ring_status model_build_gpt(model_spec *spec, const char *name, const gpt_sizes *sizes);

#endif
