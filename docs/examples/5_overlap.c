/* SPDX-License-Identifier: Apache-2.0
 * Gradients averaged while the rest of backward is still computed.
 *
 *     ringrun -n 2 overlap
 *
 * A trainer keeps all gradients in one flat buffer and tells libring when each parameter's
 * gradient is final; full buckets start at once and in the same order on every rank.
 */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 4 };
static const size_t sizes[LAYERS] = {784 * 256, 256 * 64, 64 * 10, 10};

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "overlap: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

/* Stands for a layer's backward pass. */
static void compute_gradient(float *grad, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        grad[i] = (float)(rank + 1);
}

int main(void)
{
    ring_comm *comm;
    ring_buckets *buckets;
    void *memory;
    size_t total = 0, offsets[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        offsets[i] = total;
        total += sizes[i];
    }
    check(ring_comm_init_env(&comm));
    check(ring_mem_alloc(&memory, total * sizeof(float)));
    float *grads = memory;
    check(ring_buckets_create(&buckets, grads, sizes, LAYERS, RING_FLOAT32, RING_AVG, 64 << 10,
                              comm));
    for (int layer = LAYERS - 1; layer >= 0; layer--) { /* backward: last layer first */
        compute_gradient(grads + offsets[layer], sizes[layer], ring_comm_rank(comm));
        check(ring_buckets_ready(buckets, (size_t)layer));
    }
    check(ring_buckets_wait(buckets));
    if (ring_comm_rank(comm) == 0)
        printf("average gradient of %d ranks: %g\n", ring_comm_size(comm), (double)grads[0]);
    ring_buckets_destroy(buckets);
    check(ring_mem_free(memory));
    ring_comm_destroy(comm);
    return 0;
}
