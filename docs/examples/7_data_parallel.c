/* SPDX-License-Identifier: Apache-2.0
 * A complete data-parallel training loop: linear regression by gradient descent. Each rank has its
 * share of the samples; gradients are averaged over ranks by buckets, so all ranks make the same
 * step and keep equal parameters.
 *
 *     ringrun -n 4 data_parallel
 *
 * The loss is the same for 1, 2, 4 or 8 ranks, as far as it is printed: the shares are equally
 * large, so the mean of the ranks' means is the mean over all samples.
 */
#include <ring/ring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEATURES = 16, SAMPLES = 512, STEPS = 100, PRINT_EVERY = 20 };
enum { WEIGHTS, BIAS, PARAMETERS };
static const size_t counts[PARAMETERS] = {[WEIGHTS] = FEATURES, [BIAS] = 1};
enum { TOTAL = FEATURES + 1 };
static const float learning_rate = 0.2f;

typedef struct sample {
    float x[FEATURES], y;
} sample;

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "data_parallel: %s: %s\n", ring_status_string(status), ring_last_error(NULL));
    exit(1);
}

/* A number in [-1, 1) that depends on its arguments alone. */
static float number(uint32_t i, uint32_t j)
{
    uint32_t h = i * 2654435761u ^ (j + 1) * 2246822519u;
    h = (h ^ h >> 15) * 3266489917u;
    h = (h ^ h >> 13) * 668265263u;
    return (float)((h ^ h >> 16) >> 8) / 8388608.0f - 1.0f;
}

/* Sample i: y is a linear function of x, and a little noise. */
static sample draw(uint32_t i)
{
    sample s = {.y = 0.5f + 0.1f * number(i, FEATURES)};
    for (uint32_t f = 0; f < FEATURES; f++) {
        s.x[f] = number(i, f);
        s.y += s.x[f] * (float)(f + 1) / FEATURES;
    }
    return s;
}

static float error_of(const sample *s, const float *parameters)
{
    float error = parameters[FEATURES] - s->y;
    for (int f = 0; f < FEATURES; f++)
        error += parameters[f] * s->x[f];
    return error;
}

/* Forward and backward over this rank's samples. The bias' gradient is final first, and starts on
 * its way while those of the weights are computed. @return the mean squared error. */
static float step(const sample *samples, int count, const float *parameters, float *grads,
                  float *errors, ring_buckets *buckets)
{
    float loss = 0, sum = 0;
    for (int i = 0; i < count; i++) {
        errors[i] = error_of(&samples[i], parameters);
        loss += errors[i] * errors[i] / (float)count;
        sum += 2 * errors[i] / (float)count;
    }
    grads[FEATURES] = sum;
    check(ring_buckets_ready(buckets, BIAS));
    for (int f = 0; f < FEATURES; f++) {
        grads[f] = 0;
        for (int i = 0; i < count; i++)
            grads[f] += 2 * errors[i] * samples[i].x[f] / (float)count;
    }
    check(ring_buckets_ready(buckets, WEIGHTS));
    check(ring_buckets_wait(buckets));
    return loss;
}

/* Bit by bit: the least and the greatest pattern among the ranks are the same. */
static int equal_on_all_ranks(const float *parameters, ring_comm *comm)
{
    uint32_t least[TOTAL], greatest[TOTAL];
    int equal = 1;
    check(ring_all_reduce(parameters, least, TOTAL, RING_UINT32, RING_MIN, comm, NULL));
    check(ring_all_reduce(parameters, greatest, TOTAL, RING_UINT32, RING_MAX, comm, NULL));
    for (int i = 0; i < TOTAL; i++)
        equal = equal && least[i] == greatest[i];
    return equal;
}

int main(void)
{
    ring_comm *comm;
    ring_buckets *buckets;
    void *memory;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    const int count = SAMPLES / ranks;
    sample *samples = malloc((size_t)count * sizeof *samples);
    float *errors = malloc((size_t)count * sizeof *errors);
    if (SAMPLES % ranks != 0 || samples == NULL || errors == NULL) {
        fprintf(stderr, "data_parallel: %d samples for %d ranks\n", SAMPLES, ranks);
        return 1;
    }
    for (int i = 0; i < count; i++)
        samples[i] = draw((uint32_t)(i * ranks + rank));

    float parameters[TOTAL] = {0};
    for (uint32_t i = 0; rank == 0 && i < TOTAL; i++)
        parameters[i] = number(12345, i);
    check(ring_broadcast(parameters, parameters, TOTAL, RING_FLOAT32, 0, comm, NULL));

    check(ring_mem_alloc(&memory, TOTAL * sizeof(float)));
    float *grads = memory;
    check(ring_buckets_create(&buckets, grads, counts, PARAMETERS, RING_FLOAT32, RING_AVG,
                              sizeof(float), comm)); /* a bucket for each; real ones are larger */
    for (int s = 0; s <= STEPS; s++) {
        float loss = step(samples, count, parameters, grads, errors, buckets);
        for (int i = 0; i < TOTAL; i++)
            parameters[i] -= learning_rate * grads[i];
        if (s % PRINT_EVERY != 0)
            continue;
        check(ring_all_reduce(&loss, &loss, 1, RING_FLOAT32, RING_AVG, comm, NULL));
        if (rank == 0)
            printf("step %3d  loss %.3f\n", s, (double)loss);
    }
    const int equal = equal_on_all_ranks(parameters, comm);
    if (rank == 0)
        printf("parameters of %d ranks are %s\n", ranks, equal ? "equal" : "different");
    ring_buckets_destroy(buckets);
    check(ring_mem_free(memory));
    free(errors);
    free(samples);
    ring_comm_destroy(comm);
    return equal ? 0 : 1;
}
