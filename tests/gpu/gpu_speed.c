/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that kernels move per second, and their share of the rate of the device's copy: folds and
 * copies as libring asks for them, other kernels with a block for each tile, norms with as many
 * blocks as run at once. Usage: gpu_speed BYTES ROUNDS [copy] */
#include "cuda_device.h"
#include "cuda_images.h"
#include "gpu_test.h"
#include "kernel_args.h"

#include <math.h>
#include <time.h>

enum { ARRAYS = 9, BATCHES = 5 };

static cuda_table cu;
static cuda_device *gpu;
static size_t bytes, count; /* of an array; of float32 in it */
static int rounds;
static char *at[ARRAYS];
static CUstream stream;
static double copied; /* bytes a second, read and written */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* @return the least seconds of one @p work(arg), of BATCHES of `rounds` each. */
static double seconds_of(void (*work)(const void *), const void *arg)
{
    double least = INFINITY;
    for (int batch = -1; batch < BATCHES; batch++) { /* -1: to warm up */
        const double start = now();
        for (int i = 0; i < rounds; i++)
            work(arg);
        OK(cu.context_synchronize());
        const double each = (now() - start) / rounds;
        least = batch >= 0 && each < least ? each : least;
    }
    return least;
}

/* @param moved  bytes read and written. */
static void tell(const char *name, double moved, double seconds)
{
    char text[80];
    snprintf(text, sizeof text, "%s, bytes moved", name);
    gpu_row(text, moved / seconds / 1e9, "GB/s");
    snprintf(text, sizeof text, "%s, share of the device copy", name);
    gpu_row(text, moved / seconds / copied, "");
}

/* ---- The device's copy, folds -------------------------------------------------------------- */

static void copy(const void *arg)
{
    OK(cu.copy_async((uintptr_t)at[0], (uintptr_t)at[1], bytes, stream));
}

typedef struct fold_case {
    const char *name;
    ring_dtype dtype;
    int ins;
} fold_case;

static void fold(const void *arg)
{
    const fold_case *f = arg;
    const accelerator *by = &gpu->base;
    kernel_operand ins[ARRAYS] = {0};
    const kernel_operand out = {.data = at[0], .on_device = true};
    for (int k = 0; k < f->ins; k++)
        ins[k] = (kernel_operand){.data = at[k + 1], .on_device = true};
    if (by->fold(by, &out, 1, ins, f->ins, bytes / ring_dtype_size(f->dtype), f->dtype, RING_SUM, 0,
                 NULL) != RING_OK) {
        fprintf(stderr, "%s\n", fail_text());
        exit(1);
    }
}

static void measure_folds(void)
{
    static const fold_case folds[] = {{"copy of float32 by a kernel", RING_FLOAT32, 1},
                                      {"fold of 2 float32", RING_FLOAT32, 2},
                                      {"fold of 2 bfloat16", RING_BFLOAT16, 2},
                                      {"fold of 2 float16", RING_FLOAT16, 2},
                                      {"fold of 2 int32", RING_INT32, 2},
                                      {"fold of 4 float32", RING_FLOAT32, 4},
                                      {"fold of 8 float32", RING_FLOAT32, 8}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        tell(folds[i].name, (double)bytes * (folds[i].ins + 1), seconds_of(fold, &folds[i]));
}

/* ---- Other kernels -------------------------------------------------------------------------- */

typedef struct kernel {
    CUfunction function;
    unsigned blocks;
    const void *args;
} kernel;

static void launch(const void *arg)
{
    const kernel *k = arg;
    void *parameters[] = {(void *)(uintptr_t)k->args};
    OK(cu.launch(k->function, k->blocks, 1, 1, CUDA_BLOCK, 1, 1, 0, stream, parameters, NULL));
}

static unsigned resident_blocks(CUfunction function)
{
    int processors, resident;
    OK(cu.device_get_attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->device));
    OK(cu.occupancy(&resident, function, CUDA_BLOCK, 0));
    return (unsigned)(processors * resident);
}

/* @param moved  in arrays of float32.
 * @param group  elements that a thread takes; 0: the blocks stay, as many as run at once. */
