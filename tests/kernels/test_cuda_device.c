/* SPDX-License-Identifier: Apache-2.0
 * A GPU as accelerator, over NVIDIA's driver or its double: folds, stops in streams, graphs, whose
 * memory it is, seats, errors, and each call of the driver that fails. Each test has a process, and
 * so a GPU, of its own. Usage: test_kernels.cuda_device TEST */
#include "accelerator_programs.h"
#include "cuda_device.h"
#include "fake_cuda_table.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "unit_test.h"

#include "one_test.h"

enum { COUNT = 1000 };

static cuda_table cu;
static cuda_device *gpu;
static const accelerator *by;

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

/* ---- Ground ---- */

static void open_gpu(void)
{
    if (cuda_device_open(0, "", &gpu) != RING_OK)
        fail_msg("%s", fail_text());
    by = &gpu->base;
    OK(cu.set_current(gpu->context));
}

static CUstream stream_new(void)
{
    CUstream stream;
    OK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

/* [COUNT] floats of the device: base, base + 1, … */
static float *floats_new(float base)
{
    CUdeviceptr memory;
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = base + (float)i;
    OK(cu.mem_alloc(&memory, sizeof values));
    OK(cu.copy(memory, (uintptr_t)values, sizeof values));
    OK(cu.stream_synchronize(NULL)); /* folds do not wait for the legacy stream */
    return (float *)(uintptr_t)memory;
}

static void expect_floats(const float *got, float base, float step)
{
    for (int i = 0; i < COUNT; i++)
        if (got[i] != base + step * (float)i)
            fail_msg("element %d is %g, not %g", i, (double)got[i],
                     (double)(base + step * (float)i));
}

static void expect_there(const float *memory, float base, float step)
{
    float values[COUNT];
    OK(cu.copy((uintptr_t)values, (uintptr_t)memory, sizeof values));
    expect_floats(values, base, step);
}

static ring_status await(const ticket *t)
{
    ring_status status;
    for (by->reap(by); (status = ticket_status(t)) == RING_IN_PROGRESS; by->reap(by))
        usleep(100);
    return status;
}

static kernel_operand operand_of(const float *data)
{
    return (kernel_operand){.data = (void *)(uintptr_t)data};
}

static kernel_operand operand_there(const float *data)
{
    return (kernel_operand){.data = (void *)(uintptr_t)data, .on_device = true};
}

static ring_status add(const float *out, const float *a, const float *b, ticket *over)
{
    const kernel_operand outs[] = {operand_there(out)};
    const kernel_operand ins[] = {operand_there(a), operand_there(b)};
    return by->fold(by, outs, 1, ins, 2, COUNT, RING_FLOAT32, RING_SUM, 0, over);
}

/* ---- Folds ---- */

static void it_folds_its_own_memory(void **state)
{
    ticket over;
    open_gpu();
    const float *a = floats_new(1), *b = floats_new(10), *out = floats_new(0);
    assert_int_equal(add(out, a, b, &over), RING_OK);
    assert_int_equal(await(&over), RING_OK);
    expect_there(out, 11, 2);
}

static void it_folds_memory_of_the_host(void **state)
{
    static float a[COUNT + 1], out[COUNT + 1];
    ticket over;
    open_gpu();
    const float *b = floats_new(10), *there = floats_new(0);
    for (int i = 0; i < COUNT; i++)
        a[i + 1] = (float)i;
    for (int i = 0; i < 3; i++) {
        const kernel_operand outs[] = {operand_of(out + 1), operand_there(there)};
        const kernel_operand ins[] = {operand_of(a + 1), operand_there(b)};
        memset(out, 0, sizeof out);
        assert_int_equal(by->fold(by, outs, 2, ins, 2, COUNT, RING_FLOAT32, RING_SUM, 0, &over),
                         RING_OK);
        assert_int_equal(await(&over), RING_OK);
        expect_floats(out + 1, 10, 2);
        expect_there(there, 10, 2);
    }
}

/* Expects the kernel and its blocks for a fold of @p count floats.
 * @param there  3 arrays of which inputs are taken, and 3 for outputs. */
static void expect_kernel(const char *kernel, unsigned tiles, float *const *there, int in_count,
                          int out_count, size_t count, ring_op op, int divisor)
{
    kernel_operand ins[3], outs[3];
    ticket over;
    unsigned blocks;
    for (int k = 0; k < in_count; k++)
        ins[k] = operand_there(there[k]);
    for (int k = 0; k < out_count; k++)
        outs[k] = operand_there(there[3 + k]);
    assert_int_equal(by->fold(by, outs, out_count, ins, in_count, count, RING_FLOAT32, op, divisor,
                              &over),
                     RING_OK);
    assert_int_equal(await(&over), RING_OK);
    assert_string_equal(fake_cuda_functions().last_kernel(&blocks), kernel);
    assert_int_equal(blocks, tiles);
}

/* Few operands whose vectors begin together have a kernel of their own; each tile has a block. */
static void few_operands_have_their_kernel(void **state)
{
    enum { MANY = 40 * 1024 };
    float *there[6];
    CUdeviceptr memory;
    open_gpu();
    for (int k = 0; k < 6; k++) {
        OK(cu.mem_alloc(&memory, sizeof(float) * (MANY + 4)));
        there[k] = (float *)(uintptr_t)memory;
    }
    expect_kernel("fold_few_f32", 41, there, 2, 1, MANY, RING_SUM, 0);
    expect_kernel("fold_few_f32", 41, there, 2, 2, MANY, RING_MAX, 0);
    expect_kernel("fold_few_f32", 41, there, 2, 1, MANY, RING_AVG, 2);
    expect_kernel("fold_few_f32", 1, there, 1, 2, 17, RING_SUM, 0);
    expect_kernel("fold_f32", 41, there, 1, 1, MANY, RING_AVG, 2);
    expect_kernel("fold_f32", 41, there, 3, 1, MANY, RING_SUM, 0);
    expect_kernel("fold_f32", 41, there, 2, 3, MANY, RING_SUM, 0);
    for (int k = 0; k < 6; k++)
        there[k]++;
    expect_kernel("fold_few_f32", 41, there, 2, 1, MANY, RING_SUM, 0);
    there[3]++;
    expect_kernel("fold_f32", 41, there, 2, 1, MANY, RING_SUM, 0);
}

static void folds_come_in_order_and_settle_waits(void **state)
{
    ticket over;
    open_gpu();
    const float *a = floats_new(1), *b = floats_new(0), *out = floats_new(0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(add(out, i == 0 ? a : out, b, i == 19 ? &over : NULL), RING_OK);
    by->settle(by);
    assert_int_equal(ticket_status(&over), RING_OK);
    expect_there(out, 1, 21);
}

/* ---- Stops ---- */

static void a_stream_waits_at_a_stop(void **state)
{
    accelerator_stop *stop;
    bool yes = false;
    open_gpu();
    CUstream stream = stream_new();
    const float *memory = floats_new(0);
    assert_int_equal(by->owns_stream(by, stream, &yes), RING_OK);
    assert_true(yes);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(by->stop(by, stream, &stop), RING_OK);
        OK(cu.set_words_async((uintptr_t)memory, (unsigned)i, 1, stream));
        assert_int_equal(await(stop->reached), RING_OK);
        assert_int_equal(cu.stream_query(stream), CUDA_ERROR_NOT_READY);
        by->resume(stop);
        OK(cu.stream_synchronize(stream));
    }
}

/* CUDA frees nothing before its streams are idle, and a stream at a stop is not. */
static void more_room_is_had_while_a_stream_is_stopped(void **state)
{
    static float a[16 * COUNT];
    accelerator_stop *stop;
    ticket over;
    open_gpu();
    CUstream stream = stream_new();
    const float *there = floats_new(0);
    assert_int_equal(by->stop(by, stream, &stop), RING_OK);
    for (size_t count = 1; count <= 16 * COUNT; count *= 2) {
        const kernel_operand out = operand_of(a), in = operand_of(a);
        assert_int_equal(by->fold(by, &out, 1, &in, 1, count, RING_FLOAT32, RING_SUM, 0, &over),
                         RING_OK);
        assert_int_equal(await(&over), RING_OK);
    }
    assert_int_equal(add(there, there, there, &over), RING_OK);
    assert_int_equal(await(&over), RING_OK);
    by->resume(stop);
    OK(cu.stream_synchronize(stream));
}

/* A stop that was resumed too early is not lent again before its stream has come there. */
static void a_stop_is_not_lent_twice(void **state)
{
    accelerator_stop *early, *others[100];
    open_gpu();
    CUstream blocked = stream_new(), free = stream_new();
    accelerator_stop *first;
    assert_int_equal(by->stop(by, blocked, &first), RING_OK);
    assert_int_equal(by->stop(by, blocked, &early), RING_OK);
    by->resume(early);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(by->stop(by, free, &others[i]), RING_OK);
        assert_ptr_not_equal(others[i], early);
        by->resume(others[i]);
    }
    by->resume(first);
    OK(cu.stream_synchronize(blocked));
    OK(cu.stream_synchronize(free));
}

