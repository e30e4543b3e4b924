/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares configurations with the messages they cause, from the files in config/. A case is
 *
 *     === title [option ...]
 *     the configuration
 *     --- error | error has | notes | notes have | settings
 *     lines
 *
 * "error" and "notes" are the whole text; of "error has" and "notes have" each line is in it.
 * "settings" are lines of config_list(). Without an error the configuration is read. Options are
 *
 *     newline, percent     the text ends with a newline; %XX in it is a byte
 *     accelerate, warn, compat, fp16, bf16, batch=N     config_options
 *     unsupported          the error is RING_ERR_UNSUPPORTED, not RING_ERR_CONFIG
 *     tensors=N:R, stages=N:R, ranks=N, keep=N     then N tensor ranks or stages of R ranks are
 *                          asked for, or the batch is settled for N ranks (keep: the global one)
 *     width=N, updates=N   and the rest that is "auto" is filled in
 *
 * Usage: test_train.config_cases FILE... */
#include "check.h"
#include "parsing.h"

#include <errors.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 4096, CASES_MAX = 256 };

typedef enum part { INPUT, ERROR, ERROR_HAS, NOTES, NOTES_HAVE, SETTINGS, PARTS } part;

static const char *const part_names[PARTS] = {[ERROR] = "error",
                                              [ERROR_HAS] = "error has",
                                              [NOTES] = "notes",
                                              [NOTES_HAVE] = "notes have",
                                              [SETTINGS] = "settings"};

typedef struct config_case {
    const char *file;
    int line;
    char title[256];
    const char *options; /* in title, "" without any */
    char text[PARTS][TEXT_MAX];
    bool has[PARTS];
} config_case;

static config_case *cases[CASES_MAX];
static struct CMUnitTest tests[CASES_MAX];
static size_t count;

/* ---- The files ------------------------------------------------------------------------------ */

/* Before any test runs. */
static _Noreturn void refuse(const char *file, int line, const char *why, const char *what)
{
    fprintf(stderr, "%s:%d: %s %s\n", file, line, why, what);
    exit(1);
}

/* Options with a number end with "=". */
static void check_options(const config_case *made)
{
    static const char *const known[] = {"newline", "percent", "accelerate",  "warn",   "compat",
                                        "fp16",    "bf16",    "unsupported", "batch=", "tensors=",
                                        "stages=", "ranks=",  "keep=",       "width=", "updates="};
    char words[sizeof made->title];
    snprintf(words, sizeof words, "%s", made->options);
    for (char *rest, *word = strtok_r(words, "[ ]", &rest); word != NULL;
         word = strtok_r(NULL, "[ ]", &rest)) {
        const size_t length = strcspn(word, "=") + (strchr(word, '=') != NULL);
        bool is_known = false;
        for (size_t i = 0; i < COUNT_OF(known); i++)
            is_known |= strlen(known[i]) == length && strncmp(word, known[i], length) == 0;
        if (!is_known)
            refuse(made->file, made->line, "there is no option", word);
    }
}

static void begin_case(const char *file, int line, const char *title)
{
    config_case *made = calloc(1, sizeof *made);
    if (made == NULL || count == CASES_MAX)
        refuse(file, line, "no room for", title);
    made->file = file;
    made->line = line;
    snprintf(made->title, sizeof made->title, "%.*s", (int)strcspn(title, "\n"), title);
    const char *bracket = strrchr(made->title, '[');
    made->options = bracket != NULL ? bracket : "";
    check_options(made);
    cases[count++] = made;
}

static part part_of(const char *name, const char *file, int line)
{
    for (part p = ERROR; p < PARTS; p++) {
        if (strlen(part_names[p]) == strcspn(name, "\n") &&
            strncmp(name, part_names[p], strlen(part_names[p])) == 0)
            return p;
    }
    refuse(file, line, "there is no part", name);
}

/* A part that is in everything, and a status without an error, would judge nothing. */
static void check_parts(const config_case *made)
{
    const bool fails = made->has[ERROR] || made->has[ERROR_HAS];
    const part some[] = {ERROR, ERROR_HAS, NOTES_HAVE, SETTINGS};
    for (size_t i = 0; i < COUNT_OF(some); i++) {
        if (made->has[some[i]] && made->text[some[i]][strspn(made->text[some[i]], "\n")] == '\0')
            refuse(made->file, made->line, "nothing in the part", part_names[some[i]]);
    }
    if (strstr(made->options, "unsupported") != NULL && !fails)
        refuse(made->file, made->line, "no error for", "unsupported");
}

static void read_cases(const char *path)
{
    char line[TEXT_MAX];
    part p = INPUT;
    FILE *file = fopen(path, "r");
    const size_t before = count;
    if (file == NULL)
        refuse(path, 0, "cannot be read:", path);
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        if (strncmp(line, "=== ", 4) == 0) {
            begin_case(path, number, line + 4);
            p = INPUT;
        } else if (strncmp(line, "--- ", 4) == 0) {
            p = part_of(line + 4, path, number);
            if (count == before)
                refuse(path, number, "no case before", line);
            cases[count - 1]->has[p] = true;
        } else if (count > before) {
            char *text = cases[count - 1]->text[p];
            if (strlen(text) + strlen(line) >= TEXT_MAX)
                refuse(path, number, "too long:", line);
            strcat(text, line);
        }
    }
    fclose(file);
    if (count == before)
        refuse(path, 0, "no case in", path);
    for (size_t i = before; i < count; i++)
        check_parts(cases[i]);
}

