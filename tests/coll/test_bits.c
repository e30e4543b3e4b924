/* SPDX-License-Identifier: Apache-2.0
 * Operations on bits and truth values: every one, for every integer type, by every algorithm,
 * against C's own operators; and refused for floats.
 * Usage: test_coll_bits TRANSPORT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

enum { MOST_BYTES = 8 };

static const ring_dtype integers[] = {RING_INT8,  RING_UINT8,  RING_INT16, RING_UINT16,
                                      RING_INT32, RING_UINT32, RING_INT64, RING_UINT64};

/* A third of them are 0, and each bit of the others is mostly set or mostly not. */
static uint64_t drawn(int rank, size_t i)
{
    uint64_t x = ((uint64_t)rank * 1000003 + i) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    return x % 3 == 0 ? 0 : x % 3 == 1 ? x & x << 7 : x | x << 5;
}

/* Of the type: the low bytes. */
static uint64_t input(int rank, size_t i, size_t size)
{
    return drawn(rank, i) << (8 * (MOST_BYTES - size)) >> (8 * (MOST_BYTES - size));
}

static uint64_t combined(ring_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case RING_BAND:
        return a & b;
    case RING_BOR:
        return a | b;
    case RING_BXOR:
        return a ^ b;
    case RING_LAND:
        return a && b;
    case RING_LOR:
        return a || b;
    default:
        return !a != !b;
    }
}

static uint64_t expected(ring_op op, int ranks, size_t i, size_t size)
{
    uint64_t x = input(0, i, size);
    if (ranks == 1 && op >= RING_LAND)
        return x != 0;
    for (int rank = 1; rank < ranks; rank++)
        x = combined(op, x, input(rank, i, size));
    return x;
}

static void fill(unsigned char *x, int rank, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = input(rank, i, size); /* little endian */
        memcpy(x + i * size, &value, size);
    }
}

/* @param first  the element of the vector that x begins with. */
static int check(const unsigned char *x, ring_dtype dtype, ring_op op, int ranks, size_t first,
                 size_t count)
{
    const size_t size = ring_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t got = 0;
        memcpy(&got, x + i * size, size);
        const uint64_t want = expected(op, ranks, first + i, size);
        EXPECT(got == want, "%s %s, %d ranks, element %zu: %llx, not %llx", ring_dtype_name(dtype),
               ring_op_name(op), ranks, first + i, (unsigned long long)got,
               (unsigned long long)want);
    }
    return 0;
}

static int try_one(int rank, int ranks, ring_dtype dtype, ring_op op, size_t count, ring_comm *comm)
{
    const size_t size = ring_dtype_size(dtype), all = count * (size_t)ranks;
    unsigned char *src = malloc(all * size), *dst = malloc(all * size);
    fill(src, rank, all, size);
    EXPECT_OK(ring_all_reduce(src, dst, all, dtype, op, comm, NULL));
    int wrong = check(dst, dtype, op, ranks, 0, all);
    EXPECT_OK(ring_reduce_scatter(src, dst, count, dtype, op, comm, NULL));
    wrong |= check(dst, dtype, op, ranks, (size_t)rank * count, count);
    EXPECT_OK(ring_all_reduce(src, src, all, dtype, op, comm, NULL)); /* in place */
    wrong |= check(src, dtype, op, ranks, 0, all);
    free(src);
    free(dst);
    return wrong;
}

static int try_all(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t counts[] = {1, 77, 3001};
    for (size_t t = 0; t < sizeof integers / sizeof *integers; t++)
        for (int op = RING_BAND; op <= RING_LXOR; op++)
            for (int i = 0; i < 3; i++)
                if (try_one(rank, ranks, integers[t], (ring_op)op, counts[i], comm) != 0)
                    return 1;
    return 0;
}

static void test_bits_and_truths_are_combined_by_every_algorithm(void **state)
{
    static const char *const algorithms[] = {"oneshot", "direct", "ring",
                                             "halving", "tree",   "chain"};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        setenv("RING_ALGO", algorithms[a], 1);
        run_joined(3, try_all);
    }
    unsetenv("RING_ALGO");
    run_joined(1, try_all);
    run_joined(2, try_all);
}

static int floats_have_no_bits(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    float x[4] = {0}, y[4];
    const size_t count = 4;
    ring_buckets *buckets;
    EXPECT(ring_all_reduce(x, y, 4, RING_FLOAT32, RING_BAND, comm, NULL) == RING_ERR_ARGUMENT,
           "band");
    EXPECT(strstr(ring_last_error(NULL), "band is for integers, not for float32") != NULL, "%s",
           ring_last_error(NULL));
    EXPECT(ring_reduce(x, y, 4, RING_BFLOAT16, RING_LXOR, 0, comm, NULL) == RING_ERR_ARGUMENT,
           "lxor");
    EXPECT(ring_buckets_create(&buckets, x, &count, 1, RING_FLOAT32, RING_LOR, 0, comm) ==
               RING_ERR_ARGUMENT,
           "buckets");
    EXPECT(ring_all_reduce(x, y, 4, RING_INT32, RING_OP_COUNT, comm, NULL) == RING_ERR_ARGUMENT,
           "unknown");
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_and_truths_are_combined_by_every_algorithm),
        CASE(floats_have_no_bits, 2),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
