/* SPDX-License-Identifier: Apache-2.0
 *
 * log_lines: prints the progress of training to standard output every steps_per_print updates. The
 * lines have the format of DeepSpeed's log, or of the log of another program that --log-style
 * selects, so that scripts written for those logs work with this one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "device_use.h"
#include "errors.h"
#include "floats.h"
#include "sink.h"
#include "timers.h"

enum {
    UNCOUNTED_STEPS = 2 /* first updates that the running average skips, as in DeepSpeed */,
    HOST_MAX = 65,
    GROUP_TEXT_MAX = 2 * FLOAT_TEXT_MAX + 8
};

#define GIB ((double)(1L << 30))
#define MIB ((double)(1L << 20))
/* A note reports that overlap_comm hides less than this share of the reductions. */
#define LITTLE_OVERLAP 0.1

const char *const log_style_names[] = {"short", "deepspeed", "neox", "brief", "torch", NULL};

/* Sums over the updates since lines were printed last. */
typedef struct log_interval {
    double seconds, loss;
    long steps, samples, micro_batches;
    report_times times;
} log_interval;

typedef struct log_state {
    char host[HOST_MAX];
    log_interval interval;
    double counted_seconds, counted_samples; /* of all updates but the first ones */
    bool overlap_logged;                     /* note_little_overlap() has printed its note */
} log_state;

static ring_status open_log(report_sink *sink)
{
    log_state *log = sink_create_state(sink, sizeof *log);
    if (log == NULL)
        return RING_ERR_MEMORY;
    gethostname(log->host, sizeof log->host - 1);
    return RING_OK;
}

/* ---- The beginnings of lines --------------------------------------------------------------- */

/* Prints the date and time, the separator, and milliseconds: "2026-01-31 12:00:00,123". */
static void print_time(char separator)
{
    struct timeval now;
    struct tm local;
    char date[32];
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &local);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
    printf("%s%c%03d", date, separator, (int)(now.tv_usec / 1000));
}

/* Begins a line that has a time only in the style neox. */
static void begin_line(const report_sink *sink)
{
    const log_state *log = sink->state;
    if (sink->run->options.style != LOG_NEOX)
        return;
    print_time('.');
    printf(" [INFO] %s: ", log->host);
}

/* Begins a line that has a time in all styles. */
static void begin_stamped(const report_sink *sink)
{
    begin_line(sink);
    putchar('[');
    print_time(',');
    printf("] [INFO] [ringtrain] [Rank 0] ");
}

/* ---- DeepSpeed's lines --------------------------------------------------------------------- */

/* Writes DeepSpeed's "mom" of a parameter group: the betas, or SGD's momentum (0 if it is PyTorch's
 * default, an int), or 0.0 if the optimizer has neither. */
static void momentum_text(const optimizer_config *optimizer, const double betas[2],
                          char text[GROUP_TEXT_MAX])
{
    char first[FLOAT_TEXT_MAX], second[FLOAT_TEXT_MAX];
    if (optimizer_has_betas(optimizer->kind))
        snprintf(text, GROUP_TEXT_MAX, "[%s, %s]", float_repr(betas[0], first),
                 float_repr(betas[1], second));
    else if (optimizer->kind == OPTIMIZER_SGD && optimizer->momentum == 0.0)
        strcpy(text, "0");
    else
        float_repr(optimizer->momentum, text);
}

/* Prints "lr=[0.1, 0.1]", one value for each parameter group. */
static void print_groups(const char *name, const char *first, const char *second, int groups)
{
    printf("%s=[%s", name, first);
    if (groups > 1)
        printf(", %s", second);
    printf("]");
}

static void print_step(const report_sink *sink, const report_step *step)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    const double steps = (double)interval->steps;
    const optimizer_config *optimizer = &sink->run->config->optimizer;
    const int groups = optimizer_groups(optimizer);
    char lr[FLOAT_TEXT_MAX], other[FLOAT_TEXT_MAX], momentum[GROUP_TEXT_MAX];
    momentum_text(optimizer, step->next_betas, momentum);
    begin_stamped(sink);
    printf("step=%ld, skipped=%ld, ", step->step, step->skipped);
    print_groups("lr", float_repr(step->next_lr, lr), float_repr(step->next_other_lr, other),
                 groups);
    printf(", ");
    print_groups("mom", momentum, momentum, groups);
    putchar('\n');
    begin_line(sink);
    printf("steps: %ld loss: %.4f iter time (s): %.3f samples/sec: %.3f\n", step->step,
           interval->loss / steps, interval->seconds / steps,
           (double)interval->samples / interval->seconds);
}

