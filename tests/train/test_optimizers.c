/* SPDX-License-Identifier: Apache-2.0
 * From a configuration to the updates: what PyTorch stored for the kernels (stored_optimizer.h)
 * comes out when its settings are written as DeepSpeed's users write them. */
#include "check.h"
#include "descent.h"

#include <float.h>
#include <kernels.h>
#include <stdio.h>
#include <string.h>

#include "kernels/stored_optimizer.h"

enum { TEXT_MAX = 512 };

static const char *bool_text(int value)
{
    return value != 0 ? "true" : "false";
}

static void write_sgd(const stored_case *c, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX,
             "{optimizer: {type: \"SGD\", params: {lr: %.17g, momentum: %.17g, dampening: %.17g, "
             "weight_decay: %.17g, nesterov: %s}}}",
             c->sgd.lr, c->sgd.momentum, c->sgd.dampening, c->sgd.weight_decay,
             bool_text(c->sgd.nesterov));
}

/* Decoupled decay has two names. */
static void write_adam(const stored_case *c, const char *type, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX,
             "{optimizer: {type: \"%s\", params: {lr: %.17g, betas: [%.17g, %.17g], eps: %.17g, "
             "weight_decay: %.17g%s}}}",
             type, c->adam.lr, c->adam.beta1, c->adam.beta2, c->adam.eps, c->adam.weight_decay,
             c->adam.decoupled ? "" : ", adam_w_mode: false");
}

static void write_lion(const stored_case *c, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX,
             "{optimizer: {type: \"Lion\", params: {lr: %.17g, betas: [%.17g, %.17g], "
             "weight_decay: %.17g}}}",
             c->lion.lr, c->lion.beta1, c->lion.beta2, c->lion.weight_decay);
}

static void write_adagrad(const stored_case *c, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX,
             "{optimizer: {type: \"Adagrad\", params: {lr: %.17g, lr_decay: %.17g, eps: %.17g, "
             "weight_decay: %.17g}}}",
             c->adagrad.lr, c->adagrad.lr_decay, c->adagrad.eps, c->adagrad.weight_decay);
}

/* As near as the kernels' own test. */
static void check_steps(const stored_case *c, const char *text)
{
    train_optimizer optimizer;
    float params[STORED_COUNT];
    memcpy(params, stored_start, sizeof params);
    descent_open(&optimizer, text, STORED_COUNT);
    for (int step = 0; step < STORED_STEPS; step++)
        descent_step(&optimizer, params, stored_grads[step], optimizer.config.lr);
    optimizer_destroy(&optimizer);
    for (int i = 0; i < STORED_COUNT; i++) {
        const double want = (double)c->end[i], start = (double)stored_start[i];
        const double allowed = 3 * (double)FLT_EPSILON * fabs(start) + 1e-6 * fabs(want - start);
        if (!(fabs((double)params[i] - want) <= allowed))
            fail_msg("%s, parameter %d: %.9g, PyTorch %.9g", text, i, (double)params[i], want);
    }
}

static void configured_optimizers_step_as_pytorchs(void **state)
{
    for (size_t i = 0; i < COUNT_OF(stored_cases); i++) {
        const stored_case *c = &stored_cases[i];
        char text[TEXT_MAX];
        if (c->is_sgd)
            write_sgd(c, text);
        else if (c->is_lion)
            write_lion(c, text);
        else if (c->is_adagrad)
            write_adagrad(c, text);
        else
            write_adam(c, "Adam", text);
        check_steps(c, text);
        if (c->is_adam && c->adam.decoupled) {
            write_adam(c, "AdamW", text);
            check_steps(c, text);
        }
    }
}

/* Without it the first step is longer: (1 - beta1) / sqrt(1 - beta2) times the rate. */
static void adam_may_go_without_bias_correction(void **state)
{
    static const char *const texts[] = {
        "{optimizer: {type: \"Adam\", params: {lr: 0.01, bias_correction: false}}}",
        "{optimizer: {type: \"Adam\", params: {lr: 0.01}}}"};
    static const double moved[] = {0.1 / 0.031622776601683791, 1.0};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        train_optimizer optimizer;
        float param = 0.0F;
        const float grad = 2.0F;
        descent_open(&optimizer, texts[i], 1);
        descent_step(&optimizer, &param, &grad, optimizer.config.lr);
        assert_near(param, -0.01 * moved[i], 1e-4, 0);
        optimizer_destroy(&optimizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configured_optimizers_step_as_pytorchs),
        cmocka_unit_test(adam_may_go_without_bias_correction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
