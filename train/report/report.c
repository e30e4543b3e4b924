/* SPDX-License-Identifier: Apache-2.0
 * Log lines keep DeepSpeed's text, so that scripts that read its logs read these. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "errors.h"
#include "floats.h"
#include "output.h"
#include "sysfs.h"

enum {
    UNCOUNTED_STEPS = 2, /* of the running average, as in DeepSpeed */
    GROUP_TEXT_MAX = 2 * FLOAT_TEXT_MAX + 8
};

#define PROGRESS_SECONDS 0.1
#define GIB ((double)(1L << 30))

ring_status report_open(train_report *report, bool on, const train_config *config,
                        const char *metrics_path, int epochs, long steps_per_epoch)
{
    *report = (train_report){.on = on,
                             .progress = on && isatty(STDERR_FILENO),
                             .config = config,
                             .metrics_path = metrics_path,
                             .epochs = epochs,
                             .steps_per_epoch = steps_per_epoch};
    if (!on || metrics_path == NULL)
        return RING_OK;
    report->metrics = output_open(metrics_path);
    if (report->metrics == NULL)
        return train_fail(RING_ERR_SYSTEM, "--metrics %s: %s", metrics_path, strerror(errno));
    return RING_OK;
}

/* Later calls may overwrite errno, and the stream forgets what it could not write. */
static void keep_error(train_report *report, bool failed)
{
    if (failed && report->metrics_error == 0)
        report->metrics_error = errno;
}

static void clear_progress(train_report *report)
{
    if (report->progress_shown)
        fputs("\r\033[K", stderr);
    report->progress_shown = false;
}

ring_status report_close(train_report *report)
{
    clear_progress(report);
    if (report->metrics == NULL)
        return RING_OK;
    keep_error(report, fclose(report->metrics) != 0);
    report->metrics = NULL;
    if (report->metrics_error != 0)
        return train_fail(RING_ERR_SYSTEM, "--metrics %s: %s", report->metrics_path,
                          strerror(report->metrics_error));
    return RING_OK;
}

void report_line(train_report *report, const char *format, ...)
{
    if (!report->on)
        return;
    clear_progress(report);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void report_error(train_report *report, const char *text)
{
    clear_progress(report);
    fprintf(stderr, "ringtrain: %s\n", text);
}

/* JSON has no infinity. */
static const char *norm_text(double norm, char text[FLOAT_TEXT_MAX])
{
    snprintf(text, FLOAT_TEXT_MAX, "%.9g", norm);
    return isfinite(norm) ? text : "null";
}

static void write_metrics(train_report *report, const report_step *step)
{
    char lr[FLOAT_TEXT_MAX], norm[FLOAT_TEXT_MAX];
    const int written = fprintf(report->metrics,
                                "{\"step\": %ld, \"epoch\": %d, \"loss\": %.9g, \"lr\": %s, "
                                "\"grad_norm\": %s, \"samples_per_s\": %.6g}\n",
                                step->step, step->epoch, step->loss, float_repr(step->lr, lr),
                                norm_text(step->grad_norm, norm),
                                (double)step->samples / step->seconds);
    keep_error(report, written < 0);
}

static void print_stamp(void)
{
    struct timeval now;
    struct tm local;
    char date[32];
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &local);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
    printf("[%s,%03d] [INFO] [ringtrain] [Rank 0] ", date, (int)(now.tv_usec / 1000));
}

/* What DeepSpeed shows as "mom" of a group: SGD's momentum (PyTorch's default is the int 0), or the
 * betas, or 0.0 where there is neither. */
static void momentum_text(const optimizer_config *optimizer, char text[GROUP_TEXT_MAX])
{
    char first[FLOAT_TEXT_MAX], second[FLOAT_TEXT_MAX];
    if (optimizer_has_betas(optimizer->kind))
        snprintf(text, GROUP_TEXT_MAX, "[%s, %s]", float_repr(optimizer->betas[0], first),
                 float_repr(optimizer->betas[1], second));
    else if (optimizer->kind == OPTIMIZER_SGD && optimizer->momentum == 0.0)
        strcpy(text, "0");
    else
        float_repr(optimizer->momentum, text);
}

