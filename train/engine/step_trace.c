/* SPDX-License-Identifier: Apache-2.0
 * One event a line. Transfers overlap, so they are written as asynchronous events. */
#include "step_trace.h"

enum { NAME_MAX_BYTES = 64 };

static double microseconds(const step_trace *trace, double when)
{
    return 1e6 * (when - trace->start);
}

/* "backward bucket 1", "reduce loss", "clip". */
static const char *name_of(const step_instruction *at, char name[NAME_MAX_BYTES])
{
    const char *kind = step_names[at->kind];
    if (at->kind == STEP_LOAD || at->kind == STEP_CLIP)
        snprintf(name, NAME_MAX_BYTES, "%s", kind);
    else if (at->bucket == BUCKET_LOSS)
        snprintf(name, NAME_MAX_BYTES, "%s loss", kind);
    else
        snprintf(name, NAME_MAX_BYTES, "%s bucket %d", kind, at->bucket);
    return name;
}

void step_trace_begin(step_trace *trace, FILE *out, int rank, double start)
{
    *trace = (step_trace){.out = out, .start = start, .rank = rank};
    fputs(rank == 0 ? "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" : ",\n", out);
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": \"rank "
            "%d\"}}",
            rank, rank);
}

void step_trace_end(FILE *out)
{
    fputs("\n]}\n", out);
}

void step_trace_span(step_trace *trace, const char *before, const step_instruction *at,
                     double begin, double end)
{
    char name[NAME_MAX_BYTES];
    if (trace == NULL)
        return;
    fprintf(trace->out,
            ",\n{\"ph\": \"X\", \"name\": \"%s%s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": 0, "
            "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"update\": %ld, \"micro\": %d}}",
            before, name_of(at, name), *before != '\0' ? "wait" : "run", trace->rank,
            microseconds(trace, begin), 1e6 * (end - begin), trace->update, at->micro);
}

void step_trace_wire(step_trace *trace, const step_instruction *at, int number, bool begins,
                     double when)
{
    char name[NAME_MAX_BYTES];
    if (trace == NULL)
        return;
    fprintf(trace->out,
            ",\n{\"ph\": \"%c\", \"name\": \"%s\", \"cat\": \"wire\", \"id\": \"%d.%ld.%d\", "
            "\"pid\": %d, \"tid\": 1, \"ts\": %.3f}",
            begins ? 'b' : 'e', name_of(at, name), trace->rank, trace->update, number, trace->rank,
            microseconds(trace, when));
}
