/* SPDX-License-Identifier: Apache-2.0
 * Averages gradients while the rest of the backward pass is still computed.
 *
 *     ringrun -n 2 overlap
 *
 * A trainer keeps all gradients in one flat buffer and tells libring when each parameter's
 * gradient is final; full buckets start at once and in the same order on every rank. A thread of
 * libring moves them while the next layer is computed. Here backward leaves its core idle half of
 * the time, as if it waited for a GPU or for memory, so that the thread can use this core.
 */
#define _POSIX_C_SOURCE 200809L
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAYERS = 8, LAYER = 1 << 20 };

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "overlap: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Stands for a layer's backward pass. */
static void compute_gradient(float *grad, size_t count, int rank)
{
    const struct timespec pause = {.tv_nsec = 3000000};
    nanosleep(&pause, NULL);
    for (size_t i = 0; i < count; i++)
        grad[i] = (float)(rank + 1);
}

/* Last layer first. @return ms that backward and the reductions take. */
static double overlapped(ring_buckets *buckets, float *grads, int rank)
{
    const double began = now_ms();
    for (size_t layer = LAYERS; layer-- > 0;) {
        compute_gradient(grads + layer * LAYER, LAYER, rank);
        check(ring_buckets_ready(buckets, layer));
    }
    check(ring_buckets_wait(buckets));
    return now_ms() - began;
}

/* The same, one after the other. */
static double in_turn(ring_comm *comm, float *grads, int rank)
{
    const double began = now_ms();
    for (size_t layer = LAYERS; layer-- > 0;) {
        float *grad = grads + layer * LAYER;
        compute_gradient(grad, LAYER, rank);
        check(ring_all_reduce(grad, grad, LAYER, RING_FLOAT32, RING_AVG, comm, NULL));
    }
    return now_ms() - began;
}

int main(void)
{
    ring_comm *comm;
    ring_buckets *buckets;
    void *memory;
    size_t sizes[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        sizes[i] = LAYER;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm);
    check(ring_mem_alloc(&memory, LAYERS * LAYER * sizeof(float)));
    float *grads = memory;
    check(ring_buckets_create(&buckets, grads, sizes, LAYERS, RING_FLOAT32, RING_AVG, 0, comm));
    (void)overlapped(buckets, grads, rank); /* opens connections */
    const double apart = in_turn(comm, grads, rank);
    const double together = overlapped(buckets, grads, rank);
    if (rank == 0) {
        printf("average gradient of %d ranks: %g\n", ring_comm_size(comm), (double)grads[0]);
        printf("in turn %.1f ms, overlapped %.1f ms\n", apart, together);
    }
    ring_buckets_destroy(buckets);
    check(ring_mem_free(memory));
    ring_comm_destroy(comm);
    return 0;
}
