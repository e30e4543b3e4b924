/* SPDX-License-Identifier: Apache-2.0
 * What the sections fp16, bf16, amp and data_types come down to. */
#include "check.h"
#include "parsing.h"

#include <errors.h>
#include <stdio.h>

#define SGD "\"optimizer\": {\"type\": \"SGD\"}"

static precision_config precision_of(const char *keys, config_options options)
{
    char text[512];
    snprintf(text, sizeof text, "{" SGD ", %s}", keys);
    const parsed got = parse_with(text, options);
    if (got.status != RING_OK)
        fail_msg("%s", train_error());
    return got.config.precision;
}

static void types_masters_and_scale_follow_from_the_sections(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        ring_dtype params, grads, wire;
        bool masters, skips, scales;
    } cases[] = {
        {"", RING_FLOAT32, RING_FLOAT32, RING_FLOAT32, false, false, false},
        {"fp16: {enabled: false, loss_scale: 0}, bf16: {enabled: false}", RING_FLOAT32,
         RING_FLOAT32, RING_FLOAT32, false, false, false},
        {"fp16: {enabled: true}", RING_FLOAT16, RING_FLOAT16, RING_FLOAT16, true, true, true},
        {"bf16: {enabled: true}", RING_BFLOAT16, RING_BFLOAT16, RING_BFLOAT16, true, true, false},
        {"bfloat16: {enabled: true}", RING_BFLOAT16, RING_BFLOAT16, RING_BFLOAT16, true, true,
         false},
        {"bf16: {enabled: true, check_grad_overflow: false}", RING_BFLOAT16, RING_BFLOAT16,
         RING_BFLOAT16, true, false, false},
        {"bf16: {enabled: true}, data_types: {grad_accum_dtype: \"fp32\"}", RING_BFLOAT16,
         RING_FLOAT32, RING_BFLOAT16, true, true, false},
        {"fp16: {enabled: true}, communication_data_type: \"FP32\"", RING_FLOAT16, RING_FLOAT16,
         RING_FLOAT32, true, true, true},
        {"communication_data_type: \"bf16\"", RING_FLOAT32, RING_FLOAT32, RING_BFLOAT16, false,
         false, false},
        {"amp: {enabled: false, opt_level: \"O2\"}", RING_FLOAT32, RING_FLOAT32, RING_FLOAT32,
         false, false, false},
        {"amp: {enabled: true}", RING_FLOAT16, RING_FLOAT16, RING_FLOAT16, true, true, true},
        {"amp: {enabled: true, opt_level: \"O0\"}", RING_FLOAT32, RING_FLOAT32, RING_FLOAT32, false,
         false, false},
        {"amp: {enabled: true, opt_level: \"O1\"}", RING_FLOAT16, RING_FLOAT16, RING_FLOAT16, true,
         true, true},
        {"amp: {enabled: true, opt_level: \"o2\"}", RING_FLOAT16, RING_FLOAT16, RING_FLOAT16, true,
         true, true},
        {"amp: {enabled: true, opt_level: \"O3\"}", RING_FLOAT16, RING_FLOAT16, RING_FLOAT16, false,
         false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const precision_config got = precision_of(cases[i].keys, (config_options){0});
        if (got.params != cases[i].params || got.grads != cases[i].grads ||
            got.wire != cases[i].wire || got.masters != cases[i].masters ||
            got.skips != cases[i].skips || got.scales != cases[i].scales)
            fail_msg("%s: %s, %s, %s, masters %d, skips %d, scales %d", cases[i].keys,
                     precision_name(got.params), precision_name(got.grads),
                     precision_name(got.wire), got.masters, got.skips, got.scales);
    }
}

