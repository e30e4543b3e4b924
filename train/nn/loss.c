/* SPDX-License-Identifier: Apache-2.0
 * Computes the mean squared error on one-hot targets and the cross-entropy of the softmax. The
 * functions for one row return its loss and write its gradient. */
#include "loss.h"

#include <math.h>

enum { CLASSES_OF_A_SUM = 256 /* classes whose exponentials are added up in float32 */ };

const char *const loss_names[] = {[LOSS_MSE] = "mse", [LOSS_CROSS_ENTROPY] = "cross_entropy", NULL};

/* loss = mean over j of (output[j] - one_hot[j])², output_grad[j] = scale · d loss / d output[j] */
static double mse_row(const float *output, size_t label, size_t classes, double scale,
                      float *output_grad)
{
    const float factor = (float)(2.0 * scale / (double)classes);
    double sum = 0.0;
    for (size_t j = 0; j < classes; j++) {
        const float error = output[j] - (j == label ? 1.0F : 0.0F);
        sum += (double)error * (double)error;
        output_grad[j] = factor * error;
    }
    return sum / (double)classes;
}

/* output_grad = e^(output - top). @return the sum of these exponentials. Each 256 numbers are added
 * up in float32, and these partial sums in float64: the error of a sum in float32 alone grows with
 * the number of classes, and with 50257 classes the gradient would be ten times less accurate. */
static double fill_exponentials(const float *output, float top, size_t classes, float *output_grad)
{
    double sum = 0.0;
    for (size_t begin = 0; begin < classes; begin += CLASSES_OF_A_SUM) {
        const size_t left = classes - begin,
                     end = begin + (left < CLASSES_OF_A_SUM ? left : CLASSES_OF_A_SUM);
        float part = 0.0F;
        for (size_t j = begin; j < end; j++) {
            output_grad[j] = expf(output[j] - top);
            part += output_grad[j];
        }
        sum += (double)part;
    }
    return sum;
}

/* loss = log Σ e^output[j] - output[label], output_grad = scale · (softmax(output) - one_hot). The
 * largest output is subtracted first, so that no exponential overflows. */
static double cross_entropy_row(const float *output, size_t label, size_t classes, double scale,
                                float *output_grad)
{
    float top = output[0];
    for (size_t j = 1; j < classes; j++)
        top = output[j] > top ? output[j] : top;
    const double sum = fill_exponentials(output, top, classes, output_grad);
    const float factor = (float)scale, all = (float)sum;
    for (size_t j = 0; j < classes; j++)
        output_grad[j] = factor * (output_grad[j] / all - (j == label ? 1.0F : 0.0F));
    return log(sum) + (double)top - (double)output[label];
}

double loss_sum(loss_kind kind, const float *output, const uint32_t *labels, size_t batch,
                size_t classes, double scale, float *output_grad)
{
    double total = 0.0;
    for (size_t i = 0; i < batch; i++) {
        const size_t at = i * classes;
        total += kind == LOSS_MSE
                     ? mse_row(output + at, labels[i], classes, scale, output_grad + at)
                     : cross_entropy_row(output + at, labels[i], classes, scale, output_grad + at);
    }
    return total;
}

size_t loss_correct(const float *output, const uint32_t *labels, size_t batch, size_t classes)
{
    size_t correct = 0;
    for (size_t i = 0; i < batch; i++, output += classes) {
        size_t best = 0;
        for (size_t j = 1; j < classes; j++)
            best = output[j] > output[best] ? j : best;
        correct += best == labels[i];
    }
    return correct;
}
