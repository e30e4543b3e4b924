/* SPDX-License-Identifier: Apache-2.0
 * Checks command lines: values reach their fields, and errors are one line and status 2. */
#include "args.h"
#include "util/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

typedef struct wishes {
    bool loud;
    int count, kind, off;
    size_t bytes;
    double seconds;
    const char *file;
    char **words;
    int word_count;
} wishes;

static const char *const kinds[] = {"round", "square", NULL};

#define AT(member) ARGS_AT(wishes, member)
static const args_row rows[] = {
    {.help = "What:"},
    {"loud", 'l', NULL, "Say more", args_flag, AT(loud)},
    {"the-count", 'n', "N", "How many", args_whole, AT(count), .least = -1, .most = 9},
    {"bytes", 'b', "SIZE", "How much", args_size, AT(bytes), .least = 8},
    {"seconds", 0, "S", "How long", args_seconds, AT(seconds)},
    {"kind", 0, "NAME", "Which", args_name, AT(kind), .names = kinds},
    {"sort", .flags = OPTION_ALIAS},
    {"file", 0, "FILE", "Where", args_text, AT(file)},
    {"off", 0, "0", "only 0: there is none", args_whole, AT(off)},
    {"volume", 'V', "N", "Version has this letter elsewhere", args_whole, AT(count), .most = 9},
    {0},
};

static int take_one(char **words, int count, void *out)
{
    wishes *w = out;
    w->words = w->words ? w->words : words;
    w->word_count++;
    return 1;
}

static int take_all(char **words, int count, void *out)
{
    wishes *w = out;
    w->words = words;
    return w->word_count = count;
}

static void guess(const char *word)
{
    if (strcmp(word, "secret") == 0)
        args_fail("no secrets");
}

static const args_program taker = {"thing",  rows,  "WORD...", "Does.",
                                   take_one, false, guess,     false};
static const args_program starter = {"thing",  rows, "WORD...", "Does.",
                                     take_all, true, NULL,      false};
static const args_program wordless = {"thing", rows, NULL, "Does.", NULL, false, NULL, false};

static char line_copy[512];

