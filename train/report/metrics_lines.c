/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_lines: writes the file of --metrics, with one JSON object on each line. The first line
 * describes the run; later lines report updates, the use of devices, and epochs. Each line is
 * flushed when it ends, so that the file of a killed run is complete up to that point.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "errors.h"
#include "floats.h"
#include "sink.h"
#include "sink_file.h"

enum { CONFIG_TEXT_MAX = 16384, STAGES_MAX = 256 };

static ring_status open_metrics(report_sink *sink)
{
    const report_options *options = &sink->run->options;
    if (options->metrics_path == NULL)
        return RING_OK;
    sink_file *file = sink_create_state(sink, sizeof *file);
    if (file == NULL)
        return RING_ERR_MEMORY;
    return sink_file_open(file, "--metrics", options->metrics_path, options->append_metrics);
}

static ring_status close_metrics(report_sink *sink)
{
    return sink_file_close(sink->state);
}

/* ---- Parts of lines ------------------------------------------------------------------------ */

/* Prints the "name=value" lines of config_list() as the members of an object. */
static void print_config(sink_file *file, const train_config *config)
{
    char *text = calloc(1, CONFIG_TEXT_MAX);
    FILE *lines = text != NULL ? fmemopen(text, CONFIG_TEXT_MAX - 1, "w") : NULL;
    if (lines != NULL) {
        config_list(config, lines);
        fclose(lines);
    }
    sink_file_print(file, "{");
    char *rest = text;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        char *value = strchr(line, '=');
        if (value == NULL)
            break;
        *value++ = '\0';
        sink_file_quote(file, line);
        sink_file_print(file, ": ");
        sink_file_quote(file, value);
        if (rest != NULL && *rest != '\0')
            sink_file_print(file, ", ");
    }
    sink_file_print(file, "}");
    free(text);
}

static void print_devices(sink_file *file, const report_device *devices, int ranks)
{
    sink_file_print(file, "\"devices\": [");
    for (int r = 0; r < ranks; r++)
        sink_file_print(file, "%s{\"resident\": %.0f, \"peak\": %.0f, \"cpu\": %.3f}",
                        r > 0 ? ", " : "", devices[r].resident, devices[r].peak, devices[r].cpu);
    sink_file_print(file, "]");
}

/* ---- Events -------------------------------------------------------------------------------- */

static void start_metrics(report_sink *sink, const report_start *start)
{
    sink_file *file = sink->state;
    const report_run *run = sink->run;
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    sink_file_print(file, "{\"run\": {\"started\": \"%s\", \"model\": ", date);
    sink_file_quote(file, start->model);
    sink_file_print(file,
                    ", \"parameters\": %zu, \"loss\": \"%s\", \"maths\": \"%s\", \"seed\": %" PRIu64
                    ", \"ranks\": %d, \"epochs\": %d, \"updates\": %ld, \"train_samples\": %zu, "
                    "\"test_samples\": %zu, \"memory\": [",
                    start->parameters, start->loss, start->maths, start->seed, run->ranks,
                    run->epochs, run->steps, start->train_samples, start->test_samples);
    for (int r = 0; r < run->ranks; r++) {
        const report_memory *memory = &start->memory[r];
        sink_file_print(file,
                        "%s{\"parameters\": %" PRIu64 ", \"gradients\": %" PRIu64
                        ", \"states\": %" PRIu64 ", \"live\": %" PRIu64
                        ", \"activations\": %" PRIu64 ", \"batch\": %" PRIu64 "}",
                        r > 0 ? ", " : "", memory->parameters, memory->gradients, memory->states,
                        memory->live, memory->activations, memory->batch);
    }
    sink_file_print(file, "], \"config\": ");
    print_config(file, run->config);
    sink_file_print(file, "}}\n");
}

/* Formats a number for JSON, which has neither NaN nor infinity; both become null. */
static const char *number_text(double number, char text[FLOAT_TEXT_MAX])
{
    snprintf(text, FLOAT_TEXT_MAX, "%.9g", number);
    return isfinite(number) ? text : "null";
}

static void update_metrics(report_sink *sink, const report_step *step)
{
    char lr[FLOAT_TEXT_MAX], loss[FLOAT_TEXT_MAX], norm[FLOAT_TEXT_MAX];
    sink_file_print(sink->state,
                    "{\"step\": %ld, \"epoch\": %d, \"loss\": %s, \"lr\": %s, "
                    "\"grad_norm\": %s, \"samples_per_s\": %.6g}\n",
                    step->step, step->epoch, number_text(step->loss, loss),
                    float_repr(step->lr, lr), number_text(step->grad_norm, norm),
                    (double)step->samples / step->seconds);
}