static void measure(const char *source, const char *name, const char *title, double moved,
                    unsigned group, const void *args)
{
    CUmodule module;
    kernel k = {.args = args};
    OK(cu.module_load(&module, cuda_image(source)));
    OK(cu.module_get_function(&k.function, module, name));
    k.blocks = group != 0 ? (unsigned)cuda_tiles(count, group, CUDA_BLOCK)
                          : resident_blocks(k.function);
    tell(title, (double)bytes * moved, seconds_of(launch, &k));
    OK(cu.module_unload(module));
}

static void measure_casts(void)
{
    const cuda_cast_args args = {.src = at[1], .dst = at[0], .count = count};
    measure("cast", "f32_to_bf16", "cast of float32 to bfloat16", 1.5, CAST_GROUP, &args);
    measure("cast", "bf16_to_f32", "cast of bfloat16 to float32", 1.5, CAST_GROUP, &args);
    measure("cast", "f32_to_f16", "cast of float32 to float16", 1.5, CAST_GROUP, &args);
    measure("cast", "f16_to_f32", "cast of float16 to float32", 1.5, CAST_GROUP, &args);
}

static void measure_optimizers(void)
{
    const cuda_step_arrays arrays = {.p = (float *)(void *)at[0],
                                     .grad = at[1],
                                     .m = (float *)(void *)at[2],
                                     .v = (float *)(void *)at[3],
                                     .count = count};
    const cuda_sgd_args sgd = {arrays, sgd_factors_of(
                                           &(kernel_sgd){.lr = 1e-3, .scale = 1, .momentum = 0.9})};
    const cuda_adam_args adam = {
        arrays, adam_factors_of(&(kernel_adam){
                    .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .scale = 1, .step = 9})};
    const cuda_lion_args lion = {arrays, lion_factors_of(&(kernel_lion){
                                             .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .scale = 1})};
    const cuda_adagrad_args adagrad = {
        arrays,
        adagrad_factors_of(&(kernel_adagrad){.lr = 1e-2, .eps = 1e-10, .scale = 1, .step = 9})};
    measure("optimizer", "sgd_f32", "optimiser SGD", 3, CAST_GROUP, &sgd);
    measure("optimizer", "momentum_f32", "optimiser SGD with momentum", 5, CAST_GROUP, &sgd);
    measure("optimizer", "adam_f32", "optimiser Adam", 7, CAST_GROUP, &adam);
    measure("optimizer", "lion_f32", "optimiser Lion", 5, CAST_GROUP, &lion);
    measure("optimizer", "adagrad_f32", "optimiser Adagrad", 5, CAST_GROUP, &adagrad);
}

static void measure_norm(void)
{
    const cuda_squares_args squares = {.grad = at[1],
                                       .count = count,
                                       .sums = (double *)(void *)at[0]};
    const cuda_scale_args scale = {.dst = at[0], .src = at[1], .count = count, .by = 0.5};
    measure("norm", "squares_f32", "sum of squares", 1, 0, &squares);
    measure("scale", "scale_f32", "scaling of float32", 2, 16 / sizeof(float), &scale);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bytes = strtoull(argv[1], NULL, 10);
    count = bytes / sizeof(float);
    rounds = atoi(argv[2]);
    cu = cuda_functions();
    gpu_use(&cu, 0);
    if (cuda_device_open(0, "", &gpu) != RING_OK) {
        fprintf(stderr, "%s\n", fail_text());
        return 1;
    }
    stream = gpu_stream_new(&cu);
    for (int k = 0; k < ARRAYS; k++)
        at[k] = gpu_new(&cu, bytes);
    for (int k = 0; k < ARRAYS; k++) /* zeros: no step ends in NaNs */
        OK(cu.set_bytes_async((uintptr_t)at[k], 0, bytes, NULL));
    copied = 2 * (double)bytes / seconds_of(copy, NULL);
    gpu_row("device copy, bytes moved", copied / 1e9, "GB/s");
    if (argc == 3) {
        measure_folds();
        measure_casts();
        measure_optimizers();
        measure_norm();
    }
    cuda_device_close(gpu);
    return 0;
}
