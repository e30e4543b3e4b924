/* SPDX-License-Identifier: Apache-2.0
 *
 * json: writes results as JSON objects. Scripts depend on the keys, so they must not change. A
 * number that is not finite is written as null.
 */
#include "json.h"

#include <math.h>

void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    fputc('"', out);
}

void json_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    else
        fputs("null", out);
}

static void named_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    json_string(out, text);
}

static void named_number(FILE *out, const char *key, double value)
{
    fprintf(out, ", \"%s\": ", key);
    json_number(out, value);
}

void json_result(FILE *out, const perf_case *c, const perf_result *result)
{
    fputs("{\"collective\": ", out);
    json_string(out, c->collective->name);
    fprintf(out, ", \"bytes\": %zu, \"count\": %zu", perf_case_bytes(c), c->count);
    named_string(out, "dtype", ring_dtype_name(c->dtype));
    named_string(out, "op", c->collective->reduces ? ring_op_name(c->op) : "none");
    fprintf(out, ", \"ranks\": %d", c->ranks);
    named_string(out, "transport", result->transport);
    named_string(out, "algorithm", result->algorithm);
    fprintf(out, ", \"in_place\": %s", c->in_place ? "true" : "false");
    named_number(out, "time_us", result->time_us);
    named_number(out, "algbw", result->algbw);
    named_number(out, "busbw", result->busbw);
    if (result->checked)
        fprintf(out, ", \"wrong\": %llu", (unsigned long long)result->wrong.elements);
    else
        fputs(", \"wrong\": null", out);
    named_number(out, "predicted_us",
                 result->predicted_us > 0 ? result->predicted_us : (double)NAN);
    fputs("}\n", out);
    fflush(out);
}
