/* SPDX-License-Identifier: Apache-2.0
 *
 * tensorboard: writes event files that TensorBoard can read. A file is a sequence of records:
 *     length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data
 * All numbers are little-endian. The data of a record are a protocol buffer, the message Event:
 *     1: double wall_time   2: int64 step   3: string file_version
 *     5: Summary { 1: Value { 1: string tag   2: float simple_value } }
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "errors.h"
#include "monitor_events.h"
#include "sink.h"
#include "sink_file.h"

enum { RECORD_MAX = 256, HOST_MAX = 65 };

/* ---- Records ------------------------------------------------------------------------------- */

/* Computes CRC-32C (Castagnoli) bit by bit, because events are short and few. */
static uint32_t crc32c(const uint8_t *data, size_t bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82f63b78U & (0U - (crc & 1U)));
    }
    return ~crc;
}

/* Masks a checksum as the format requires: a CRC over data that contain a CRC would be weak. */
static uint32_t masked_crc(const uint8_t *data, size_t bytes)
{
    const uint32_t crc = crc32c(data, bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/* Writes a little-endian number. @return @p bytes. */
static size_t put_little(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
    return (size_t)bytes;
}

static void write_record(sink_file *file, const uint8_t *data, size_t bytes)
{
    uint8_t record[RECORD_MAX + 16];
    size_t used = put_little(record, bytes, 8);
    used += put_little(record + used, masked_crc(record, 8), 4);
    memcpy(record + used, data, bytes);
    used += bytes;
    used += put_little(record + used, masked_crc(data, bytes), 4);
    sink_file_write(file, record, used);
}

/* ---- Messages ------------------------------------------------------------------------------ */

/* A protocol buffer that is being written. */
typedef struct message {
    uint8_t bytes[RECORD_MAX];
    size_t used;
} message;

/* Wire types of protocol buffers. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_varint(message *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        to->bytes[to->used++] = (uint8_t)(value | 0x80);
    to->bytes[to->used++] = (uint8_t)value;
}

static void put_key(message *to, int field, int kind)
{
    put_varint(to, (uint64_t)field << 3 | (uint64_t)kind);
}

static void put_double(message *to, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(to, field, FIXED64);
    to->used += put_little(to->bytes + to->used, bits, 8);
}

static void put_float(message *to, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(to, field, FIXED32);
    to->used += put_little(to->bytes + to->used, bits, 4);
}

static void put_bytes(message *to, int field, const void *bytes, size_t count)
{
    put_key(to, field, BYTES);
    put_varint(to, count);
    memcpy(to->bytes + to->used, bytes, count);
    to->used += count;
}

static message begin_event(void)
{
    struct timeval now;
    message event = {.used = 0};
    gettimeofday(&now, NULL);
    put_double(&event, 1, (double)now.tv_sec + 1e-6 * (double)now.tv_usec);
    return event;
}

static void write_scalar(sink_file *file, const monitor_event *scalar, long samples)
{
    message event = begin_event(), value = {.used = 0}, summary = {.used = 0};
    put_bytes(&value, 1, scalar->name, strlen(scalar->name));
    put_float(&value, 2, (float)scalar->value);
    put_bytes(&summary, 1, value.bytes, value.used);
    put_key(&event, 2, VARINT);
    put_varint(&event, (uint64_t)samples);
    put_bytes(&event, 5, summary.bytes, summary.used);
    write_record(file, event.bytes, event.used);
}

/* ---- The sink ------------------------------------------------------------------------------ */

static ring_status open_tensorboard(report_sink *sink)
{
    static const char what[] = "tensorboard", version[] = "brain.Event:2";
    const monitor_config *config = &sink->run->config->tensorboard;
    char folder[OUTPUT_PATH_MAX], path[2 * OUTPUT_PATH_MAX], host[HOST_MAX] = "";
    struct timeval now;
    if (!config->enabled)
        return RING_OK;
    sink_file *file = sink_create_state(sink, sizeof *file);
    if (file == NULL)
        return RING_ERR_MEMORY;
    RING_TRY(sink_folder_create(what, config->output_path, config->job_name, folder));
    gettimeofday(&now, NULL);
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/events.out.tfevents.%ld.%s.%ld.0", folder, (long)now.tv_sec,
             host, (long)getpid());
    RING_TRY(sink_file_open(file, what, path, false));
    message event = begin_event();
    put_bytes(&event, 3, version, sizeof version - 1);
    write_record(file, event.bytes, event.used);
    return RING_OK;
}

static ring_status close_tensorboard(report_sink *sink)
{
    return sink_file_close(sink->state);
}

static void update_tensorboard(report_sink *sink, const report_step *step)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    const int count = monitor_of_step(sink->run, step, events);
    for (int i = 0; i < count; i++)
        write_scalar(sink->state, &events[i], step->all_samples);
}

static void epoch_tensorboard(report_sink *sink, const report_epoch *epoch)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    const int count = monitor_of_epoch(epoch, events);
    for (int i = 0; i < count; i++)
        write_scalar(sink->state, &events[i], epoch->all_samples);
}

const sink_kind tensorboard_events = {.open = open_tensorboard,
                                      .close = close_tensorboard,
                                      .update = update_tensorboard,
                                      .epoch = epoch_tensorboard};