/* "lr=[0.1, 0.1]": once for each parameter group. */
static void print_groups(const char *name, const char *text, int groups)
{
    printf("%s=[%s", name, text);
    for (int g = 1; g < groups; g++)
        printf(", %s", text);
    printf("]");
}

static double resident_gib(void)
{
    char line[64];
    unsigned long pages = 0;
    if (sysfs_line(line, sizeof line, "/proc/self/statm"))
        sscanf(line, "%*u %lu", &pages);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / GIB;
}

static double peak_gib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024.0 / GIB;
}

static void print_throughput(const train_report *report, const report_step *step)
{
    const double current = (double)report->interval_samples / report->interval_seconds;
    const double average = report->counted_seconds > 0.0
                               ? report->counted_samples / report->counted_seconds
                               : current;
    print_stamp();
    printf("epoch=%d/micro_step=%ld/global_step=%ld, RunningAvgSamplesPerSec=%.17g, "
           "CurrSamplesPerSec=%.17g, MemAllocated=%.2fGB, MaxMemAllocated=%.2fGB\n",
           step->epoch - 1, report->micro_steps, step->step, average, current, resident_gib(),
           peak_gib());
}

static void print_log(train_report *report, const report_step *step)
{
    const optimizer_config *optimizer = &report->config->optimizer;
    char lr[FLOAT_TEXT_MAX], momentum[GROUP_TEXT_MAX];
    momentum_text(optimizer, momentum);
    clear_progress(report);
    print_stamp();
    printf("step=%ld, skipped=%ld, ", step->step, step->skipped);
    print_groups("lr", float_repr(step->next_lr, lr), optimizer_groups(optimizer));
    printf(", ");
    print_groups("mom", momentum, optimizer_groups(optimizer));
    printf("\n");
    const double steps = (double)report->interval_steps;
    printf("steps: %ld loss: %.4f iter time (s): %.3f samples/sec: %.3f\n", step->step,
           report->interval_loss / steps, report->interval_seconds / steps,
           (double)report->interval_samples / report->interval_seconds);
    print_throughput(report, step);
    fflush(stdout);
    if (report->metrics != NULL)
        keep_error(report, fflush(report->metrics) != 0);
}

static void count(train_report *report, const report_step *step)
{
    report->micro_steps += step->micro_batches;
    report->interval_steps++;
    report->interval_loss += step->loss;
    report->interval_seconds += step->seconds;
    report->interval_samples += step->samples;
    if (step->step > UNCOUNTED_STEPS) {
        report->counted_seconds += step->seconds;
        report->counted_samples += (double)step->samples;
    }
}

static void draw_progress(train_report *report, const report_step *step)
{
    const double now = train_now();
    if (now - report->drawn_at < PROGRESS_SECONDS)
        return;
    report->drawn_at = now;
    report->progress_shown = true;
    fprintf(stderr, "\repoch %d/%d  update %ld/%ld  loss %.4f  lr %.3g  %.0f samples/s\033[K",
            step->epoch, report->epochs, (step->step - 1) % report->steps_per_epoch + 1,
            report->steps_per_epoch, step->loss, step->lr, (double)step->samples / step->seconds);
}

void report_update(train_report *report, const report_step *step)
{
    if (!report->on)
        return;
    if (report->metrics != NULL)
        write_metrics(report, step);
    count(report, step);
    if (step->step % report->config->steps_per_print == 0) {
        print_log(report, step);
        report->interval_steps = report->interval_samples = 0;
        report->interval_seconds = report->interval_loss = 0.0;
    }
    if (report->progress)
        draw_progress(report, step);
}
