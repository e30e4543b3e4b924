/* SPDX-License-Identifier: Apache-2.0
 * ringinfo: what is here, what will be used, what is wrong and how to mend it. */
#include "info_report.h"

#include "args.h"
#include "output.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_OUTPUT = 1, CODE_WRONG = 3 };

typedef struct wishes {
    bool env_only, json, no_color;
} wishes;

static const args_row rows[] = {
    {"json", 0, NULL, "Print JSON, for programs", args_flag, ARGS_AT(wishes, json)},
    {"no-color", 0, NULL, "No colours (also: NO_COLOR in the environment)", args_flag,
     ARGS_AT(wishes, no_color)},
    {0},
};

static const char doc[] =
    "Tells what this machine has, what libring will use of it, and what is wrong."
    "\vWith the word env: every variable that libring reads, with its value, where that came from, "
    "its default, its unit and what it means.\n"
    "\n"
    "Examples:\n"
    "  ringinfo\n"
    "  ringinfo env\n"
    "  RING_TRANSPORT=tcp ringinfo          what changes with a setting\n"
    "  ringrun -n 2 ringinfo                what ranks find\n"
    "  ringinfo --json | jq .transports\n"
    "\n"
    "Exit status: 0 if nothing fails, 1 not all could be written, 2 wrong use, 3 if\n"
    "something is wrong (FAIL).";

static int take_env(char **words, int count, void *out)
{
    wishes *w = out;
    (void)count;
    if (strcmp(words[0], "env") != 0)
        args_fail("unknown word '%s'; did you mean 'env'?", words[0]);
    w->env_only = true;
    return 1;
}

static bool may_color(const wishes *w)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !w->no_color && (no_color == NULL || *no_color == '\0') && isatty(STDOUT_FILENO) &&
           term != NULL && strcmp(term, "dumb") != 0;
}

/* Reading the settings also warns about variables that nobody knows. */
static int show_settings(const wishes *w)
{
    settings s;
    if (w->json)
        show_json_settings();
    else
        show_text_settings(may_color(w));
    fflush(stdout);
    if (settings_read(&s) == RING_OK)
        return 0;
    fprintf(stderr, "ringinfo: %s\n", fail_text());
    return CODE_WRONG;
}

static int show_report(const wishes *w)
{
    report r = {0};
    gather_all(&r);
    if (w->json)
        show_json(&r);
    else
        show_text(&r, may_color(w));
    const bool wrong = report_count(&r, VERDICT_FAIL) > 0;
    report_free(&r);
    return wrong ? CODE_WRONG : 0;
}

int main(int argc, char **argv)
{
    static const args_program ringinfo = {"ringinfo", rows, "[env]", doc, .take = take_env};
    wishes w = {0};
    output_check_at_exit(CODE_OUTPUT);
    args_parse(&ringinfo, argc, argv, &w);
    return w.env_only ? show_settings(&w) : show_report(&w);
}
