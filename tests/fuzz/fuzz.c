/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver: mutated inputs for every parser, or one of them. See fuzz.h.
 *
 *     test_fuzz [--only TARGET] [--mutations N] [--seed S] [--at N] [--seconds S] [--limit S]
 *     test_fuzz --list
 *
 * RING_TEST_FUZZ=N in the environment: N mutations, however long they take.
 */
#include "crash_report.h"
#include "mutate.h"
#include "words.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FUZZ_TARGETS
#define FUZZ_TARGETS "targets.h"
#endif

#define TARGET(name) extern const fuzz_target fuzz_##name;
#include FUZZ_TARGETS
#undef TARGET

static const fuzz_target *const targets[] = {
#define TARGET(name) &fuzz_##name,
#include FUZZ_TARGETS
#undef TARGET
};

enum { TARGETS = sizeof targets / sizeof *targets, SHORT_RUN = 20000, INPUT_SECONDS = 30 };

typedef struct fuzz_options {
    const fuzz_target *only; /* NULL: all   */
    uint64_t mutations, seed, at;
    bool has_at;    /* only that input */
    double seconds; /* a target at most */
    int limit;      /* seconds an input may take */
} fuzz_options;

/* ---- Seeds ---------------------------------------------------------------------- */

static void add(fuzz_seeds *to, const void *bytes, size_t size, bool valid)
{
    unsigned char *copy = malloc(max_size(size, 1));
    if (copy == NULL || to->count == FUZZ_SEEDS)
        abort();
    memcpy(copy, bytes, size);
    to->all[to->count++] = (fuzz_seed){copy, size, valid};
}

void fuzz_add(fuzz_seeds *to, const void *bytes, size_t size)
{
    add(to, bytes, size, true);
}

void fuzz_add_text(fuzz_seeds *to, const char *text)
{
    add(to, text, strlen(text), true);
}

void fuzz_add_any(fuzz_seeds *to, const void *bytes, size_t size)
{
    add(to, bytes, size, false);
}

void fuzz_add_any_text(fuzz_seeds *to, const char *text)
{
    add(to, text, strlen(text), false);
}

void fuzz_free(fuzz_seeds *seeds)
{
    for (size_t i = 0; i < seeds->count; i++)
        free(seeds->all[i].bytes);
    seeds->count = 0;
}

/* ---- Checks --------------------------------------------------------------------- */

bool fuzz_is_printable(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        const bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F */
        if (*at < 0x20 || *at == 0x7f || c1)
            return false;
    }
    return true;
}

static bool is_failure(ring_status status)
{
    switch ((int)status) {
#define STATUS_CASE(name, value, text) \
    case value: \
        return value != RING_OK && value != RING_IN_PROGRESS;
        RING_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return false;
    }
}

void fuzz_check_refusal(ring_status status, const char *reason)
{
    must(is_failure(status));
    must(reason[0] != '\0');
    must(fuzz_is_printable(reason));
}

/* ---- One input ------------------------------------------------------------------ */

/* A copy without a byte after the input, so that sanitizers catch reads beyond it. */
static unsigned char *exact(const fuzz_target *target, const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size + (target->text || size == 0));
    if (copy == NULL)
        abort();
    memcpy(copy, bytes, size);
    if (target->text)
        copy[size] = '\0';
    return copy;
}

/* @return true if it was accepted. */
static bool run_input(const fuzz_target *target, const report_input *input, bool valid)
{
    report_begin(input);
    fail_clear();
    const ring_status status = target->parse(input->bytes, input->size);
    if (status != RING_OK && status != RING_IN_PROGRESS && target->reason != NULL)
        fuzz_check_refusal(status, target->reason());
    if (valid && status != RING_OK)
        fprintf(stderr, "refused: %s\n", target->reason != NULL ? target->reason() : "");
    must(!valid || status == RING_OK);
    report_end();
    return status == RING_OK;
}

/* ---- One target ----------------------------------------------------------------- */

typedef struct fuzz_tally {
    uint64_t inputs, accepted;
    double slowest; /* seconds */
} fuzz_tally;

static void run_number(const fuzz_target *target, const fuzz_seeds *seeds, uint64_t seed,
                       uint64_t number, unsigned char *room, fuzz_tally *tally)
{
    const size_t size = mutate(target, seeds, seed, number, room);
    unsigned char *bytes = exact(target, room, size);
    const bool valid = number < seeds->count && seeds->all[number].valid;
    const double started = clock_now();
    tally->accepted += run_input(target, &(report_input){target->name, seed, number, bytes, size},
                                 valid);
    tally->slowest = fmax(tally->slowest, clock_now() - started);
    tally->inputs++;
    free(bytes);
}

