/* SPDX-License-Identifier: Apache-2.0
 * updates: begins and judges the updates of a network without the host, which states each update in
 * a record ahead of time and reads its result later. layer_args.h states what the kernels write.
 * Traffic: each sample is read and written once; records cross PCIe, an element at a time for
 * numbers of samples and consecutive elements for samples. Host references: dataset_take(),
 * optimizer_clip(). */
#include "device.h"
#include "layer_args.h"

#include <math.h>

/* Sets the numbers of the update. The losses of its micro-batches are added to 0. */
DEVICE void begin_update(const cuda_take_args &args, const unsigned char *record)
{
    const uint32_t *factors = (const uint32_t *)(record + CUDA_FACTORS_BYTES);
    uint32_t *to = (uint32_t *)(args.update + 1);
    for (uint64_t i = thread_index(); i < args.factors / sizeof *to; i += CUDA_BLOCK)
        to[i] = factors[i];
    if (thread_index() != 0)
        return;
    args.update->loss = 0;
    args.update->step = *(const uint32_t *)record;
}

KERNEL_BOUND(take, cuda_take_args, CUDA_BLOCK, 4)
{
    SHARED uint32_t sample[1];
    const uint64_t row = block_index(), nth = args.first + row;
    const unsigned char *record = args.records +
                                  args.update->count % args.record_count * args.record_bytes;
    if (thread_index() == 0) {
        const uint32_t number = ((const uint32_t *)(record + args.samples_at))[nth];
        sample[0] = number;
        args.samples[row] = number;
        args.labels[row] = args.bytes != nullptr
                               ? args.byte_labels[number]
                               : ((const uint32_t *)(record + args.labels_at))[nth];
    }
    if (row == 0 && args.begins)
        begin_update(args, record);
    block_barrier();
    float *inputs = args.inputs + row * args.features;
    const float *numbers = (const float *)(record + args.inputs_at) + nth * args.features;
    for (uint64_t i = thread_index(); i < args.features; i += CUDA_BLOCK)
        inputs[i] =
            args.bytes == nullptr
                ? numbers[i]
                : args.values[i / args.plane * 256 + args.bytes[sample[0] * args.features + i]];
}

KERNEL_BOUND(judge, cuda_judge_args, CUDA_BLOCK, 4)
{
    const double total = block_sum_of<CUDA_BLOCK>(args.sums, args.parts);
    if (thread_index() != 0)
        return;
    cuda_update *update = args.update;
    const double loss = update->loss;
    const double ratio = args.most / (sqrt(total) + 1e-6);
    const bool finite = loss - loss == 0 && total - total == 0;
    cuda_update_result *result = args.results + update->count % args.record_count;
    update->skips = update->skips || !finite;
    update->clip = args.most > 0 && ratio < 1 ? ratio : 1.0;
    result->loss = loss;
    result->squares = total;
    result->skips = update->skips;
    store_release(&result->count, ++update->count);
}