/* ---- Captures ---- */

static void it_knows_whether_a_stream_is_captured(void **state)
{
    bool captured = true;
    CUgraph graph;
    open_gpu();
    CUstream stream = stream_new();
    assert_int_equal(by->captures(by, stream, &captured), RING_OK);
    assert_false(captured);
    OK(cu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(by->captures(by, stream, &captured), RING_OK);
    assert_true(captured);
    OK(cu.end_capture(stream, &graph));
    OK(cu.graph_destroy(graph));
}

/* ---- Memory ---- */

static bool is_owned(const void *at, size_t bytes, accelerator_allocation *out)
{
    assert_int_equal(by->owns(by, at, bytes, out), RING_OK);
    return out->bytes > 0;
}

static void it_knows_its_memory(void **state)
{
    accelerator_allocation found, again;
    static char host[64];
    open_gpu();
    const float *memory = floats_new(0);
    assert_true(is_owned(memory + 5, 4, &found));
    assert_ptr_equal(found.base, memory);
    assert_in_range(found.bytes, COUNT * sizeof(float), COUNT * sizeof(float) + 4096);
    assert_false(is_owned(host, sizeof host, &again));
    OK(cu.mem_free((uintptr_t)memory));
    assert_false(is_owned(memory, 4, &again));
    const float *next = floats_new(0);
    assert_true(is_owned(next, 4, &again));
    assert_int_not_equal(again.id, found.id);
}

/* ---- Seats ---- */

enum { SEATS = 2 };

/* The seats of two ranks of this process on the GPU. */
typedef struct seating {
    accelerator_seat *seats[SEATS];
    accelerator_card cards[SEATS];
} seating;

static seating attach_all(const seating *parents)
{
    seating all = {0};
    for (int r = 0; r < SEATS; r++) {
        const accelerator_seat *parent = parents != NULL ? parents->seats[r] : NULL;
        assert_int_equal(by->programs->create(by, parent, r, SEATS, &all.seats[r]), RING_OK);
        if (by->programs->attach(all.seats[r], 16, false, &all.cards[r]) != RING_OK)
            fail_msg("rank %d: %s", r, fail_text());
    }
    return all;
}

static void *open_first(void *arg)
{
    const seating *all = arg;
    return by->programs->open(all->seats[0], all->cards) == RING_OK ? arg : NULL;
}

static void open_all(seating *all)
{
    pthread_t thread;
    void *opened;
    assert_int_equal(pthread_create(&thread, NULL, open_first, all), 0);
    assert_int_equal(by->programs->open(all->seats[1], all->cards), RING_OK);
    pthread_join(thread, &opened);
    assert_ptr_equal(opened, all);
}

static void connect_seat(const seating *all, int rank)
{
    accelerator_terms terms;
    if (by->programs->connect(all->seats[rank], all->cards, false, &terms) != RING_OK)
        fail_msg("rank %d: %s", rank, fail_text());
}

/* When a start fails, a rank may have departed before another one connects. Their memory, which has
 * room for a few seats, is taken again. */
static void a_rank_departs_before_another_connects(void **state)
{
    enum { TIMES = 20 };
    open_gpu();
    seating parents = attach_all(NULL);
    open_all(&parents);
    for (int r = 0; r < SEATS; r++)
        connect_seat(&parents, r);
    for (int i = 0; i < TIMES; i++) {
        const seating derived = attach_all(&parents);
        for (int r = SEATS - 1; r >= 0; r--) {
            connect_seat(&derived, r);
            by->programs->detach(derived.seats[r]);
        }
    }
    for (int r = 0; r < SEATS; r++)
        by->programs->detach(parents.seats[r]);
}

/* To rank 1, rank 0 is a process that does not share its memory. */
static void memory_that_others_may_have_opened_is_kept(void **state)
{
    accelerator_allocation found;
    open_gpu();
    seating all = attach_all(NULL);
    memset(all.cards[0].process, 1, sizeof all.cards[0].process);
    memset(all.cards[0].handle, 0, sizeof all.cards[0].handle);
    assert_int_equal(by->programs->open(all.seats[1], all.cards), RING_ERR_UNSUPPORTED);
    for (int r = 0; r < SEATS; r++) {
        by->programs->detach(all.seats[r]);
        assert_int_equal(is_owned((void *)(uintptr_t)all.cards[r].memory, 1, &found), r == 1);
    }
}

/* ---- Errors ---- */

static void an_error_of_the_device_is_told(void **state)
{
    CUmodule module;
    CUfunction trap;
    void *parameters[] = {&(sample_add){.count = 0}};
    (void)fake_cuda_functions(); /* has the kernel that traps */
    open_gpu();
    assert_int_equal(by->health(by), RING_OK);
    OK(cu.module_load(&module, "RINGEMU"));
    OK(cu.module_get_function(&trap, module, "sample_trap"));
    OK(cu.launch(trap, 1, 1, 1, 1, 1, 1, 0, stream_new(), parameters, NULL));
    while (by->health(by) == RING_OK)
        usleep(100);
    assert_non_null(strstr(fail_text(), "CUDA device 0"));
    by->settle(by);
}

/* One call of the driver after the other fails, in opening and in use: the text names the call,
 * and whatever was asked is over or was refused. */
static ring_status use_opened(const cuda_device *opened, const float *memory)
{
    static float results[COUNT];
    const accelerator *a = &opened->base;
    const kernel_operand out = operand_of(results), in = operand_there(memory);
    ticket over;
    accelerator_stop *stop;
    RING_TRY(a->fold(a, &out, 1, &in, 1, COUNT, RING_FLOAT32, RING_SUM, 0, &over));
    a->settle(a);
    RING_TRY(ticket_status(&over));
    RING_TRY(a->stop(a, opened->stream, &stop));
    a->resume(stop);
    a->settle(a);
    return RING_OK;
}

static ring_status use_gpu(const float *memory)
{
    cuda_device *opened;
    RING_TRY(cuda_device_open(0, "", &opened));
    const ring_status status = use_opened(opened, memory);
    cuda_device_close(opened);
    return status;
}

static void the_nth_call_fails(void **state)
{
    enum { MOST_CALLS = 200 };
    int failures = 0;
    const fake_cuda_table fake = fake_cuda_functions();
    open_gpu();
    const float *memory = floats_new(0);
    for (uint64_t n = 1; n <= MOST_CALLS; n++) {
        fake.fail_nth(n, CUDA_ERROR_OUT_OF_MEMORY);
        const ring_status status = use_gpu(memory);
        const char *failed = fake.last_failed();
        fake.fail_nth(0, 0);
        failures += status != RING_OK;
        if (status != RING_OK && failed == NULL)
            fail_msg("call %d: %s, but none failed", (int)n, fail_text());
        if (failed == NULL) /* fewer calls */
            break;
    }
    assert_in_range(failures, 20, MOST_CALLS - 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {TEST(it_folds_its_own_memory),
                                              TEST(it_folds_memory_of_the_host),
                                              TEST(few_operands_have_their_kernel),
                                              TEST(folds_come_in_order_and_settle_waits),
                                              TEST(a_stream_waits_at_a_stop),
                                              TEST(more_room_is_had_while_a_stream_is_stopped),
                                              TEST(a_stop_is_not_lent_twice),
                                              TEST(it_knows_whether_a_stream_is_captured),
                                              TEST(it_knows_its_memory),
                                              TEST(a_rank_departs_before_another_connects),
                                              TEST(memory_that_others_may_have_opened_is_kept),
                                              TEST(an_error_of_the_device_is_told),
                                              TEST(the_nth_call_fails)};
    cu = cuda_functions();
    return run_one(tests, sizeof tests / sizeof *tests, argc, argv);
}
