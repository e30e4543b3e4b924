/* SPDX-License-Identifier: Apache-2.0
 * The place whose memory is the host's. Each request is executed at once and cannot fail. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include <kernels.h>

#include "errors.h"
#include "gemm.h"

static ring_status host_alloc(const nn_place *place, void **out, size_t bytes, const char *what)
{
    (void)place;
    return train_alloc(out, bytes, what);
}

static void host_release(const nn_place *place, void *memory)
{
    (void)place;
    free(memory);
}

static const op_functions *host_functions(const nn_op *op)
{
    return &op->fast;
}

static size_t host_scratch_bytes(const op_use *use, size_t batch)
{
    (void)batch;
    return use->scratch_bytes;
}

static size_t host_scratch_beside(const op_use *use, size_t batch)
{
    (void)use;
    (void)batch;
    return 0;
}

static void host_copy(const nn_place *place, void *to, const void *from, size_t bytes)
{
    (void)place;
    memcpy(to, from, bytes);
}

static void host_clear(const nn_place *place, void *at, size_t bytes)
{
    (void)place;
    memset(at, 0, bytes);
}

static void host_add(const nn_place *place, float *to, const float *from, size_t count)
{
    (void)place;
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void host_loss(const nn_place *place, const loss_run *run)
{
    (void)place;
    *run->sum += loss_sum(run->kind, run->outputs, run->labels, run->rows, run->classes, run->scale,
                          run->gradient);
}

static void host_sgd(const nn_place *place, float *p, const float *grad, float *buf, size_t count,
                     const kernel_sgd *args)
{
    (void)place;
    kernel_sgd_step(p, grad, buf, count, args);
}

static void host_adam(const nn_place *place, float *p, const float *grad, float *m, float *v,
                      size_t count, const kernel_adam *args)
{
    (void)place;
    kernel_adam_step(p, grad, m, v, count, args);
}

static void host_lion(const nn_place *place, float *p, const float *grad, float *m, size_t count,
                      const kernel_lion *args)
{
    (void)place;
    kernel_lion_step(p, grad, m, count, args);
}

static void host_adagrad(const nn_place *place, float *p, const float *grad, float *sum,
                         size_t count, const kernel_adagrad *args)
{
    (void)place;
    kernel_adagrad_step(p, grad, sum, count, args);
}

/* In blocks, as the norms of all versions were added up. */
static double host_sum_squares(const nn_place *place, const float *values, size_t count)
{
    enum { BLOCK = 4096 };
    double sum = 0.0;
    (void)place;
    for (size_t i = 0; i < count; i += BLOCK)
        sum += kernel_sum_squares(values + i, count - i < BLOCK ? count - i : BLOCK);
    return sum;
}

static ring_status host_settle(const nn_place *place)
{
    (void)place;
    return RING_OK;
}

const nn_place place_host = {
    .name = "cpu",
    .is_host = true,
    .alignment = 1,
    .maths = gemm_library,
    .alloc = host_alloc,
    .release = host_release,
    .functions = host_functions,
    .scratch_bytes = host_scratch_bytes,
    .scratch_beside = host_scratch_beside,
    .write = host_copy,
    .read = host_copy,
    .copy = host_copy,
    .clear = host_clear,
    .add = host_add,
    .loss = host_loss,
    .sgd = host_sgd,
    .adam = host_adam,
    .lion = host_lion,
    .adagrad = host_adagrad,
    .sum_squares = host_sum_squares,
    .settle = host_settle,
};
