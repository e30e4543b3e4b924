/* SPDX-License-Identifier: Apache-2.0
 * Batches that threads take ahead are those that a caller would have taken himself. */
#include "check.h"
#include "drawn.h"

#include <dataset.h>
#include <errors.h>
#include <reader.h>
#include <string.h>
#include <subnormals.h>
#include <unistd.h>

enum { SAMPLES = 40, ROWS = 12, ROUNDS = 100 };

static train_dataset dataset;

static int set_up(void **state)
{
    drawn_fill(&dataset, SAMPLES);
    return 0;
}

static int tear_down(void **state)
{
    dataset_free(&dataset);
    return 0;
}

/* Another order for each round, and another number of rows. */
static data_batch draw_batch(uint32_t order[ROWS], uint32_t round)
{
    for (uint32_t i = 0; i < ROWS; i++)
        order[i] = (round * 17 + i * 7) % SAMPLES;
    return (data_batch){&dataset, order, 1 + round % ROWS};
}

static void expect_batch(const data_batch *want, const float *inputs, const uint32_t *labels)
{
    static float right[ROWS * DRAWN_PIXELS];
    uint32_t right_labels[ROWS];
    assert_int_equal(dataset_take(want->dataset, want->order, want->rows, right, right_labels),
                     RING_OK);
    assert_memory_equal(inputs, right, want->rows * DRAWN_PIXELS * sizeof *right);
    assert_memory_equal(labels, right_labels, want->rows * sizeof *labels);
}

/* Every third batch is not asked for, and every fourth one that is asked for is never taken. */
static void run_rounds(data_reader *reader, float **inputs, uint32_t **labels)
{
    static uint32_t orders[2][ROWS], other[ROWS]; /* the last one is dropped by reader_stop() */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const data_batch want = draw_batch(orders[round % 2], round);
        if (round % 4 == 3) {
            const data_batch dropped = draw_batch(other, round + 5);
            reader_ask(reader, &dropped);
        }
        if (round % 3 != 0)
            reader_ask(reader, &want);
        assert_int_equal(reader_take(reader, &want, inputs, labels), RING_OK);
        expect_batch(&want, *inputs, *labels);
    }
}

static void threads_take_what_was_asked_for(void **state)
{
    for (int threads = 1; threads <= 5; threads += 2) { /* more than rows at times */
        data_reader *reader;
        float *inputs = malloc(ROWS * DRAWN_PIXELS * sizeof *inputs);
        uint32_t *labels = malloc(ROWS * sizeof *labels);
        assert_int_equal(reader_start(&reader, threads, ROWS * DRAWN_PIXELS, ROWS), RING_OK);
        run_rounds(reader, &inputs, &labels);
        reader_stop(reader);
        free(inputs);
        free(labels);
    }
    reader_stop(NULL);
}

static void labels_alone_need_no_inputs(void **state)
{
    static const uint32_t order[] = {5, 6, 39};
    const data_batch want = {&dataset, order, 3};
    data_reader *reader;
    uint32_t *labels = malloc(ROWS * sizeof *labels);
    assert_int_equal(reader_start(&reader, 2, 0, ROWS), RING_OK);
    for (int asks = 1; asks >= 0; asks--) {
        memset(labels, 0xff, ROWS * sizeof *labels);
        if (asks)
            reader_ask(reader, &want);
        assert_int_equal(reader_take(reader, &want, NULL, &labels), RING_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(labels[i], dataset.labels.data[order[i]]);
    }
    reader_stop(reader);
    free(labels);
}

/* ---- Sources ------------------------------------------------------------------------------- */

static float tiny_product(void)
{
    volatile float small = 1e-30F, smaller = 1e-10F;
    return small * smaller;
}

/* Sample 9 is not to be had. */
static ring_status take_slowly(void *context, const uint32_t *order, size_t batch, float *inputs,
                               uint32_t *labels)
{
    usleep(2000);
    for (size_t i = 0; i < batch; i++) {
        if (order[i] == 9)
            return train_fail(RING_ERR_SYSTEM, "no sample 9");
        inputs[i] = tiny_product();
        labels[i] = (uint32_t)order[i];
    }
    return RING_OK;
}

static const data_source slow = {.take = take_slowly};
static const train_dataset slow_samples = {
    .count = 100, .features = 1, .classes = 100, .hash = 1, .own_labels = 1, .source = &slow};

static void failures_come_with_the_batch(void **state)
{
    static const uint32_t order[] = {1, 2, 3, 9, 5, 6};
    const data_batch bad = {&slow_samples, order, 6}, good = {&slow_samples, order, 3};
    data_reader *reader;
    float *inputs = malloc(ROWS * sizeof *inputs);
    uint32_t *labels = malloc(ROWS * sizeof *labels);
    assert_int_equal(reader_start(&reader, 2, ROWS, ROWS), RING_OK);
    reader_ask(reader, &bad);
    assert_int_equal(reader_take(reader, &bad, &inputs, &labels), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "no sample 9");
    reader_ask(reader, &good);
    assert_int_equal(reader_take(reader, &good, &inputs, &labels), RING_OK);
    assert_int_equal(labels[2], 3);
    reader_stop(reader);
    free(inputs);
    free(labels);
}

static void subnormals_count_as_in_the_computing_thread(void **state)
{
    static const uint32_t order[] = {1};
    const data_batch one = {&slow_samples, order, 1};
    const uint64_t mode = subnormals_flush();
    const float right = tiny_product();
    data_reader *reader;
    float *inputs = malloc(sizeof *inputs);
    uint32_t *labels = malloc(sizeof *labels);
    subnormals_restore(mode);
    assert_int_equal(reader_start(&reader, 1, 1, 1), RING_OK);
    reader_ask(reader, &one);
    assert_int_equal(reader_take(reader, &one, &inputs, &labels), RING_OK);
    assert_memory_equal(inputs, &right, sizeof right);
    reader_stop(reader);
    free(inputs);
    free(labels);
}

/* Stopping waits for the batch being read. */
static void readers_stop_in_the_middle(void **state)
{
    static const uint32_t order[] = {1, 2, 3};
    const data_batch batch = {&slow_samples, order, 3};
    for (int i = 0; i < 20; i++) {
        data_reader *reader;
        assert_int_equal(reader_start(&reader, 3, ROWS, ROWS), RING_OK);
        if (i > 0)
            reader_ask(reader, &batch);
        reader_stop(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_take_what_was_asked_for),
        cmocka_unit_test(labels_alone_need_no_inputs),
        cmocka_unit_test(failures_come_with_the_batch),
        cmocka_unit_test(subnormals_count_as_in_the_computing_thread),
        cmocka_unit_test(readers_stop_in_the_middle),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
