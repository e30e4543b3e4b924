/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of layers on each number, or on each row, of one level. Loops are plain, the compiler
 * makes vectors of them; where two arrays may be one, no element depends on another. */

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
        const float delta = out_delta[i]; /* read in any case, so that there is no branch */
        in_delta[i] = out[i] > 0.0F ? delta : 0.0F;
    }
}

static void add_to_rows(float *restrict rows, const float *restrict row, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++)
            rows[i * width + j] += row[j];
}

static void add_rows(float *restrict sum, const float *restrict rows, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++)
            sum[j] += rows[i * width + j];
}
