/* SPDX-License-Identifier: Apache-2.0
 * ringinfo: what is here, what will be used, what is wrong and how to mend it. */
#include "info_report.h"

#include "about.h"
#include "settings.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_OUTPUT = 1, CODE_USAGE, CODE_WRONG = 3, KEY_JSON = 1000, KEY_NO_COLOR };

typedef struct wishes {
    bool env_only, json, no_color;
} wishes;

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "Print JSON, for programs", 0},
    {"no-color", KEY_NO_COLOR, NULL, 0, "No colours (also: NO_COLOR in the environment)", 0},
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    wishes *w = state->input;
    switch (key) {
    case KEY_JSON:
        w->json = true;
        return 0;
    case KEY_NO_COLOR:
        w->no_color = true;
        return 0;
    case ARGP_KEY_ARG:
        if (strcmp(arg, "env") != 0)
            argp_error(state, "unknown word '%s'; did you mean 'env'?", arg);
        w->env_only = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *out, struct argp_state *state)
{
    (void)state;
    about_print(out, "ringinfo");
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
    static const struct argp argp = {option_table, parse_option, "[env]", doc, NULL, NULL, NULL};
    wishes w = {0};
    program_invocation_name = program_invocation_short_name; /* for messages of argp */
    argp_program_version_hook = print_version;
    argp_err_exit_status = CODE_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &w);
    const int code = w.env_only ? show_settings(&w) : show_report(&w);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fputs("ringinfo: standard output could not be written completely; is the disk full?\n", stderr);
    return CODE_OUTPUT;
}
