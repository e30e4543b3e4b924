/* SPDX-License-Identifier: Apache-2.0
 * Writes one event per line. Calls on the wire overlap each other, so they are written as
 * asynchronous events: a pair of begin and end with the same id. */
#include "update_trace.h"

enum { NAME_MAX_BYTES = 64 };

static double microseconds(const update_trace *trace, double when)
{
    return 1e6 * (when - trace->start);
}

/* Writes and returns the name of an instruction: "backward bucket 1", "reduce loss" or "clip". */
static const char *name_of(const update_instruction *at, char name[NAME_MAX_BYTES])
{
    const char *kind = update_kind_names[at->kind];
    if (at->kind == UPDATE_LOAD || at->kind == UPDATE_CLIP)
        snprintf(name, NAME_MAX_BYTES, "%s", kind);
    else if (at->bucket == BUCKET_LOSS)
        snprintf(name, NAME_MAX_BYTES, "%s loss", kind);
    else
        snprintf(name, NAME_MAX_BYTES, "%s bucket %d", kind, at->bucket);
    return name;
}

void update_trace_begin(update_trace *trace, FILE *out, int rank, double start)
{
    *trace = (update_trace){.out = out, .start = start, .rank = rank};
    fputs(rank == 0 ? "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" : ",\n", out);
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": \"rank "
            "%d\"}}",
            rank, rank);
}

void update_trace_end(FILE *out)
{
    fputs("\n]}\n", out);
}

void update_trace_span(update_trace *trace, const char *before, const update_instruction *at,
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

void update_trace_wire(update_trace *trace, const update_instruction *at, int number, bool begins,
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
