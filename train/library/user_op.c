/* SPDX-License-Identifier: Apache-2.0
 * Translates between a network's ops (nn_op) and the caller's layers (ring_train_op): shapes and
 * parameters when a network is planned, and arguments in each pass. */
#include "user_op.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "model_spec.h"

static const user_op *user_of(const op_use *use)
{
    return (const user_op *)(const void *)use->op;
}

ring_train_shape user_shape(const op_shape *shape)
{
    ring_train_shape to = {.dims = shape->dims};
    memcpy(to.dim, shape->dim, sizeof to.dim);
    return to;
}

/* ---- Shapes -------------------------------------------------------------------------------- */

/* @return whether there are 1 to @p most dimensions, each above 0. */
static bool is_positive(const size_t *dim, int dims, int most)
{
    for (int d = 0; d < dims && d < most; d++) {
        if (dim[d] < 1)
            return false;
    }
    return dims >= 1 && dims <= most;
}

static ring_status take_param(const ring_train_param *from, op_tensor *to)
{
    if (from->name == NULL || !is_positive(from->dim, from->dims, TENSOR_DIMS_MAX) ||
        from->start < RING_TRAIN_ZEROS || from->start > RING_TRAIN_NORMAL ||
        (from->start == RING_TRAIN_UNIFORM && from->fan_in < 1))
        return train_fail(RING_ERR_CONFIG,
                          "a parameter needs a name, 1 to %d dimensions above 0, and a start as in "
                          "ring/train.h; RING_TRAIN_UNIFORM also needs fan_in",
                          TENSOR_DIMS_MAX);
    static const op_start starts[] = {[RING_TRAIN_ZEROS] = START_ZEROS,
                                      [RING_TRAIN_ONES] = START_ONES,
                                      [RING_TRAIN_UNIFORM] = START_UNIFORM,
                                      [RING_TRAIN_NORMAL] = START_NORMAL};
    *to = (op_tensor){.name = from->name,
                      .dims = from->dims,
                      .group = from->no_decay ? GROUP_NO_DECAY : GROUP_DECAY,
                      .start = starts[from->start],
                      .fan_in = from->fan_in,
                      .deviation = from->deviation};
    memcpy(to->shape, from->dim, sizeof to->shape);
    return RING_OK;
}

static ring_status shape(op_use *use)
{
    const ring_train_op *given = &user_of(use)->given;
    const ring_train_shape in = user_shape(&use->in[0]);
    ring_train_shape out = {.dims = 0};
    ring_train_param params[RING_TRAIN_OP_PARAMS] = {{.name = NULL}};
    char text[SHAPE_TEXT_MAX];
    int count = 0;
    if (given->shape(given->context, &in, &out, params, &count) != 0)
        return train_fail(RING_ERR_CONFIG, "it does not accept inputs of %s",
                          shape_text(&use->in[0], text));
    if (!is_positive(out.dim, out.dims, SHAPE_DIMS_MAX) || count < 0 ||
        count > (given->params != NULL ? OP_TENSORS_MAX : 0))
        return train_fail(RING_ERR_CONFIG,
                          "its shape() must return an output of 1 to %d dimensions above 0 and at "
                          "most %d parameters, and only a layer with params() may have parameters",
                          SHAPE_DIMS_MAX, OP_TENSORS_MAX);
    use->out.dims = out.dims;
    memcpy(use->out.dim, out.dim, sizeof out.dim);
    use->tensor_count = count;
    for (int t = 0; t < count; t++)
        RING_TRY(take_param(&params[t], &use->tensors[t]));
    return RING_OK;
}

/* ---- Passes -------------------------------------------------------------------------------- */

/* Calls a function of the caller's layer with the arguments of a pass. */
static void call(const op_run *run, void (*function)(const ring_train_pass *))
{
    const ring_train_shape in = user_shape(&run->use->in[0]), out = user_shape(&run->use->out);
    ring_train_pass pass = {.context = user_of(run->use)->given.context,
                            .rows = run->batch,
                            .in_shape = &in,
                            .out_shape = &out,
                            .in = run->in[0],
                            .out = run->out,
                            .out_grad = run->out_grad,
                            .in_grad = run->in_grad[0]};
    for (int t = 0; t < run->use->tensor_count; t++) {
        pass.params[t] = run->params[t];
        pass.grads[t] = run->grads[t];
    }
    function(&pass);
}

static void forward(const op_run *run)
{
    call(run, user_of(run->use)->given.forward);
}

/* The caller's params() always adds to gradients, so gradients that are to be replaced are first
 * set to 0. */
static void params(const op_run *run)
{
    for (int t = 0; t < run->use->tensor_count; t++) {
        const op_tensor *tensor = &run->use->tensors[t];
        size_t count = 1;
        for (int d = 0; d < tensor->dims; d++)
            count *= tensor->shape[d];
        if (!run->add[t])
            memset(run->grads[t], 0, count * sizeof(float));
    }
    call(run, user_of(run->use)->given.params);
}

static void inputs(const op_run *run)
{
    call(run, user_of(run->use)->given.inputs);
}

/* ---- The table ----------------------------------------------------------------------------- */

/* @return whether a built-in layer or one of the first @p before layers has the name. */
static bool is_taken(const user_ops *ops, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++) {
        if (strcmp(ops->list[i].name, name) == 0)
            return true;
    }
    return op_find(name) != NULL;
}

static ring_status create(user_ops *ops, size_t number, const ring_train_op *given)
{
    user_op *own = &ops->list[number];
    const size_t length = given->name != NULL ? strlen(given->name) : 0;
    if (given->size != sizeof *given || given->shape == NULL || given->forward == NULL ||
        given->inputs == NULL)
        return train_fail(RING_ERR_ARGUMENT,
                          "ops[%zu]: initialize it with RING_TRAIN_OP_INIT, and set shape, forward "
                          "and inputs",
                          number);
    if (length < 1 || length >= sizeof own->name || is_taken(ops, number, given->name))
        return train_fail(RING_ERR_ARGUMENT,
                          "ops[%zu] needs a name of 1 to %zu letters that no other layer has",
                          number, sizeof own->name - 1);
    own->given = *given;
    memcpy(own->name, given->name, length + 1);
    own->op = (nn_op){.name = own->name,
                      .inputs = 1,
                      .keeps_output = true,
                      .shape = shape,
                      .fast = {forward, params, inputs}};
    ops->rows[number] = &own->op;
    return RING_OK;
}

ring_status user_ops_create(user_ops *ops, const ring_train_op *given, size_t count)
{
    *ops = (user_ops){0};
    if (count > 0 && given == NULL)
        return train_fail(RING_ERR_ARGUMENT, "ops is NULL, but op_count is %zu", count);
    if (count > NODES_MAX)
        return train_fail(RING_ERR_ARGUMENT, "op_count is %zu, but must be at most %d", count,
                          NODES_MAX);
    RING_TRY(train_alloc((void **)&ops->list, count * sizeof *ops->list, "the caller's layers"));
    RING_TRY(
        train_alloc((void **)&ops->rows, (count + 1) * sizeof *ops->rows, "the caller's layers"));
    for (size_t i = 0; i < count; i++)
        RING_TRY(create(ops, i, &given[i]));
    return RING_OK;
}

void user_ops_free(user_ops *ops)
{
    free(ops->list);
    free(ops->rows);
    *ops = (user_ops){0};
}
