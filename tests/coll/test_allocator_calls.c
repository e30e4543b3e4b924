/* SPDX-License-Identifier: Apache-2.0
 * Trains as PyTorch's DistributedDataParallel does, over the double of NVIDIA's driver: buffers
 * come from a caching allocator, calls are in side streams, which events order after the default
 * stream, memory is allocated and freed between calls and their ends, another thread queries
 * events, and communicators are split. Values are checked, and the double's deadline ends a call
 * that hangs. Usage: test_coll_allocator_calls TRANSPORT; the double's environment is the caller's.
 */
#include "caching_allocator.h"
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, BUCKETS = 6, BUFFERS = 700, TEMPORARIES = 12, EVENTS = 64 };
#define LIMIT ((size_t)96 << 20) /* of the allocator */

/* Elements of the buckets; with 21,674 of them a call once did not end. */
static const size_t bucket_counts[BUCKETS] = {21674, 262144, 10, 3300000, 70001, 1310720};
enum { BUCKET_MOST = 3300000 };

static const char *transport;
static cuda_table cu;

#define MAIN_STREAM NULL /* PyTorch's current stream is the legacy stream */

/* ---- A rank ------------------------------------------------------------------------------- */

typedef struct trainer {
    int rank;
    unsigned seed;
    CUcontext context;
    ring_comm *comm;
    CUstream side; /* of the communicator */
    caching_allocator memory;
    caching_block *buckets[BUCKETS], *buffers;
    float *host;                         /* [BUCKET_MOST], pinned */
    CUevent ready[EVENTS], done[EVENTS]; /* of the calls, in turn */
    _Atomic unsigned calls;
    _Atomic bool ends;
    pthread_t watchdog;
} trainer;

static void load_driver(void)
{
    cu = cuda_functions();
}

static int start_gpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    return 0;
}

static int gpu_count(void)
{
    int count = 1;
    return cu.device_count(&count) == CUDA_SUCCESS ? count : 1;
}

/* Asks whether the latest calls have ended, as PyTorch's watchdog does. */
static void *watch(void *arg)
{
    trainer *t = arg;
    (void)cu.set_current(t->context);
    while (!atomic_load(&t->ends)) {
        const unsigned calls = atomic_load(&t->calls);
        for (unsigned i = calls > 8 ? calls - 8 : 0; i < calls; i++)
            (void)cu.event_query(t->done[i % EVENTS]);
        usleep(1000);
    }
    return NULL;
}

static int begin(trainer *t, int rank, harness_board *board)
{
    *t = (trainer){.rank = rank, .seed = (unsigned)rank + 1};
    EXPECT(start_gpu() == 0, "no GPU");
    EXPECT_CUDA(cu.primary_retain(&t->context, rank % gpu_count()));
    EXPECT_CUDA(cu.set_current(t->context));
    t->memory = (caching_allocator){.cu = &cu, .limit = LIMIT};
    EXPECT_CUDA(cu.host_alloc((void **)&t->host, (size_t)BUCKET_MOST * 4, 0));
    EXPECT_OK(harness_join(rank, RANKS, board, &t->comm));
    EXPECT_CUDA(cu.stream_create(&t->side, CU_STREAM_NON_BLOCKING, 0));
    for (int i = 0; i < EVENTS; i++) {
        EXPECT_CUDA(cu.event_create(&t->ready[i], CU_EVENT_DISABLE_TIMING));
        EXPECT_CUDA(cu.event_create(&t->done[i], CU_EVENT_DISABLE_TIMING));
    }
    EXPECT(pthread_create(&t->watchdog, NULL, watch, t) == 0, "no thread");
    return 0;
}

static int end(trainer *t)
{
    EXPECT_CUDA(cu.context_synchronize());
    atomic_store(&t->ends, true);
    EXPECT(pthread_join(t->watchdog, NULL) == 0, "no thread");
    EXPECT_OK(ring_barrier(t->comm, NULL));
    ring_comm_destroy(t->comm);
    EXPECT(caching_close(&t->memory), "memory is left");
    for (int i = 0; i < EVENTS; i++) {
        EXPECT_CUDA(cu.event_destroy(t->ready[i]));
        EXPECT_CUDA(cu.event_destroy(t->done[i]));
    }
    EXPECT_CUDA(cu.stream_destroy(t->side));
    EXPECT_CUDA(cu.host_free(t->host));
    return 0;
}

/* ---- Calls -------------------------------------------------------------------------------- */

typedef enum call_kind { CALL_ALL_REDUCE, CALL_BROADCAST } call_kind;

/* In place, in a side stream, after what the main stream has done so far.
 * @param[out] number  of the call, for wait_for_call(). */