static void print_throughput(const report_sink *sink, const report_step *step)
{
    const log_state *log = sink->state;
    const double current = (double)log->interval.samples / log->interval.seconds;
    const double average = log->counted_seconds > 0.0 ? log->counted_samples / log->counted_seconds
                                                      : current;
    char average_text[FLOAT_TEXT_MAX], current_text[FLOAT_TEXT_MAX];
    double resident, peak;
    device_memory(&resident, &peak);
    begin_stamped(sink);
    printf("epoch=%d/micro_step=%ld/global_step=%ld, RunningAvgSamplesPerSec=%s, "
           "CurrSamplesPerSec=%s, MemAllocated=%.2fGB, MaxMemAllocated=%.2fGB\n",
           step->epoch - 1, step->all_micro_batches, step->step, float_repr(average, average_text),
           float_repr(current, current_text), resident / GIB, peak / GIB);
}

/* ---- Where the time went ------------------------------------------------------------------- */

/* Prints the milliseconds of the interval divided by @p count, its micro-batches or updates. */
static void print_timers(const report_sink *sink, const char *suffix, long count)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    const report_timers seconds = timers_of(sink->run, &interval->times);
    const double scale = 1e3 / (double)count;
    begin_stamped(sink);
    printf("time (ms) | fwd%s: %.2f | bwd%s: %.2f | bwd_inner%s: %.2f | bwd_allreduce%s: %.2f | "
           "step%s: %.2f\n",
           suffix, scale * seconds.forward, suffix, scale * seconds.backward, suffix,
           scale * seconds.backward_inner, suffix, scale * seconds.backward_allreduce, suffix,
           scale * seconds.step);
}

static bool has_stages(const report_sink *sink)
{
    return sink->run->config->pipeline.stages > 1;
}

/* Prints the times of the interval with the names and in the order of gpt-neox. The timer for
 * zeroing gradients is left out, because gradients are overwritten here. */
static void print_neox_timers(const report_sink *sink)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    const double *parts = interval->times.parts, *details = interval->times.details;
    const report_timers seconds = timers_of(sink->run, &interval->times);
    const double comms = parts[PART_WAIT] + parts[PART_BUBBLE] + parts[PART_TRANSFER] +
                         parts[PART_REDUCE];
    const struct {
        const char *name;
        double seconds;
        bool of_stages;
    } timers[] = {
        {"train_batch", interval->seconds, false},
        {"batch_input", parts[PART_DATA], false},
        {"forward", parts[PART_FORWARD], false},
        {"pipe_send_output", details[DETAIL_SEND], true},
        {"comms", comms, false},
        {"pipe_recv_grad", details[DETAIL_RECV], true},
        {"backward", parts[PART_BACKWARD], false},
        {"reduce_tied_grads", details[DETAIL_TIES], true},
        {"reduce_grads", seconds.backward_allreduce - details[DETAIL_TIES], false},
        {"step", parts[PART_STEP], false},
        {"_step_clipping", details[DETAIL_NORM], false},
        {"_step_step", parts[PART_STEP] - details[DETAIL_NORM] - details[DETAIL_CHECK], false},
        {"_step_check_overflow", details[DETAIL_CHECK], false},
    };
    begin_stamped(sink);
    printf("rank=0 time (ms)");
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        if (has_stages(sink) || !timers[i].of_stages)
            printf(" | %s: %.2f", timers[i].name, 1e3 * timers[i].seconds);
    }
    putchar('\n');
}

/* Without stages, the bubble is always zero and is not shown. */
static bool is_shown(const report_sink *sink, int part)
{
    return part != PART_BUBBLE || has_stages(sink);
}

static void print_neox_shares(const report_sink *sink, const int tenths[PARTS])
{
    const int comms = tenths[PART_WAIT] + tenths[PART_BUBBLE] + tenths[PART_TRANSFER] +
                      tenths[PART_REDUCE];
    begin_line(sink);
    printf("%%comms: %.1f\n", comms / 10.0);
    begin_line(sink);
    printf("%%optimizer_step %.1f\n", tenths[PART_STEP] / 10.0); /* gpt-neox prints no colon */
    for (int p = 0; p < PARTS; p++) {
        if (p == PART_STEP || !is_shown(sink, p))
            continue;
        begin_line(sink);
        printf("%%%s: %.1f\n", part_names[p], tenths[p] / 10.0);
    }
}

