/* SPDX-License-Identifier: Apache-2.0
 * Input of ringtrain report: lines of metrics, and the page that it makes of them. */
#include "give.h"

#include "run_page.h"

#include <stdlib.h>
#include <string.h>

/* From errors.h, whose RING_TRY is that of base.h. */
const char *train_error(void);

static void seed_metrics_file(fuzz_seeds *to)
{
    fuzz_add_text(to,
                  "{\"run\": {\"model\": \"m <&>\", \"ranks\": 2, \"memory\": [{\"parameters\": "
                  "1048576, \"batch\": 7}], \"config\": {\"a\": \"b\"}}}\n"
                  "{\"step\": 1, \"epoch\": 1, \"loss\": 0.5, \"lr\": 1e-3, \"grad_norm\": 2, "
                  "\"samples_per_s\": 10}\n{\"after_step\": 1, \"devices\": [{\"peak\": 9}]}\n"
                  "{\"after_epoch\": 1, \"after_step\": 1, \"loss\": 0.5, \"accuracy\": 0.9, "
                  "\"seconds\": {\"data\": 1, \"other\": 2}, \"overlap\": 0.5}\n");
    fuzz_add_text(to,
                  "{\"pipeline\": {\"step\": 1, \"measured\": [[[0, 1, 2, 3]], [[1, 2, 2, 3]]], "
                  "\"predicted\": [[[1, 4]], [[2, 3]]]}}\n");
    fuzz_add_text(to, "{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"loss\": 0.5}\n{\"step\": ");
    fuzz_add_any_text(to, "{\"run\": {\"config\": [1, \"a\"], \"memory\": 3}}\n");
    fuzz_add_any_text(to, "{\"step\": 0, \"loss\": 0}\n{\"step\": 5e-324, \"loss\": 1e999}\n");
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        count++;
    return count;
}

/* The script gets JSON without letters that mean something in HTML. */
static void check_data(char *text, size_t runs)
{
    char *data = strstr(text, "id=\"runs\">");
    must(data != NULL);
    data += strlen("id=\"runs\">");
    char *end = strstr(data, "</script>");
    must(end != NULL);
    must((size_t)(end - data) == strcspn(data, "<>&"));
    cJSON *list = cJSON_ParseWithLength(data, (size_t)(end - data));
    must(cJSON_GetArraySize(list) == (int)runs);
    cJSON_Delete(list);
}

/* The page is complete, and what it shows is of the page or escaped. */
static void check_page(metrics_runs *runs)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *page = open_memstream(&text, &bytes);
    must(page != NULL);
    must(run_page_write(page, runs) == RING_OK);
    must(fclose(page) == 0);
    must(bytes > 16 && strcmp(text + bytes - 15, "</body></html>\n") == 0);
    must(count_of(text, "<script") == 2 && count_of(text, "</script") == 2);
    check_data(text, runs->count);
    free(text);
}

static ring_status parse_metrics_file(const unsigned char *bytes, size_t size)
{
    metrics_runs runs = {0};
    const ring_status status = metrics_runs_read(&runs, give_file(0, bytes, size));
    if (status == RING_OK)
        check_page(&runs);
    metrics_runs_free(&runs);
    return status;
}

const fuzz_target fuzz_metrics_file = {.name = "metrics_file",
                                       .reads = "metrics, to make a page of them",
                                       .most = 4096,
                                       .seeds = seed_metrics_file,
                                       .parse = parse_metrics_file,
                                       .reason = train_error};