static int split(const char *line, char **argv)
{
    int argc = 1;
    argv[0] = "path/to/thing";
    snprintf(line_copy, sizeof line_copy, "%s", line);
    for (char *word = strtok(line_copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}

static wishes parse(const args_program *program, const char *line)
{
    wishes w = {.kind = -1};
    static char *argv[64];
    const int argc = split(line, argv);
    args_parse(program, argc, argv, &w);
    for (int i = 1; i < argc; i++)
        if (argv[i] < line_copy || argv[i] >= line_copy + sizeof line_copy)
            free(argv[i]); /* a longer word, as main() keeps it */
    return w;
}

typedef struct trial {
    const args_program *program;
    const char *line;
} trial;

static void try_line(const void *arg)
{
    const trial *t = arg;
    parse(t->program, t->line);
}

static int end_of(const args_program *program, const char *line)
{
    return child_run(try_line, &(trial){program, line});
}

static void values_reach_their_fields(void **state)
{
    assert_int_equal(parse(&taker, "--sort=square").kind, 1);
    const wishes w = parse(&taker, "-l -n -1 --bytes 1.5K --seconds=2.5 --sort square --file a=b");
    assert_true(w.loud);
    assert_int_equal(w.count, -1);
    assert_int_equal(w.bytes, 1536);
    assert_true(w.seconds == 2.5);
    assert_int_equal(w.kind, 1);
    assert_string_equal(w.file, "a=b");
}

static void names_may_be_spelled_in_other_ways(void **state)
{
    static const char *const ways[] = {"--the_count 7", "--the-count=7", "--the_c 7",
                                       "-the-count 7",  "-n7",           "-ln7",
                                       "-ln 7",         "-V 7"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        assert_int_equal(parse(&taker, ways[i]).count, 7);
}

static void words_may_stand_anywhere_or_end_the_options(void **state)
{
    const wishes w = parse(&taker, "one -n 3 two -- -l");
    assert_int_equal(w.word_count, 3);
    assert_int_equal(w.count, 3);
    assert_false(w.loud);
    const wishes rest = parse(&starter, "-n 3 other -n 4 --bogus");
    assert_int_equal(rest.word_count, 4);
    assert_string_equal(rest.words[3], "--bogus");
    assert_int_equal(rest.count, 3);
}

static void what_is_wrong_is_one_line(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"-n 10", "thing: -n 10: expected a whole number from -1 to 9; see thing --help\n"},
        {"--the_count=x", "thing: --the-count=x: expected a whole number from -1 to 9; see"},
        {"-nx", "thing: -nx: expected"},
        {"--bytes 4",
         "thing: --bytes 4: expected a whole number of bytes from 8 to 4194304T, such as "
         "64, 4K or 1.5M; see"},
        {"--bytes 0x10", "thing: --bytes 0x10: expected a whole number of bytes"},
        {"--seconds soon", "thing: --seconds soon: expected seconds from 0 to 1e+14; see"},
        {"--seconds 1e15", "thing: --seconds 1e15: expected seconds from 0 to 1e+14; see"},
        {"--kind oval", "thing: --kind oval: expected round or square; see"},
        {"--sort oval", "thing: --sort oval: expected round or square; see"},
        {"--file=", "thing: --file=: the value is empty; see"},
        {"--off 1", "thing: --off 1: only 0: there is none; see"},
        {"-n", "thing: -n needs a value; see"},
        {"--kind", "thing: --kind needs a value; see"},
        {"--loud=1", "thing: --loud=1: the option takes no value; see"},
        {"-Q", "thing: unknown option '-Q'; see"},
        {"-lQ", "thing: unknown option '-Q'; see"},
        {"--kindd x", "thing: unknown option '--kindd'; did you mean '--kind'?; see"},
        {"--qqqqqqqq", "thing: unknown option '--qqqqqqqq'; see"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(end_of(&wordless, cases[i].line), ARGS_WRONG);
        assert_memory_equal(child_said, cases[i].says, strlen(cases[i].says));
        assert_string_equal(strchr(child_said, '\n'), "\n");
    }
    assert_int_equal(end_of(&wordless, "extra"), ARGS_WRONG);
    assert_string_equal(child_said, "thing: unexpected argument 'extra'; see thing --help\n");
    assert_int_equal(end_of(&taker, "--secret"), ARGS_WRONG);
    assert_string_equal(child_said, "thing: no secrets; see thing --help\n");
    assert_int_equal(end_of(&starter, "--qqqqqqqq x"), ARGS_WRONG);
    assert_non_null(strstr(child_said, "write the options of the program after its name"));
}

static void help_usage_and_version_end_the_program(void **state)
{
    static const char *const ways[] = {"--help", "-h", "-?", "--he"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(end_of(&taker, ways[i]), 0);
        assert_non_null(strstr(child_said, "Usage: thing [OPTION...] WORD..."));
        assert_non_null(strstr(child_said, "\n  -n, --the-count=N"));
        assert_non_null(strstr(child_said, "\n  -h, --help"));
        assert_non_null(strstr(child_said, "--kind=NAME, --sort=NAME"));
    }
    assert_int_equal(end_of(&taker, "--usage"), 0);
    assert_int_equal(end_of(&taker, "--version"), 0);
    assert_non_null(strstr(child_said, "thing (libring) "));
    assert_non_null(strstr(child_said, "\ncompiler: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_reach_their_fields),
        cmocka_unit_test(names_may_be_spelled_in_other_ways),
        cmocka_unit_test(words_may_stand_anywhere_or_end_the_options),
        cmocka_unit_test(what_is_wrong_is_one_line),
        cmocka_unit_test(help_usage_and_version_end_the_program),
    };
    return cmocka_run_group_tests_name("util.args", tests, NULL, NULL);
}
