/* SPDX-License-Identifier: Apache-2.0
 * Computes the weight of each layer, and balances the stages by dynamic programming over the number
 * of stages and the prefixes of the network. */
#include "stages.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "errors.h"
#include "model_part.h"

/* ---- Balance ------------------------------------------------------------------------------- */

/* Tables of the dynamic program. Entry [s][n] is about cutting the first n weights into s parts. */
typedef struct balance {
    int count, stages;
    double *prefix;   /* [count + 1] prefix[n] is the sum of the first n weights */
    double *largest;  /* [stages + 1][count + 1] sum of the largest part, minimized over all cuts;
                         HUGE_VAL: there is no such cut */
    double *smallest; /* [stages + 1][count + 1] sum of the smallest part, maximized over the cuts
                         without a part above the final minimum; -1: there is no such cut */
} balance;

/* @return the sum of weights @p first to @p end - 1. */
static double part(const balance *b, int first, int end)
{
    return b->prefix[end] - b->prefix[first];
}

/* @return entry [stages][end] of a table. */
static double *cell(const balance *b, double *table, int stages, int end)
{
    return &table[(size_t)stages * (size_t)(b->count + 1) + (size_t)end];
}

/* largest[s][end] = min over cut of max(largest[s - 1][cut], the part from cut to end). */
static void fill_largest(const balance *b)
{
    for (int s = 0; s <= b->stages; s++) {
        for (int end = 0; end <= b->count; end++) {
            double least = s == 0 && end == 0 ? 0.0 : HUGE_VAL;
            for (int cut = 0; cut < end && s > 0; cut++)
                least = fmin(least, fmax(*cell(b, b->largest, s - 1, cut), part(b, cut, end)));
            *cell(b, b->largest, s, end) = least;
        }
    }
}

/* smallest[s][end] = max over cut of min(smallest[s - 1][cut], the part from cut to end), where no
 * part may exceed the minimum that fill_largest() has found for the whole row. */
static void fill_smallest(const balance *b)
{
    const double most = *cell(b, b->largest, b->stages, b->count);
    for (int s = 0; s <= b->stages; s++) {
        for (int end = 0; end <= b->count; end++) {
            double greatest = s == 0 && end == 0 ? HUGE_VAL : -1.0;
            for (int cut = 0; cut < end && s > 0; cut++) {
                if (part(b, cut, end) <= most)
                    greatest = fmax(greatest,
                                    fmin(*cell(b, b->smallest, s - 1, cut), part(b, cut, end)));
            }
            *cell(b, b->smallest, s, end) = greatest;
        }
    }
}

/* Chooses the cuts from the last to the first, each as late as possible: the part after the cut
 * must keep to both optima, and the weights before it must allow it, too. */
static void choose_cuts(const balance *b, int *starts)
{
    const double most = *cell(b, b->largest, b->stages, b->count);
    const double least = *cell(b, b->smallest, b->stages, b->count);
    starts[b->stages] = b->count;
    for (int s = b->stages; s > 0; s--) {
        int cut = starts[s] - 1;
        while (part(b, cut, starts[s]) > most || part(b, cut, starts[s]) < least ||
               *cell(b, b->smallest, s - 1, cut) < least)
            cut--;
        starts[s - 1] = cut;
    }
}

ring_status stages_balance(const double *weights, int count, int stages, int *starts)
{
    balance b = {.count = count, .stages = stages};
    const size_t columns = (size_t)count + 1, cells = columns * (size_t)(stages + 1);
    RING_TRY(train_alloc((void **)&b.prefix, (columns + 2 * cells) * sizeof(double), "the stages"));
    b.largest = b.prefix + columns;
    b.smallest = b.largest + cells;
    for (int i = 0; i < count; i++)
        b.prefix[i + 1] = b.prefix[i] + weights[i];
    fill_largest(&b);
    fill_smallest(&b);
    choose_cuts(&b, starts);
    free(b.prefix);
    return RING_OK;
}

/* ---- Weights of layers --------------------------------------------------------------------- */

