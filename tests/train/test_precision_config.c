/* SPDX-License-Identifier: Apache-2.0
 * Results of the sections fp16, bf16, amp and data_types. */
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

static void the_window_is_as_the_release_counts_it(void **state)
{
    const precision_config got = precision_of("", (config_options){.compat_ds_0_13 = true});
    assert_true(got.old_window);
    assert_false(precision_of("", (config_options){0}).old_window);
}

/* --fp16 and --bf16. */
static void options_stand_for_auto_and_for_nothing(void **state)
{
    const config_options fp16 = {.fp16 = true}, bf16 = {.bf16 = true};
    assert_int_equal(precision_of("", fp16).params, RING_FLOAT16);
    assert_int_equal(precision_of("bf16: {}", bf16).params, RING_BFLOAT16);
    assert_int_equal(precision_of("fp16: {enabled: \"auto\"}", fp16).params, RING_FLOAT16);
    assert_int_equal(precision_of("fp16: {enabled: \"auto\"}", (config_options){0}).params,
                     RING_FLOAT32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_masters_and_scale_follow_from_the_sections),
        cmocka_unit_test(the_window_is_as_the_release_counts_it),
        cmocka_unit_test(options_stand_for_auto_and_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