static void the_scale_is_as_deepspeed_sets_it(void **state)
{
    (void)state;
    const precision_settings initial = precision_of("", (config_options){0}).set;
    assert_near(initial.loss_scale, 0, 0, 0);
    assert_int_equal(initial.scale_power, 16);
    assert_int_equal(initial.scale_window, 1000);
    assert_int_equal(initial.hysteresis, 2);
    assert_int_equal(initial.min_scale, 1);
    assert_false(initial.consecutive_hysteresis);
    const precision_config got = precision_of("fp16: {enabled: true, loss_scale: 128.5, "
                                              "initial_scale_power: 12, loss_scale_window: 5e2, "
                                              "hysteresis: 3, consecutive_hysteresis: true, "
                                              "min_loss_scale: 4}",
                                              (config_options){.compat_ds_0_13 = true});
    assert_near(got.set.loss_scale, 128.5, 0, 0);
    assert_int_equal(got.set.scale_power, 12);
    assert_int_equal(got.set.scale_window, 500);
    assert_int_equal(got.set.hysteresis, 3);
    assert_int_equal(got.set.min_scale, 4);
    assert_true(got.set.consecutive_hysteresis);
    assert_true(got.old_window);
    assert_false(precision_of("", (config_options){0}).old_window);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{" SGD ", fp16: {enabled: true},\n bfloat16: {enabled: true}}",
         "c.json: bfloat16 and fp16 modes cannot be simultaneously enabled"},
        {"{" SGD ", fp16: {enabled: true},\n amp: {enabled: true}}",
         "c.json:2:8: amp does not go with fp16 or bf16, as in DeepSpeed; keep one of them"},
        {"{" SGD ", zero_optimization: {stage: 1},\n amp: {enabled: true}}",
         "c.json:2:8: amp does not go with zero_optimization, as in DeepSpeed; use fp16, which "
         "does what amp's O2 does"},
        {"{" SGD ",\n amp: {enabled: true, opt_level: \"O4\"}}",
         "c.json:2:23: amp.opt_level \"O4\" is not supported yet by this version: write one of O0, "
         "O1, O2, O3"},
        {"{" SGD ",\n data_types: {grad_accum_dtype: \"fp16\"}}",
         "c.json:2:15: data_types.grad_accum_dtype must be fp32 or the type of the parameters"},
        {"{" SGD ",\n fp16: {loss_scale_window: 0}}",
         "c.json:2:9: fp16.loss_scale_window must be at least 1, not 0"},
        {"{" SGD ",\n fp16: {min_loss_scale: 0}}",
         "c.json:2:9: fp16.min_loss_scale must be at least 1, not 0"},
        {"{" SGD ",\n fp16: {loss_scale: -1}}",
         "c.json:2:9: fp16.loss_scale must be at least 0, not -1"},
        {"{" SGD ",\n fp16: {enabled: true, fp16_master_weights_and_grads: true}}",
         "c.json:2:24: fp16.fp16_master_weights_and_grads = true is not supported yet by this "
         "version: set it to false: masters are float32"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_not_equal(parse(cases[i].text).status, RING_OK);
        assert_string_equal(train_error(), cases[i].error);
    }
}

/* --fp16 and --bf16. */
static void options_stand_for_auto_and_for_nothing(void **state)
{
    (void)state;
    const config_options fp16 = {.fp16 = true}, bf16 = {.bf16 = true};
    assert_int_equal(precision_of("", fp16).params, RING_FLOAT16);
    assert_int_equal(precision_of("bf16: {}", bf16).params, RING_BFLOAT16);
    const parsed got = parse_with("{" SGD ", fp16: {enabled: \"auto\"}}", fp16);
    assert_int_equal(got.config.precision.params, RING_FLOAT16);
    assert_string_equal(got.notes, "fp16.enabled: auto -> true\n");
    assert_int_equal(parse("{" SGD ", fp16: {enabled: \"auto\"}}").config.precision.params,
                     RING_FLOAT32);
    assert_int_equal(parse_with("{" SGD ",\n fp16: {enabled: false}}", fp16).status,
                     RING_ERR_CONFIG);
    assert_string_equal(train_error(), "c.json:2:9: fp16.enabled is false, but --fp16 is given; "
                                       "leave one of them out");
    assert_int_equal(parse_with("{" SGD "}", (config_options){.fp16 = true, .bf16 = true}).status,
                     RING_ERR_CONFIG);
}

static void levels_of_amp_are_told(void **state)
{
    (void)state;
    static const char *const starts[] = {
        "amp.opt_level O0: training is in float32", "amp: as fp16, ", "amp: as fp16, ",
        "amp.opt_level O3: parameters in float16 without float32 masters"};
    for (int level = 0; level < 4; level++) {
        char text[128];
        snprintf(text, sizeof text, "{" SGD ", amp: {enabled: true, opt_level: \"O%d\"}}", level);
        const parsed got = parse(text);
        assert_int_equal(got.status, RING_OK);
        assert_ptr_equal(strstr(got.notes, starts[level]), got.notes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_masters_and_scale_follow_from_the_sections),
        cmocka_unit_test(the_scale_is_as_deepspeed_sets_it),
        cmocka_unit_test(what_does_not_go_together_is_refused),
        cmocka_unit_test(options_stand_for_auto_and_for_nothing),
        cmocka_unit_test(levels_of_amp_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