size_t stages_parameters(const train_model *model, int first, int end)
{
    size_t count = 0;
    for (int n = first; n < end; n++) {
        for (int t = 0; t < model->nodes[n].use.tensor_count; t++) {
            const train_tensor *tensor = &model->tensors.list[model->nodes[n].tensors[t]];
            count += tensor->tie < 0 ? tensor->count : 0;
        }
    }
    return count;
}

static ring_status weigh_types(const train_model *model, const char *pattern, double *weights)
{
    regex_t regex;
    double sum = 0.0;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        return train_fail(RING_ERR_CONFIG, "pipeline.partition type:%s is not a regular expression",
                          pattern);
    for (int n = 0; n < model->node_count; n++) {
        weights[n] = regexec(&regex, model->nodes[n].use.op->name, 0, NULL, 0) == 0;
        sum += weights[n];
    }
    regfree(&regex);
    if (sum > 0.0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "pipeline.partition type:%s: no layer of %s has a type that matches; write "
                      "linear or conv2d, for example",
                      pattern, model->name);
}

static ring_status weigh(const train_model *model, const char *method, double *weights)
{
    if (strncasecmp(method, "type:", 5) == 0)
        return weigh_types(model, method + 5, weights);
    for (int n = 0; n < model->node_count; n++)
        weights[n] = strcasecmp(method, "uniform") == 0
                         ? 1.0
                         : (double)stages_parameters(model, n, n + 1);
    return RING_OK;
}

/* ---- Cuts of a network --------------------------------------------------------------------- */

int stages_of(const int *starts, int node)
{
    int stage = 0;
    while (node >= starts[stage + 1])
        stage++;
    return stage;
}

/* Joins nodes between which the network may not be cut to blocks.
 * @param[in,out] weights  of nodes; becomes those of blocks
 * @param[out] firsts  first node of each block, and node_count
 * @return the number of blocks. */
static int join(const train_model *model, double *weights, int *firsts)
{
    int blocks = 0;
    for (int n = 0; n < model->node_count; n++) {
        const double weight = weights[n];
        if (n == 0 || model_may_cut(model, n)) {
            firsts[blocks] = n;
            weights[blocks++] = 0.0;
        }
        weights[blocks - 1] += weight;
    }
    firsts[blocks] = model->node_count;
    return blocks;
}

static ring_status cut_blocks(const train_model *model, double *weights, int *firsts, int stages,
                              int *starts)
{
    const int blocks = join(model, weights, firsts);
    if (stages > blocks)
        return train_fail(
            RING_ERR_CONFIG,
            "%s cannot be cut into %d pipeline stages, only into %d or fewer: each "
            "stage needs a layer, and only one activation can be passed between stages",
            model->name, stages, blocks);
    RING_TRY(stages_balance(weights, blocks, stages, starts));
    for (int s = 0; s <= stages; s++)
        starts[s] = firsts[starts[s]];
    return RING_OK;
}

/* Checks that each stage has parameters; tied ones are enough. */
static ring_status check_parameters(const train_model *model, int stages, const int *starts)
{
    for (int s = 0; s < stages; s++) {
        int tensors = 0;
        for (int n = starts[s]; n < starts[s + 1]; n++)
            tensors += model->nodes[n].use.tensor_count;
        if (tensors == 0)
            return train_fail(
                RING_ERR_CONFIG,
                "stage %d of the pipeline (layers %d to %d) would have no "
                "parameters; use fewer stages, or set pipeline.partition to parameters",
                s, starts[s], starts[s + 1] - 1);
    }
    return RING_OK;
}

ring_status stages_cut(const train_model *model, const char *method, int stages, int *starts)
{
    const size_t nodes = (size_t)model->node_count;
    double *weights;
    int *firsts;
    RING_TRY(train_alloc((void **)&weights, nodes * sizeof *weights + (nodes + 1) * sizeof *firsts,
                         "the stages"));
    firsts = (int *)(weights + nodes);
    ring_status status = weigh(model, method, weights);
    if (status == RING_OK)
        status = cut_blocks(model, weights, firsts, stages, starts);
    free(weights);
    return status == RING_OK ? check_parameters(model, stages, starts) : status;
}
