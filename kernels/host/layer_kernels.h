/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the functions of one level that layers of a network apply to each element or to each
 * row. The compiler vectorizes their plain loops. If an output may be the same array as an input,
 * "ivdep" promises the compiler that no element depends on another. */

static void relu(float *out, const float *in, size_t count)
{
#pragma GCC ivdep
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] < 0.0F ? 0.0F : in[i];
}

static void relu_gradient(float *in_delta, const float *out_delta, const float *out, size_t count)
{
#pragma GCC ivdep
    for (size_t i = 0; i < count; i++) {
        const float delta = out_delta[i]; /* read unconditionally, so that there is no branch */
        in_delta[i] = out[i] > 0.0F ? delta : 0.0F;
    }
}

/* rows (count, width) += row (width), broadcast over the rows. */
static void add_to_rows(float *restrict rows, const float *restrict row, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++)
            rows[i * width + j] += row[j];
}

/* sum (width) += rows (count, width), reduced over the rows in their order. */
static void add_rows(float *restrict sum, const float *restrict rows, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++)
            sum[j] += rows[i * width + j];
}