static const char *option_of(const config_case *made, const char *name)
{
    for (const char *at = made->options; (at = strstr(at, name)) != NULL; at++) {
        if (strchr("[ ", at[-1]) != NULL && strchr(" ]=", at[strlen(name)]) != NULL)
            return at + strlen(name);
    }
    return NULL;
}

/* @return the number after the option's name, or 0. */
static long number_of(const config_case *made, const char *name)
{
    const char *at = option_of(made, name);
    return at != NULL && *at == '=' ? strtol(at + 1, NULL, 10) : 0;
}

/* Without the newlines at the end; percent escapes become bytes. */
static void finish_text(const config_case *made, part p, char *into)
{
    const bool percent = p == INPUT && option_of(made, "percent") != NULL;
    size_t length = 0;
    for (const char *at = made->text[p]; *at != '\0'; at++) {
        char byte[3] = {at[0], '\0', '\0'};
        if (percent && at[0] == '%') {
            memcpy(byte, at + 1, 2);
            byte[0] = (char)strtol(byte, NULL, 16);
            at += 2;
        }
        into[length++] = byte[0];
    }
    while (length > 0 && into[length - 1] == '\n')
        length--;
    if (p == INPUT && option_of(made, "newline") != NULL)
        into[length++] = '\n';
    into[length] = '\0';
}

/* ---- A case --------------------------------------------------------------------------------- */

static ring_status resolve(const config_case *made, parsed *got)
{
    train_config *config = &got->config;
    const char *stages = option_of(made, "stages"), *tensors = option_of(made, "tensors");
    const long ranks = number_of(made, "ranks"), keep = number_of(made, "keep");
    ring_status status = got->status;
    if (status == RING_OK && tensors != NULL)
        status = config_resolve_tensor(config, number_of(made, "tensors"),
                                       atoi(strchr(tensors, ':') + 1), "ringrun");
    if (status == RING_OK && stages != NULL)
        status = config_resolve_stages(config, number_of(made, "stages"),
                                       atoi(strchr(stages, ':') + 1), "ringrun");
    if (status == RING_OK && ranks + keep > 0)
        status = config_resolve_batch(config, (int)(ranks + keep), "torchrun",
                                      keep > 0 ? BATCH_KEEP_GLOBAL : BATCH_EXACT);
    const automatic_facts facts = {.width = (size_t)number_of(made, "width"),
                                   .updates = number_of(made, "updates")};
    if (status == RING_OK && facts.width > 0)
        config_fill_automatic(config, &facts, keep_note, got);
    return status;
}

static void check_whole(const config_case *made, part p, const char *got)
{
    char want[TEXT_MAX];
    finish_text(made, p, want);
    const size_t length = strlen(got);
    const size_t shown = length > 0 && got[length - 1] == '\n' ? length - 1 : length;
    if (made->has[p] && (strlen(want) != shown || strncmp(want, got, shown) != 0))
        fail_msg("%s:%d: %s\n--- %s, wanted:\n%s\n--- got:\n%s", made->file, made->line,
                 made->title, part_names[p], want, got);
}

/* @param whole  lines of the text, not parts of them */
static void check_lines(const config_case *made, part p, const char *got, bool whole)
{
    char wanted[TEXT_MAX], line[TEXT_MAX], lines[1 << 15];
    finish_text(made, p, wanted);
    snprintf(lines, sizeof lines, "\n%s\n", got);
    for (char *rest, *at = strtok_r(wanted, "\n", &rest); made->has[p] && at != NULL;
         at = strtok_r(NULL, "\n", &rest)) {
        snprintf(line, sizeof line, whole ? "\n%s\n" : "%s", at);
        if (strstr(lines, line) != NULL)
            continue;
        line[strcspn(line, "=") + 1] = '\0';
        const char *same = whole ? strstr(lines, line) : NULL;
        fail_msg("%s:%d: %s\n--- %s, wanted: %s\n--- got: %.*s", made->file, made->line,
                 made->title, part_names[p], at, same != NULL ? (int)strcspn(same + 1, "\n") : -1,
                 same != NULL ? same + 1 : got);
    }
}

static void run_case(void **state)
{
    const config_case *made = *state;
    char text[TEXT_MAX], settings[1 << 15] = "";
    finish_text(made, INPUT, text);
    parsed got = parse_with(text, (config_options){.accelerate = option_of(made, "accelerate"),
                                                   .warn_unknown = option_of(made, "warn"),
                                                   .compat_ds_0_13 = option_of(made, "compat"),
                                                   .fp16 = option_of(made, "fp16"),
                                                   .bf16 = option_of(made, "bf16"),
                                                   .micro_batch = number_of(made, "batch")});
    const ring_status status = resolve(made, &got);
    if ((status != RING_OK) != (made->has[ERROR] || made->has[ERROR_HAS]))
        fail_msg("%s:%d: %s: status %d: %s", made->file, made->line, made->title, (int)status,
                 status != RING_OK ? train_error() : "no error");
    if (status != RING_OK)
        assert_int_equal(status, option_of(made, "unsupported") != NULL ? RING_ERR_UNSUPPORTED
                                                                        : RING_ERR_CONFIG);
    FILE *out = fmemopen(settings, sizeof settings, "w");
    assert_non_null(out);
    config_list(&got.config, out);
    fclose(out);
    check_whole(made, ERROR, train_error());
    check_lines(made, ERROR_HAS, train_error(), false);
    check_whole(made, NOTES, got.notes);
    check_lines(made, NOTES_HAVE, got.notes, false);
    check_lines(made, SETTINGS, settings, true);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        read_cases(argv[i]);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){cases[i]->title, run_case, NULL, NULL, cases[i]};
    const int failed = _cmocka_run_group_tests("configurations", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        free(cases[i]);
    return count == 0 ? 1 : failed;
}
