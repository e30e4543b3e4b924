/* SPDX-License-Identifier: Apache-2.0
 * Reads the metrics of all runs on the command line, and writes one page for them. */
#include "report_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "errors.h"
#include "output.h"
#include "run_page.h"

enum { RUNS_MAX = 64 };

typedef struct page_options {
    const char *page;
    const char *runs[RUNS_MAX];
    int count;
} page_options;

static const args_row rows[] = {
    {"output", 'o', "FILE", "HTML page to write (default report.html)", args_text,
     ARGS_AT(page_options, page)},
    {0},
};

static int take_run(char **words, int count, void *out)
{
    page_options *asked = out;
    (void)count;
    if (asked->count == RUNS_MAX)
        args_fail("a page can have at most %d runs; give fewer", RUNS_MAX);
    asked->runs[asked->count++] = words[0];
    return 1;
}

static ring_status write_page(const page_options *asked)
{
    metrics_runs runs = {0};
    output_file page = {0};
    ring_status status = RING_OK;
    for (int i = 0; i < asked->count && status == RING_OK; i++)
        status = metrics_runs_read(&runs, asked->runs[i]);
    if (status == RING_OK && !output_begin(&page, asked->page))
        status = train_fail(RING_ERR_SYSTEM, "%s: %s", asked->page, strerror(errno));
    if (status == RING_OK)
        status = run_page_write(page.stream, &runs);
    if (status == RING_OK && !output_finish(&page))
        status = train_fail(RING_ERR_SYSTEM, "%s: %s", asked->page, strerror(errno));
    if (status == RING_OK)
        printf("%s: a page of %zu run%s\n", asked->page, runs.count, plural(runs.count));
    output_discard(&page);
    metrics_runs_free(&runs);
    return status;
}

int report_command(int argc, char **argv)
{
    static const args_program program = {
        "ringtrain report", rows, "RUN...",
        "Makes one HTML page from files that --metrics has written: loss, accuracy, learning rate, "
        "throughput, a breakdown of the time, the memory of each rank, and the passes of a "
        "pipeline. Several runs are drawn in the same charts."
        "\vRUN is a file of metrics, or a folder with the file metrics.jsonl. The page needs no "
        "other file. Exit status: 0 written, 1 failed, 2 wrong use.",
        .take = take_run};
    page_options asked = {.page = "report.html"};
    args_parse(&program, argc, argv, &asked);
    if (asked.count == 0)
        args_fail("give at least one run, such as ringtrain report metrics.jsonl");
    if (write_page(&asked) != RING_OK) {
        fprintf(stderr, "ringtrain report: %s\n", train_error());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
