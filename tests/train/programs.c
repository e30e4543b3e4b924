/* SPDX-License-Identifier: Apache-2.0
 * popen() with standard error joined in; commands hold no text from outside. */
#include "programs.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "files.h"

enum { COMMAND_BYTES = 4096, OUTPUT_BYTES = 1 << 20 };

programs_paths programs;

static void capture(programs_run *run, const char *command)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    run->output = calloc(1, OUTPUT_BYTES);
    assert_non_null(run->output);
    const size_t got = fread(run->output, 1, OUTPUT_BYTES - 1, pipe);
    run->status = WEXITSTATUS(pclose(pipe));
    if (got > 0 && run->output[got - 1] == '\n')
        run->output[got - 1] = '\0';
    char *line = strrchr(run->output, '\n');
    run->last_line = line != NULL ? line + 1 : run->output;
}

static double number(const cJSON *line, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, key);
    if (!cJSON_IsNumber(value))
        fail_msg("a line of the metrics has no number %s", key);
    return value->valuedouble;
}

static void read_metrics(programs_run *run)
{
    size_t bytes;
    char *text = files_read(files_path("metrics"), &bytes), *rest = text;
    for (char *line; text != NULL && (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        cJSON *object = cJSON_Parse(line);
        assert_non_null(object);
        if (!cJSON_HasObjectItem(object, "step")) {
            cJSON_Delete(object);
            continue; /* about the run, or an epoch */
        }
        assert_true(run->steps < METRICS_MAX);
        assert_int_equal(number(object, "step"), run->steps + 1);
        assert_true(number(object, "epoch") >= 1);
        /* null in an update that is skipped */
        assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, "grad_norm")) ||
                    number(object, "grad_norm") >= 0);
        assert_true(number(object, "samples_per_s") > 0);
        run->loss[run->steps] = number(object, "loss");
        run->lr[run->steps++] = number(object, "lr");
        cJSON_Delete(object);
    }
    free(text);
}

programs_run *programs_shell(const char *format, ...)
{
    char command[COMMAND_BYTES];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_in_range(length, 1, COMMAND_BYTES - 1);
    programs_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    capture(run, command);
    return run;
}

programs_run *programs_train(int ranks, const char *format, ...)
{
    char launch[COMMAND_BYTES / 4] = "", arguments[COMMAND_BYTES / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    if (ranks > 0)
        snprintf(launch, sizeof launch, "%s/ringrun -n %d ", programs.bin, ranks);
    unlink(files_path("metrics"));
    programs_run *run = programs_shell("%s%s/ringtrain --metrics %s --dump-params %s %s 2>&1",
                                       launch, programs.bin, files_path("metrics"),
                                       files_path("params"), arguments);
    read_metrics(run);
    return run;
}

programs_run *programs_train_config(int ranks, const char *config, const char *options)
{
    files_write("config.json", config, strlen(config));
    return programs_train(ranks, "--deepspeed_config %s --data %s %s", files_path("config.json"),
                          files_path(""), options);
}

void programs_free(programs_run *run)
{
    free(run->output);
    free(run);
}

void programs_expect_success(const programs_run *run)
{
    if (run->status != 0)
        fail_msg("exit status %d:\n%s", run->status, run->output);
}

void programs_expect_output(const programs_run *run, const char *text)
{
    if (strstr(run->output, text) == NULL)
        fail_msg("no \"%s\" in:\n%s", text, run->output);
}

void programs_expect_same_params(int ranks)
{
    size_t bytes, other_bytes;
    char *first = files_read(files_path("params.0"), &bytes);
    assert_non_null(first);
    for (int rank = 1; rank < ranks; rank++) {
        char name[32];
        snprintf(name, sizeof name, "params.%d", rank);
        char *other = files_read(files_path(name), &other_bytes);
        assert_non_null(other);
        assert_int_equal(other_bytes, bytes);
        assert_memory_equal(other, first, bytes);
        free(other);
    }
    free(first);
}

double programs_accuracy(const programs_run *run)
{
    double accuracy;
    char rest;
    if (sscanf(run->last_line, "test accuracy %lf%c", &accuracy, &rest) != 1)
        fail_msg("last line: %s", run->last_line);
    return accuracy;
}

char *programs_document(const char *number)
{
    char pattern[4096];
    glob_t found;
    size_t bytes;
    snprintf(pattern, sizeof pattern, "%s/seeds/%s*.txt", programs.shared, number);
    if (glob(pattern, 0, NULL, &found) != 0) {
        print_message("SKIPPED: no %s\n", pattern);
        skip();
    }
    char *text = files_read(found.gl_pathv[0], &bytes);
    globfree(&found);
    assert_non_null(text);
    return text;
}

const char *programs_mnist(void)
{
    static char folder[COMMAND_BYTES];
    const char *named = getenv("RING_DATA");
    if (named != NULL && named[0] != '\0')
        return named;
    snprintf(folder, sizeof folder, "%s/data/mnist", programs.shared);
    return access(folder, R_OK) == 0 ? folder : NULL;
}
