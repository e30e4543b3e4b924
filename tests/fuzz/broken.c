/* SPDX-License-Identifier: Apache-2.0
 * Parsers of a number below 200 in one byte, each with one fault that only some inputs meet: the
 * driver has to find every one. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 200, FAULTY = 77 };

static void seed_number(fuzz_seeds *to)
{
    fuzz_add(to, "\x10 and more", 10);
}

static bool is_faulty(const unsigned char *bytes, size_t size)
{
    return size > 0 && bytes[0] == FAULTY;
}

static ring_status parse_number(const unsigned char *bytes, size_t size)
{
    if (size == 0 || bytes[0] >= LIMIT)
        return fail(RING_ERR_CONFIG, "want a number below %d", LIMIT);
    return RING_OK;
}

static ring_status parse_crashes(const unsigned char *bytes, size_t size)
{
    if (is_faulty(bytes, size))
        abort();
    return parse_number(bytes, size);
}

/* Without a sanitizer nobody sees that. */
static ring_status parse_reads_on(const unsigned char *bytes, size_t size)
{
    const volatile unsigned char *at = bytes;
    return is_faulty(bytes, size) && at[size] == 0 ? RING_OK : parse_number(bytes, size);
}

static ring_status parse_hangs(const unsigned char *bytes, size_t size)
{
    const volatile unsigned char *at = bytes;
    while (is_faulty(bytes, size) && at[0] == FAULTY)
        continue;
    return parse_number(bytes, size);
}

static ring_status parse_ends_the_program(const unsigned char *bytes, size_t size)
{
    if (is_faulty(bytes, size))
        exit(0);
    return parse_number(bytes, size);
}

static ring_status parse_accepts_too_much(const unsigned char *bytes, size_t size)
{
    must(!is_faulty(bytes, size));
    return parse_number(bytes, size);
}

static ring_status parse_refuses_too_much(const unsigned char *bytes, size_t size)
{
    return fail(RING_ERR_CONFIG, "none of %zu bytes is good enough", size);
}

static ring_status parse_gives_no_reason(const unsigned char *bytes, size_t size)
{
    return is_faulty(bytes, size) ? RING_ERR_CONFIG : parse_number(bytes, size);
}

static const char *raw_reason(void)
{
    return "the number \x1b[2J";
}

static ring_status parse_gives_no_status(const unsigned char *bytes, size_t size)
{
    if (is_faulty(bytes, size))
        return fail((ring_status)12345, "no status");
    return parse_number(bytes, size);
}

static ring_status parse_loses_memory(const unsigned char *bytes, size_t size)
{
    void *volatile lost = is_faulty(bytes, size) ? malloc(100) : NULL;
    (void)lost;
    return parse_number(bytes, size);
}

#define BROKEN(what, how, why) \
    const fuzz_target fuzz_##what = {.name = #what, \
                                     .reads = "a number", \
                                     .most = 16, \
                                     .seeds = seed_number, \
                                     .parse = how, \
                                     .reason = why}

BROKEN(crashes, parse_crashes, fail_text);
BROKEN(reads_on, parse_reads_on, fail_text);
BROKEN(hangs, parse_hangs, fail_text);
BROKEN(ends_the_program, parse_ends_the_program, fail_text);
BROKEN(accepts_too_much, parse_accepts_too_much, fail_text);
BROKEN(refuses_too_much, parse_refuses_too_much, fail_text);
BROKEN(gives_no_reason, parse_gives_no_reason, fail_text);
BROKEN(gives_orders, parse_number, raw_reason);
BROKEN(gives_no_status, parse_gives_no_status, fail_text);
BROKEN(loses_memory, parse_loses_memory, fail_text);