static int make_call(trainer *t, call_kind kind, caching_block *b, size_t count, ring_comm *comm,
                     CUstream side, unsigned *number)
{
    void *data = (void *)(uintptr_t)b->at;
    ring_call call = RING_CALL_INIT;
    *number = atomic_load(&t->calls);
    call.stream = side;
    EXPECT_CUDA(cu.event_record(t->ready[*number % EVENTS], MAIN_STREAM));
    EXPECT_CUDA(cu.stream_wait_event(side, t->ready[*number % EVENTS], 0));
    if (kind == CALL_ALL_REDUCE)
        EXPECT_OK(ring_all_reduce(data, data, count, RING_FLOAT32, RING_SUM, comm, &call));
    else
        EXPECT_OK(ring_broadcast(data, data, count, RING_FLOAT32, 0, comm, &call));
    EXPECT_CUDA(cu.event_record(t->done[*number % EVENTS], side));
    caching_record(b, side);
    atomic_store(&t->calls, *number + 1);
    return 0;
}

/* The main stream waits; this thread does not. */
static int wait_for_call(trainer *t, unsigned number)
{
    EXPECT_CUDA(cu.stream_wait_event(MAIN_STREAM, t->done[number % EVENTS], 0));
    return 0;
}

static int fill(caching_block *b, size_t count, float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    EXPECT_CUDA(cu.set_words_async(b->at, bits, count, MAIN_STREAM));
    return 0;
}

static int expect_values(trainer *t, const caching_block *b, size_t count, float value,
                         const char *what)
{
    EXPECT_CUDA(cu.copy_async((uintptr_t)t->host, b->at, count * 4, MAIN_STREAM));
    EXPECT_CUDA(cu.stream_synchronize(MAIN_STREAM));
    for (size_t i = 0; i < count; i++)
        EXPECT(t->host[i] == value, "wrong values: rank %d, %s, element %zu of %zu: %g, not %g",
               t->rank, what, i, count, (double)t->host[i], (double)value);
    return 0;
}

/* ---- Steps of training -------------------------------------------------------------------- */

static float gradient(int rank, int step, int bucket)
{
    return (float)(rank * 3 + step * 2 + bucket + 1);
}

/* Blocks that live for a while, as activations and gradients do. */
static int churn(trainer *t)
{
    caching_block *blocks[TEMPORARIES];
    for (int i = 0; i < TEMPORARIES; i++) {
        const size_t bytes = (size_t)(rand_r(&t->seed) % 100 + 1) << (rand_r(&t->seed) % 3 * 7);
        blocks[i] = caching_take(&t->memory, bytes * 16, MAIN_STREAM);
        EXPECT(blocks[i] != NULL, "no memory");
        EXPECT_CUDA(cu.set_bytes_async(blocks[i]->at, 0x7f, bytes, MAIN_STREAM));
    }
    for (int i = 0; i < TEMPORARIES; i++)
        EXPECT(caching_give(&t->memory, blocks[(i * 5) % TEMPORARIES]), "a block is not freed");
    return 0;
}

/* As at the start of a model: a sum of one element, and parameters from rank 0. */
static int start_model(trainer *t)
{
    unsigned number;
    caching_block *b = caching_take(&t->memory, 4, MAIN_STREAM);
    EXPECT(b != NULL && fill(b, 1, 1) == 0, "no memory");
    EXPECT(make_call(t, CALL_ALL_REDUCE, b, 1, t->comm, t->side, &number) == 0, "first call");
    EXPECT(wait_for_call(t, number) == 0 && expect_values(t, b, 1, RANKS, "first call") == 0,
           "first call");
    EXPECT(caching_give(&t->memory, b), "a block is not freed");
    b = caching_take(&t->memory, (size_t)BUCKET_MOST * 4, MAIN_STREAM);
    EXPECT(b != NULL && fill(b, BUCKET_MOST, (float)t->rank + 5) == 0, "no memory");
    EXPECT(make_call(t, CALL_BROADCAST, b, BUCKET_MOST, t->comm, t->side, &number) == 0,
           "parameters");
    EXPECT(wait_for_call(t, number) == 0, "parameters");
    EXPECT(expect_values(t, b, BUCKET_MOST, 5, "parameters") == 0, "rank %d", t->rank);
    EXPECT(caching_give(&t->memory, b), "a block is not freed");
    return 0;
}

/* Buffers from rank 0, in a block that is given back before the call has ended. */
static int forward(trainer *t, int step)
{
    unsigned number;
    caching_block *flat = caching_take(&t->memory, BUFFERS * 4, MAIN_STREAM);
    t->buffers = caching_take(&t->memory, BUFFERS * 4, MAIN_STREAM);
    EXPECT(flat != NULL && t->buffers != NULL, "no memory");
    EXPECT(fill(flat, BUFFERS, (float)(t->rank + step)) == 0, "buffers");
    EXPECT(make_call(t, CALL_BROADCAST, flat, BUFFERS, t->comm, t->side, &number) == 0,
           "buffers of rank %d", t->rank);
    EXPECT(wait_for_call(t, number) == 0, "buffers");
    EXPECT_CUDA(cu.copy_async(t->buffers->at, flat->at, BUFFERS * 4, MAIN_STREAM));
    EXPECT(caching_give(&t->memory, flat), "a block is not freed");
    return churn(t);
}

