/* SPDX-License-Identifier: Apache-2.0
 * One array of the GPU has all operands of a run, one after the other. Operands with one address on
 * the host have one on the GPU. */
#include "op_mirror.h"

#include <cuda_place.h>
#include <string.h>

#include "check.h"

enum { ROOM = 4 << 20, OPERANDS = 24, ALIGNED = 256 };

typedef struct mirrored {
    void *host;
    unsigned char *device;
    size_t bytes;
} mirrored;

static cuda_place gpu;
static bool is_open;
static void *room; /* [ROOM] of the GPU */
static mirrored operands[OPERANDS];
static int operand_count;
static size_t used;

/* @return the copy on the GPU of @p bytes of the host; NULL for NULL. */
static void *copy_of(const void *host, size_t bytes)
{
    for (int i = 0; i < operand_count; i++)
        if (operands[i].host == host) {
            assert_true(operands[i].bytes == bytes);
            return operands[i].device;
        }
    if (host == NULL || bytes == 0)
        return NULL;
    assert_true(operand_count < OPERANDS && used + bytes <= ROOM);
    mirrored *m = &operands[operand_count++];
    /* Every other one is aligned to its elements only. */
    const size_t shift = operand_count % 2 == 0 ? sizeof(float) : 0;
    *m = (mirrored){(void *)(uintptr_t)host, (unsigned char *)room + used + shift, bytes};
    used += (bytes + shift + ALIGNED - 1) / ALIGNED * ALIGNED;
    gpu.place.write(&gpu.place, m->device, host, bytes);
    return m->device;
}

static size_t elements_of(const op_tensor *tensor)
{
    size_t count = 1;
    for (int d = 0; d < tensor->dims; d++)
        count *= tensor->shape[d];
    return count;
}

static op_run device_run(const op_run *run)
{
    const op_use *use = run->use;
    const size_t out_bytes = run->batch * shape_count(&use->out) * sizeof(float);
    op_run device = *run;
    used = 0;
    operand_count = 0;
    device.place = &gpu.place;
    device.out = copy_of(run->out, out_bytes);
    device.out_grad = copy_of(run->out_grad, out_bytes);
    device.saved = copy_of(run->saved, run->batch * use->saved_bytes);
    device.random.samples = copy_of(run->random.samples, run->batch * sizeof(uint32_t));
    for (int k = 0; k < use->op->inputs; k++) {
        const size_t in_bytes = run->batch * shape_count(&use->in[k]) * sizeof(float);
        device.in[k] = copy_of(run->in[k], in_bytes);
        device.in_grad[k] = copy_of(run->in_grad[k], in_bytes);
    }
    for (int t = 0; t < use->tensor_count; t++) {
        const size_t bytes = elements_of(&use->tensors[t]) * sizeof(float);
        device.params[t] = copy_of(run->params[t], bytes);
        device.grads[t] = copy_of(run->grads[t], bytes);
    }
    const size_t scratch = (gpu.place.scratch_bytes(use, run->batch) + 63) / 64 * 64;
    device.scratch = (unsigned char *)room + used;
    device.scratch_beside = (unsigned char *)room + used + scratch;
    assert_true(used + scratch + gpu.place.scratch_beside(use, run->batch) <= ROOM);
    return device;
}

/* Runs a pass, and copies all operands back. */
static void run_pass(op_function *pass, const op_run *run)
{
    const op_run device = device_run(run);
    pass(&device);
    for (int i = 0; i < operand_count; i++)
        gpu.place.read(&gpu.place, operands[i].host, operands[i].device, operands[i].bytes);
    if (gpu.place.settle(&gpu.place) != RING_OK)
        fail_msg("%s", train_error());
}

static void forward(const op_run *run)
{
    run_pass(cuda_ops_functions(run->use->op)->forward, run);
}

static void params(const op_run *run)
{
    run_pass(cuda_ops_functions(run->use->op)->params, run);
}

static void inputs(const op_run *run)
{
    run_pass(cuda_ops_functions(run->use->op)->inputs, run);
}

bool op_mirror_open(void)
{
    if (cuda_place_open(&gpu, 0, false) != RING_OK ||
        gpu.place.alloc(&gpu.place, &room, ROOM, "operands") != RING_OK)
        return false;
    is_open = true;
    return true;
}

void op_mirror_close(void)
{
    gpu.place.release(&gpu.place, room);
    cuda_place_close(&gpu);
    is_open = false;
}

bool op_mirror_is_open(void)
{
    return is_open;
}

bool op_mirror_has(const nn_op *op)
{
    return !is_open || cuda_ops_functions(op) != NULL;
}

const op_functions *op_mirror(const nn_op *op)
{
    static const op_functions with_params = {forward, params, inputs},
                              without = {forward, NULL, inputs};
    if (!is_open)
        return &op->fast;
    return cuda_ops_functions(op)->params != NULL ? &with_params : &without;
}
