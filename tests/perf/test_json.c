/* SPDX-License-Identifier: Apache-2.0
 * The lines of --json: whole objects with the promised keys. */
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#include <cjson/cJSON.h>

/* The output of json_result(), parsed; NULL if it is not one line with one object. */
static cJSON *written(const perf_case *c, const perf_result *result)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_result(out, c, result);
    fclose(out);
    const bool one_line = size > 0 && strchr(text, '\n') == text + size - 1;
    cJSON *object = one_line ? cJSON_Parse(text) : NULL;
    free(text);
    return object;
}

static const perf_result example = {.measured = true,
                                    .checked = true,
                                    .time_us = 12.5,
                                    .algbw = 3,
                                    .busbw = 4.5,
                                    .wrong = {.elements = 7},
                                    .predicted_us = 11,
                                    .transport = "shm",
                                    .algorithm = "direct"};

static perf_case make_case(bool in_place)
{
    return (perf_case){.collective = perf_collective_find("all_reduce"),
                       .dtype = RING_FLOAT16,
                       .op = RING_AVG,
                       .ranks = 4,
                       .count = 512,
                       .in_place = in_place};
}

static void the_promised_keys_are_there_in_order(void **state)
{
    static const char *const keys[] = {"collective", "bytes",       "count",     "dtype",
                                       "op",         "ranks",       "transport", "algorithm",
                                       "in_place",   "time_us",     "algbw",     "busbw",
                                       "wrong",      "predicted_us"};
    const perf_case c = make_case(false);
    cJSON *object = written(&c, &example);
    assert_non_null(object);
    const cJSON *item = object->child;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++, item = item->next) {
        assert_non_null(item);
        assert_string_equal(item->string, keys[i]);
    }
    assert_null(item);
    cJSON_Delete(object);
}

static void values_are_those_of_the_measurement(void **state)
{
    const perf_case c = make_case(true);
    cJSON *object = written(&c, &example);
    assert_string_equal(cJSON_GetObjectItem(object, "collective")->valuestring, "all_reduce");
    assert_string_equal(cJSON_GetObjectItem(object, "dtype")->valuestring, "float16");
    assert_string_equal(cJSON_GetObjectItem(object, "op")->valuestring, "avg");
    assert_string_equal(cJSON_GetObjectItem(object, "transport")->valuestring, "shm");
    assert_int_equal(cJSON_GetObjectItem(object, "bytes")->valueint, 1024);
    assert_int_equal(cJSON_GetObjectItem(object, "wrong")->valueint, 7);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(object, "in_place")));
    assert_true(cJSON_GetObjectItem(object, "time_us")->valuedouble == 12.5);
    cJSON_Delete(object);
}

static void values_that_were_not_checked_are_null(void **state)
{
    const perf_case c = make_case(false);
    perf_result unchecked = example;
    unchecked.checked = false;
    cJSON *object = written(&c, &unchecked);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(object, "wrong")));
    cJSON_Delete(object);
}

static void odd_text_and_numbers_stay_json(void **state)
{
    const perf_case c = make_case(false);
    perf_result odd = example;
    snprintf(odd.transport, sizeof odd.transport, "a\"b\\c\nd");
    odd.predicted_us = (double)INFINITY;
    cJSON *object = written(&c, &odd);
    assert_non_null(object);
    assert_string_equal(cJSON_GetObjectItem(object, "transport")->valuestring, "a\"b\\c\nd");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(object, "predicted_us")));
    cJSON_Delete(object);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_promised_keys_are_there_in_order),
        cmocka_unit_test(values_are_those_of_the_measurement),
        cmocka_unit_test(values_that_were_not_checked_are_null),
        cmocka_unit_test(odd_text_and_numbers_stay_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