/* Adds up the spans of all passes, which are laid out as [stages][micro_batches][2 passes].
 * @param[out] busy  [stages] seconds that each stage spent in passes
 * @return the time at which the last pass ended */
static double sum_passes(const report_passes *passes, double *busy)
{
    const size_t micros = (size_t)passes->micro_batches,
                 count = 2 * micros * (size_t)passes->stages;
    double last = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double *span = &passes->measured[2 * i];
        busy[i / 2 / micros] += span[1] - span[0];
        last = span[1] > last ? span[1] : last;
    }
    return last;
}

/* Prints measured or predicted numbers as nested lists of shape [stages][micro_batches][each].
 * @param each  4: measured; 2: predicted */
static void print_passes(sink_file *file, const report_passes *passes, const char *name, int each)
{
    const int row = passes->micro_batches * each;
    sink_file_print(file, "\"%s\": [", name);
    for (int i = 0; i < passes->stages * row; i++) {
        sink_file_print(file, "%s%s%s", i == 0 ? "" : ", ", i % row == 0 ? "[" : "",
                        i % each == 0 ? "[" : "");
        if (each == 4)
            sink_file_print(file, "%.7f", passes->measured[i]);
        else
            sink_file_print(file, "%d", passes->predicted[i]);
        sink_file_print(file, "%s%s", (i + 1) % each == 0 ? "]" : "",
                        (i + 1) % row == 0 ? "]" : "");
    }
    sink_file_print(file, "]");
}

static void passes_metrics(report_sink *sink, const report_passes *passes)
{
    sink_file *file = sink->state;
    double busy[STAGES_MAX] = {0.0};
    const double span = sum_passes(passes, busy);
    sink_file_print(file,
                    "{\"pipeline\": {\"step\": %ld, \"stages\": %d, \"micro_batches\": %d, "
                    "\"span\": %.7f, \"busy\": [",
                    passes->step, passes->stages, passes->micro_batches, span);
    for (int s = 0; s < passes->stages; s++)
        sink_file_print(file, "%s%.7f", s > 0 ? ", " : "", busy[s]);
    sink_file_print(file, "], ");
    print_passes(file, passes, "measured", 4);
    sink_file_print(file, ", ");
    print_passes(file, passes, "predicted", 2);
    sink_file_print(file, "}}\n");
}

static void devices_metrics(report_sink *sink, long step, const report_device *devices)
{
    sink_file_print(sink->state, "{\"after_step\": %ld, ", step);
    print_devices(sink->state, devices, sink->run->ranks);
    sink_file_print(sink->state, "}\n");
}

static void epoch_metrics(report_sink *sink, const report_epoch *epoch)
{
    sink_file *file = sink->state;
    char loss[FLOAT_TEXT_MAX], accuracy[FLOAT_TEXT_MAX], test_loss[FLOAT_TEXT_MAX];
    sink_file_print(file,
                    "{\"after_epoch\": %d, \"after_step\": %ld, \"loss\": %s, \"accuracy\": %s, "
                    "\"test_loss\": %s, \"samples_per_s\": %.6g, \"test_seconds\": %.6g, "
                    "\"seconds\": {",
                    epoch->epoch, epoch->step, number_text(epoch->loss, loss),
                    number_text(epoch->accuracy, accuracy),
                    number_text(epoch->test_loss, test_loss),
                    (double)epoch->samples / epoch->seconds, epoch->test_seconds);
    for (int p = 0; p < PARTS; p++)
        sink_file_print(file, "%s\"%s\": %.6g", p > 0 ? ", " : "", part_names[p],
                        epoch->times.parts[p]);
    sink_file_print(file, "}");
    const double overlap = breakdown_overlap(&epoch->times);
    if (sink->run->ranks > 1 && overlap >= 0.0)
        sink_file_print(file, ", \"overlap\": %.4f", overlap);
    sink_file_print(file, ", ");
    print_devices(file, epoch->devices, sink->run->ranks);
    sink_file_print(file, "}\n");
}

const sink_kind metrics_lines = {.open = open_metrics,
                                 .close = close_metrics,
                                 .start = start_metrics,
                                 .update = update_metrics,
                                 .passes = passes_metrics,
                                 .devices = devices_metrics,
                                 .epoch = epoch_metrics};
