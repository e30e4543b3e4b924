/* SPDX-License-Identifier: Apache-2.0
 * Losses, sums of squares and steps of optimisers on a GPU. Partial results are stored in the
 * workspace of the lane that adds them up. */
#include <kernels.h>
#include <math.h>
#include <string.h>

#include "cuda_place.h"

void cuda_loss(const nn_place *nn, const loss_run *run)
{
    static const cuda_train_kernel kernels[LOSS_KINDS] = {
        [LOSS_MSE] = CUDA_mean_squares, [LOSS_CROSS_ENTROPY] = CUDA_cross_entropy};
    cuda_place *place = cuda_place_of(nn);
    double *losses = (void *)(uintptr_t)place->lanes[CUDA_SUMS].workspace;
    double *total = run->sum != NULL ? run->sum : &cuda_updates_numbers(place)->loss;
    const size_t most = CUDA_LOSSES_BYTES / sizeof *losses;
    for (size_t first = 0; first < run->rows; first += most) {
        const size_t left = run->rows - first, rows = left < most ? left : most;
        cuda_loss_args args = {.outputs = run->outputs + first * run->classes,
                               .labels = run->labels + first,
                               .gradient = run->gradient + first * run->classes,
                               .losses = losses,
                               .classes = run->classes,
                               .scale = run->scale};
        cuda_sum_losses_args sum = {.losses = losses, .sum = total, .rows = rows};
        if (first > 0)
            cuda_place_join(place); /* the losses have been added up */
        cuda_place_launch(place, kernels[run->kind], rows, CUDA_LOSS_BLOCK, &args, "the loss");
        cuda_place_fork(place, CUDA_SUMS);
        cuda_place_launch(place, CUDA_sum_losses, 1, CUDA_BLOCK, &sum, "the loss");
        cuda_place_return(place);
    }
}

/* ---- Optimisers ------------------------------------------------------------------------------ */

/* @param arrays  the first member of @p args. @param factors  in @p args. */
static void launch_step(const nn_place *nn, cuda_train_kernel kernel, cuda_step_arrays *arrays,
                        const void *factors, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (arrays->count > 0 && cuda_updates_step(place, arrays, factors, bytes))
        cuda_place_launch(place, kernel, cuda_tiles(arrays->count, CAST_GROUP, CUDA_BLOCK),
                          CUDA_BLOCK, arrays, "the optimizer");
}

void cuda_sgd(const nn_place *nn, float *p, const float *grad, float *buf, size_t count,
              const kernel_sgd *args)
{
    cuda_sgd_args step = {{.p = p, .grad = grad, .m = buf, .count = count}, sgd_factors_of(args)};
    launch_step(nn, buf != NULL ? CUDA_momentum_f32 : CUDA_sgd_f32, &step.arrays, &step.by,
                sizeof step.by);
}

void cuda_adam(const nn_place *nn, float *p, const float *grad, float *m, float *v, size_t count,
               const kernel_adam *args)
{
    cuda_adam_args step = {{.p = p, .grad = grad, .m = m, .v = v, .count = count},
                           adam_factors_of(args)};
    launch_step(nn, CUDA_adam_f32, &step.arrays, &step.by, sizeof step.by);
}

void cuda_lion(const nn_place *nn, float *p, const float *grad, float *m, size_t count,
               const kernel_lion *args)
{
    cuda_lion_args step = {{.p = p, .grad = grad, .m = m, .count = count}, lion_factors_of(args)};
    launch_step(nn, CUDA_lion_f32, &step.arrays, &step.by, sizeof step.by);
}

void cuda_adagrad(const nn_place *nn, float *p, const float *grad, float *sum, size_t count,
                  const kernel_adagrad *args)
{
    cuda_adagrad_args step = {{.p = p, .grad = grad, .v = sum, .count = count},
                              adagrad_factors_of(args)};
    launch_step(nn, CUDA_adagrad_f32, &step.arrays, &step.by, sizeof step.by);
}

/* ---- Norm ------------------------------------------------------------------------------------ */

double cuda_sum_squares(const nn_place *nn, const float *values, size_t count)
{
    cuda_place *place = cuda_place_of(nn);
    double *sums = (void *)(uintptr_t)place->lane->workspace, total = 0.0;
    const uint64_t parts = cuda_norm_parts(count);
    cuda_squares_args squares = {.grad = values, .count = count, .sums = sums + 1};
    cuda_norm_args finish = {.sums = sums + 1,
                             .parts = parts,
                             .scale = 1.0,
                             .max_norm = (double)INFINITY,
                             .total = sums};
    if (count == 0)
        return 0.0;
    cuda_place_launch(place, CUDA_squares_f32, parts, CUDA_BLOCK, &squares, "the norm");
    cuda_place_launch(place, CUDA_norm_finish, 1, CUDA_BLOCK, &finish, "the norm");
    nn->read(nn, &total, sums, sizeof total);
    return nn->settle(nn) == RING_OK ? total : (double)NAN;
}