static fuzz_tally run_numbers(const fuzz_target *target, const fuzz_seeds *seeds,
                              const fuzz_options *o)
{
    fuzz_tally tally = {0};
    const double end = clock_now() + o->seconds;
    const uint64_t first = o->has_at ? o->at : 0;
    const uint64_t last = o->has_at ? o->at : seeds->count + o->mutations - 1;
    unsigned char *room = malloc(target->most);
    if (room == NULL)
        abort();
    for (uint64_t n = first; n <= last && (n < seeds->count || clock_now() < end); n++)
        run_number(target, seeds, o->seed, n, room, &tally);
    free(room);
    return tally;
}

static void run_target(const fuzz_target *target, const fuzz_options *o)
{
    fuzz_seeds seeds = {.count = 0};
    const double started = clock_now();
    target->seeds(&seeds);
    const fuzz_tally t = run_numbers(target, &seeds, o);
    printf("%-18s %8llu inputs, %8llu accepted, %8llu refused, %7.2f s, slowest %.2f ms\n",
           target->name, (unsigned long long)t.inputs, (unsigned long long)t.accepted,
           (unsigned long long)(t.inputs - t.accepted), clock_now() - started, t.slowest * 1e3);
    fflush(stdout);
    fuzz_free(&seeds);
    if (!report_leaks())
        return;
    fprintf(stderr, "%s has lost memory, by one of %llu inputs of seed %llu\n", target->name,
            (unsigned long long)t.inputs, (unsigned long long)o->seed);
    _Exit(1);
}

/* ---- Options -------------------------------------------------------------------- */

static const fuzz_target *find_target(const char *name, struct argp_state *state)
{
    const char *names[TARGETS];
    for (size_t i = 0; i < TARGETS; i++) {
        names[i] = targets[i]->name;
        if (strcmp(names[i], name) == 0)
            return targets[i];
    }
    const char *nearest = words_nearest(name, names, TARGETS);
    argp_error(state, "--only %s: no such target%s%s; see --list", name,
               nearest != NULL ? "; nearest is " : "", nearest != NULL ? nearest : "");
    return NULL;
}

static _Noreturn void list_targets(void)
{
    for (size_t i = 0; i < TARGETS; i++)
        printf("%-18s %s\n", targets[i]->name, targets[i]->reads);
    exit(0);
}

static uint64_t number(const char *option, const char *text, struct argp_state *state)
{
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0')
        argp_error(state, "%s %s: want a whole number", option, text);
    return value;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    fuzz_options *o = state->input;
    switch (key) {
    case 'o':
        o->only = find_target(value, state);
        return 0;
    case 'm':
        o->mutations = number("--mutations", value, state);
        return 0;
    case 's':
        o->seed = number("--seed", value, state);
        return 0;
    case 'a':
        o->at = number("--at", value, state);
        o->has_at = true;
        return 0;
    case 't':
        o->seconds = strtod(value, NULL);
        return 0;
    case 'L':
        o->limit = (int)number("--limit", value, state);
        return 0;
    case 'l':
        list_targets();
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The same command is the short run and the long one. */
static void take_environment(fuzz_options *o)
{
    const char *mutations = getenv("RING_TEST_FUZZ");
    if (mutations == NULL || *mutations == '\0')
        return;
    o->mutations = strtoull(mutations, NULL, 10);
    o->seconds = HUGE_VAL;
}

static fuzz_options read_options(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"only", 'o', "TARGET", 0, "this one; default: all", 0},
        {"mutations", 'm', "N", 0, "inputs of a target, besides its seeds; default: 20000", 0},
        {"seed", 's', "S", 0, "of the mutations; default: 1", 0},
        {"at", 'a', "N", 0, "input number N alone", 0},
        {"seconds", 't', "S", 0, "that a target takes at most; default: what it needs", 0},
        {"limit", 'L', "S", 0, "seconds that an input may take; default: 30", 0},
        {"list", 'l', NULL, 0, "the targets, and what they read", 0},
        {0}};
    const struct argp argp = {table, parse, NULL, "Gives parsers mutated inputs.",
                              NULL,  NULL,  NULL};
    fuzz_options options = {.mutations = SHORT_RUN,
                            .seed = 1,
                            .seconds = HUGE_VAL,
                            .limit = INPUT_SECONDS};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    take_environment(&options);
    return options;
}

int main(int argc, char **argv)
{
    const fuzz_options options = read_options(argc, argv);
    log_set_level(LOG_ERROR);
    report_prepare(options.limit);
    for (size_t i = 0; i < TARGETS; i++)
        if (options.only == NULL || options.only == targets[i])
            run_target(targets[i], &options);
    return 0;
}