static void print_shares(const report_sink *sink, const int tenths[PARTS])
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    const double overlap = breakdown_overlap(&interval->times);
    begin_stamped(sink);
    printf("time (%%)");
    for (int p = 0; p < PARTS; p++) {
        if (is_shown(sink, p))
            printf(" | %s: %d.%d", part_names[p], tenths[p] / 10, tenths[p] % 10);
    }
    if (sink->run->ranks > 1 && overlap >= 0.0)
        printf(" | reduction hidden: %.1f", 100.0 * overlap);
    putchar('\n');
}

/* Prints a note, once a run, if overlap_comm hides next to nothing. */
static void note_little_overlap(const report_sink *sink)
{
    log_state *log = sink->state;
    const double overlap = breakdown_overlap(&log->interval.times);
    if (log->overlap_logged || sink->run->ranks == 1 || !sink->run->config->overlap_comm ||
        overlap < 0.0 || overlap >= LITTLE_OVERLAP)
        return;
    log->overlap_logged = true;
    begin_line(sink);
    printf(
        "NOTE overlap_comm hides only %.1f %% of the reduction; it cannot hide more if ranks keep "
        "all cores busy, or if one layer has most of the parameters\n",
        100.0 * overlap);
}

static void print_breakdown(const report_sink *sink)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    int tenths[PARTS];
    breakdown_tenths(&interval->times, tenths);
    if (sink->run->options.style == LOG_NEOX) {
        print_neox_shares(sink, tenths);
        print_neox_timers(sink);
        return;
    }
    print_timers(sink, "_microstep", interval->micro_batches);
    print_timers(sink, "", interval->steps);
    print_shares(sink, tenths);
    note_little_overlap(sink);
}

/* ---- Other programs' lines ----------------------------------------------------------------- */

static void print_brief(const report_sink *sink, const report_step *step)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    printf("Rank[0]: Epoch %d, step %ld / %ld, loss %.4f\n", step->epoch, step->step,
           sink->run->steps, interval->loss / (double)interval->steps);
}

static void print_torch(const report_sink *sink, const report_step *step)
{
    const log_interval *interval = &((const log_state *)sink->state)->interval;
    printf("rank0, Epoch [%d/%d], Step [%ld/%ld], Loss: %.4f\n", step->epoch, sink->run->epochs,
           step->epoch_step, sink->run->steps_per_epoch, interval->loss / (double)interval->steps);
}

static void print_deepspeed(const report_sink *sink, const report_step *step)
{
    print_step(sink, step);
    print_throughput(sink, step);
}

/* ---- Events -------------------------------------------------------------------------------- */

static void count(log_state *log, const report_step *step)
{
    log_interval *interval = &log->interval;
    interval->steps++;
    interval->micro_batches += step->micro_batches;
    interval->loss += step->loss;
    interval->seconds += step->seconds;
    interval->samples += step->samples;
    breakdown_add(&interval->times, &step->times);
    if (step->step > UNCOUNTED_STEPS) {
        log->counted_seconds += step->seconds;
        log->counted_samples += (double)step->samples;
    }
}

static void log_update(report_sink *sink, const report_step *step)
{
    static void (*const print[])(const report_sink *,
                                 const report_step *) = {[LOG_SHORT] = print_step,
                                                         [LOG_DEEPSPEED] = print_deepspeed,
                                                         [LOG_NEOX] = print_step,
                                                         [LOG_BRIEF] = print_brief,
                                                         [LOG_TORCH] = print_torch};
    log_state *log = sink->state;
    count(log, step);
    if (step->step % sink->run->config->steps_per_print != 0)
        return;
    screen_clear_bar(sink->screen);
    print[sink->run->options.style](sink, step);
    if (sink->run->config->wall_clock_breakdown)
        print_breakdown(sink);
    fflush(stdout);
    log->interval = (log_interval){0};
}

static void log_devices(report_sink *sink, long step, const report_device *devices)
{
    screen_clear_bar(sink->screen);
    begin_line(sink);
    printf("update %ld", step);
    for (int r = 0; r < sink->run->ranks; r++)
        printf(" | rank %d: %.1f MiB, CPU %.0f %%", r, devices[r].resident / MIB,
               100.0 * devices[r].cpu);
    putchar('\n');
    fflush(stdout);
}

const sink_kind log_lines = {.open = open_log, .update = log_update, .devices = log_devices};