/* Gradients become ready from the last bucket to the first one, and temporary blocks come and go
 * between the calls. */
static int backward(trainer *t, int step, unsigned *numbers)
{
    for (int i = BUCKETS; i-- > 0;) {
        if (t->buckets[i] == NULL)
            t->buckets[i] = caching_take(&t->memory, bucket_counts[i] * 4, MAIN_STREAM);
        EXPECT(t->buckets[i] != NULL, "no memory");
        EXPECT(fill(t->buckets[i], bucket_counts[i], gradient(t->rank, step, i)) == 0, "bucket");
        EXPECT(make_call(t, CALL_ALL_REDUCE, t->buckets[i], bucket_counts[i], t->comm, t->side,
                         &numbers[i]) == 0,
               "rank %d, step %d, bucket %d", t->rank, step, i);
        EXPECT(churn(t) == 0, "rank %d", t->rank);
    }
    return 0;
}

/* A sum over a new communicator in a stream of its own, while calls of the old one may be pending.
 */
static int split(trainer *t, int step)
{
    ring_comm *part;
    CUstream side;
    unsigned number;
    caching_block *b = caching_take(&t->memory, 4000, MAIN_STREAM);
    EXPECT(b != NULL && fill(b, 1000, (float)step) == 0, "no memory");
    EXPECT_OK(ring_comm_split(t->comm, 0, -t->rank, &part));
    EXPECT_CUDA(cu.stream_create(&side, CU_STREAM_NON_BLOCKING, 0));
    EXPECT(make_call(t, CALL_ALL_REDUCE, b, 1000, part, side, &number) == 0, "split");
    EXPECT(wait_for_call(t, number) == 0, "split");
    EXPECT(expect_values(t, b, 1000, (float)(RANKS * step), "split") == 0, "rank %d", t->rank);
    EXPECT(caching_give(&t->memory, b), "a block is not freed");
    EXPECT(caching_empty(&t->memory), "memory is not freed");
    ring_comm_destroy(part);
    EXPECT_CUDA(cu.stream_destroy(side));
    return 0;
}

static int finish_step(trainer *t, int step, const unsigned *numbers)
{
    for (int i = BUCKETS; i-- > 0;)
        EXPECT(wait_for_call(t, numbers[i]) == 0, "bucket %d", i);
    for (int i = 0; i < BUCKETS; i++) {
        EXPECT(expect_values(t, t->buckets[i], bucket_counts[i],
                             gradient(0, step, i) + gradient(1, step, i), "gradients") == 0,
               "rank %d, step %d, bucket %d", t->rank, step, i);
        if (step % 2 == 1)
            continue;
        EXPECT(caching_give(&t->memory, t->buckets[i]), "a block is not freed");
        t->buckets[i] = NULL;
    }
    EXPECT(expect_values(t, t->buffers, BUFFERS, (float)step, "buffers") == 0, "rank %d", t->rank);
    EXPECT(caching_give(&t->memory, t->buffers), "a block is not freed");
    return 0;
}

static int train(int rank, int ranks, harness_board *board, void *arg)
{
    const int steps = (int)harness_number("STEPS", getenv("RING_TEST_LONG") != NULL ? 100 : 7);
    unsigned numbers[BUCKETS];
    trainer t;
    EXPECT(begin(&t, rank, board) == 0 && start_model(&t) == 0, "rank %d", rank);
    for (int step = 0; step < steps; step++) {
        EXPECT(forward(&t, step) == 0, "rank %d, step %d", rank, step);
        EXPECT(backward(&t, step, numbers) == 0, "rank %d, step %d", rank, step);
        if (step % 3 == 1)
            EXPECT(caching_empty(&t.memory), "memory is not freed");
        if (step % 3 == 2)
            EXPECT(split(&t, step) == 0, "rank %d, step %d", rank, step);
        EXPECT(finish_step(&t, step, numbers) == 0, "rank %d, step %d", rank, step);
    }
    for (int i = 0; i < BUCKETS; i++)
        EXPECT(t.buckets[i] == NULL || caching_give(&t.memory, t.buckets[i]), "a block is left");
    printf("rank %d: %u calls, %d segments allocated, %d freed\n", rank, atomic_load(&t.calls),
           t.memory.taken, t.memory.freed);
    return end(&t);
}

static void training_ends_with_right_values(void **state)
{
    assert_int_equal(harness_run_apart(transport, RANKS, train, NULL, start_gpu), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(training_ends_with_right_values)};
    if (argc != 2)
        return 2;
    transport = argv[1];
    setenv("RING_TRANSPORT", transport, 1);
    return cmocka_run_group_tests_name("coll.allocator_calls", tests, NULL, NULL);
}
