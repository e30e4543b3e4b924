/* SPDX-License-Identifier: Apache-2.0
 *
 * Every type and operation of a fold at sizes up to many, as libring asks for it, against the
 * host's bits. Arrays end where their allocations do; outputs are poisoned. Usage: gpu_sizes
 * ELEMENTS [PART PARTS]: of the types, each PARTS-th from PART (0) on */
#include "cuda_device.h"
#include "gpu_test.h"
#include "kernels/kernel_oracle.h"

#include <unistd.h>

enum { INS = 2 };

static const size_t counts[] = {1, 3, 17, 255, 4097, 65537, 1048577, 16777221};

static cuda_table cu;
static const accelerator *by;
static char *ins[INS], *expected, *got;

static ring_status fold_there(char *const *there, char *out, size_t count, ring_dtype dtype,
                              ring_op op)
{
    const kernel_operand to = {.data = out, .on_device = true};
    const kernel_operand from[] = {{.data = there[0], .on_device = true},
                                   {.data = there[1], .on_device = true}};
    ticket over;
    RING_TRY(by->fold(by, &to, 1, from, INS, count, dtype, op, op == RING_AVG ? INS : 0, &over));
    by->settle(by);
    return ticket_status(&over);
}

static bool differs(char *const *there, size_t count, ring_dtype dtype, ring_op op)
{
    const size_t bytes = count * ring_dtype_size(dtype);
    const kernel_operand from[] = {{.data = ins[0]}, {.data = ins[1]}};
    char *out = gpu_new(&cu, bytes);
    kernel_fold(&(kernel_operand){.data = expected}, 1, from, INS, count, dtype, op,
                op == RING_AVG ? INS : 0);
    if (fold_there(there, out, count, dtype, op) != RING_OK) {
        fprintf(stderr, "%s\n", fail_text());
        exit(1);
    }
    OK(cu.copy((uintptr_t)got, (uintptr_t)out, bytes));
    gpu_free(&cu, out);
    return memcmp(got, expected, bytes) != 0;
}

/* @return folds that were wrong. */
static int check(size_t count, ring_dtype dtype)
{
    const size_t bytes = count * ring_dtype_size(dtype);
    char *there[INS];
    int wrong = 0;
    for (int k = 0; k < INS; k++) {
        there[k] = gpu_new(&cu, bytes);
        OK(cu.copy((uintptr_t)there[k], (uintptr_t)ins[k], bytes));
    }
    for (ring_op op = 0; op < RING_OP_COUNT; op++)
        if (ring_op_serves(op, dtype) && differs(there, count, dtype, op)) {
            fprintf(stderr, "type %d, operation %d, %zu elements: not the host's bits\n", dtype, op,
                    count);
            wrong++;
        }
    for (int k = 0; k < INS; k++)
        gpu_free(&cu, there[k]);
    return wrong;
}

int main(int argc, char **argv)
{
    const size_t most = argc >= 2 ? strtoull(argv[1], NULL, 10) : 0;
    const int part = argc == 4 ? atoi(argv[2]) : 0, parts = argc == 4 ? atoi(argv[3]) : 1;
    cuda_device *device;
    uint64_t state = 1;
    int wrong = 0;
    cu = cuda_functions();
    gpu_use(&cu, 0);
    if (cuda_device_open(0, "", &device) != RING_OK) {
        fprintf(stderr, "%s\n", fail_text());
        return 1;
    }
    by = &device->base;
    for (int k = 0; k < INS; k++)
        ins[k] = malloc(8 * most + 8);
    expected = malloc(8 * most + 8);
    got = malloc(8 * most + 8);
    for (int dtype = part; dtype < RING_DTYPE_COUNT; dtype += parts) {
        for (int k = 0; k < INS; k++)
            oracle_fill(ins[k], most, dtype, false, &state);
        for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= most; i++)
            wrong += check(counts[i], dtype);
    }
    cuda_device_close(device);
    return wrong != 0;
}
