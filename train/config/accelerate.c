/* SPDX-License-Identifier: Apache-2.0
 * A table of the file's keys. */
#include "accelerate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "keys.h"
#include "numbers.h"
#include "words.h"
#include "yaml_subset.h"

#define SECTION "deepspeed_config"
#define LAUNCH "it says how ranks are started, and ringrun --config_file takes it"
#define NO_TPU "there is no TPU here"

/* A key stands for DeepSpeed's path, or has no effect, for a reason, or is looked at below. */
typedef struct accelerate_key {
    const char *section, *name, *path, *why;
} accelerate_key;

static const accelerate_key table[] = {
    {SECTION, "zero_stage", "zero_optimization.stage", NULL},
    {SECTION, "gradient_accumulation_steps", "gradient_accumulation_steps", NULL},
    {SECTION, "gradient_clipping", "gradient_clipping", NULL},
    {SECTION, "offload_optimizer_device", "zero_optimization.offload_optimizer.device", NULL},
    {SECTION, "offload_param_device", "zero_optimization.offload_param.device", NULL},
    {SECTION, "offload_optimizer_nvme_path", "zero_optimization.offload_optimizer.nvme_path", NULL},
    {SECTION, "offload_param_nvme_path", "zero_optimization.offload_param.nvme_path", NULL},
    {SECTION, "zero3_save_16bit_model",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save", NULL},
    {SECTION, "zero3_init_flag", NULL, "each rank keeps its part from the start"},
    {SECTION, "deepspeed_multinode_launcher", NULL, LAUNCH},
    {SECTION, "deepspeed_hostfile", NULL, "hosts are named by ringrun --hostfile"},
    {SECTION, "deepspeed_config_file", NULL, NULL},
    {"", SECTION, NULL, NULL},
    {"", "distributed_type", NULL, NULL},
    {"", "mixed_precision", NULL, NULL},
    {"", "num_processes", NULL, NULL},
    {"", "num_machines", NULL, LAUNCH},
    {"", "machine_rank", NULL, LAUNCH},
    {"", "main_process_ip", NULL, LAUNCH},
    {"", "main_process_port", NULL, LAUNCH},
    {"", "rdzv_backend", NULL, "ranks meet at rank 0, always"},
    {"", "same_network", NULL, "hosts are reached by their names"},
    {"", "gpu_ids", NULL, "ranks run on CPUs"},
    {"", "use_cpu", NULL, "ranks run on CPUs, always"},
    {"", "compute_environment", NULL, "the launcher's environment says where this runs"},
    {"", "debug", NULL, "different calls of ranks are always noticed"},
    {"", "enable_cpu_affinity", NULL, "ringrun ties ranks to cores by --bind-to"},
    {"", "main_training_function", NULL, "there is one"},
    {"", "downcast_bf16", NULL, NO_TPU},
    {"", "tpu_env", NULL, NO_TPU},
    {"", "tpu_use_cluster", NULL, NO_TPU},
    {"", "tpu_use_sudo", NULL, NO_TPU},
};

/* One reading of one file. */
typedef struct accelerate_reader {
    config_entries *entries;
    const yaml_subset *yaml;
    faults *faults;
    config_note_fn *note;
    void *context;
    long *processes;
} accelerate_reader;

/* ---- Entries ------------------------------------------------------------------------------- */

static ring_status add(const accelerate_reader *reader, const char *path, cJSON *value, size_t at)
{
    config_entries *entries = reader->entries;
    config_entry *entry = &entries->list[entries->count];
    if (value == NULL || !cJSON_AddItemToObject(entries->text.tree, path, value)) {
        cJSON_Delete(value);
        return train_fail(RING_ERR_MEMORY, "no memory for a configuration");
    }
    *entry = (config_entry){.value = value, .at = at};
    snprintf(entry->path, sizeof entry->path, "%s", path);
    entries->count++;
    return RING_OK;
}

/* As JSON would have it; what is no number where one is wanted stays a text, and is refused. */
static cJSON *json_of(const yaml_entry *entry)
{
    char *end;
    bool yes;
    const double number = number_leading(entry->value, &end);
    if (yaml_is_null(entry))
        return cJSON_CreateNull();
    if (yaml_bool(entry, &yes))
        return cJSON_CreateBool(yes);
    if (entry->kind == YAML_EMPTY_LIST)
        return cJSON_CreateArray();
    if (entry->kind == YAML_PLAIN && end != entry->value && *end == '\0')
        return cJSON_CreateNumber(number);
    return cJSON_CreateString(entry->value);
}

static ring_status wrong(const accelerate_reader *reader, const yaml_entry *entry,
                         const char *wanted)
{
    return lenient_fail(&reader->entries->text, entry->at, RING_ERR_CONFIG, "%s: expected %s",
                        entry->key, wanted);
}

/* ---- Keys ---------------------------------------------------------------------------------- */

static bool is_one_of(const char *value, const char *const *words)
{
    while (*words != NULL && strcmp(*words, value) != 0)
        words++;
    return *words != NULL;
}

static ring_status take_type(const accelerate_reader *reader, const yaml_entry *entry)
{
    static const char *const types[] = {"DEEPSPEED", "MULTI_CPU", "MULTI_GPU", "NO", NULL};
    if (is_one_of(entry->value, types))
        return RING_OK;
    return wrong(reader, entry,
                 "DEEPSPEED, or MULTI_CPU, MULTI_GPU or NO, which are ZeRO stage 0 here");
}

/* YAML takes a plain no for false. */
static ring_status take_precision(const accelerate_reader *reader, const yaml_entry *entry)
{
    static const char *const words[] = {"fp16", "bf16", NULL};
    char path[16];
    if (strcmp(entry->value, "no") == 0 || strcmp(entry->value, "false") == 0)
        return RING_OK;
    if (!is_one_of(entry->value, words))
        return wrong(reader, entry, "'no', fp16 or bf16");
    snprintf(path, sizeof path, "%.4s.enabled", entry->value);
    return add(reader, path, cJSON_CreateTrue(), entry->at);
}

static ring_status take_processes(const accelerate_reader *reader, const yaml_entry *entry)
{
    char *end;
    const long count = strtol(entry->value, &end, 10);
    if (entry->kind != YAML_PLAIN || *end != '\0' || count < 1 || count > INT32_MAX)
        return wrong(reader, entry, "a whole number from 1 to 2147483647");
    *reader->processes = count;
    return RING_OK;
}

static ring_status take_section(const accelerate_reader *reader, const yaml_entry *entry)
{
    if (entry->is_section || yaml_is_null(entry))
        return RING_OK;
    return wrong(reader, entry, "a section: indented lines behind it");
}

static ring_status refuse_file(const accelerate_reader *reader, const yaml_entry *entry)
{
    return lenient_fail(&reader->entries->text, entry->at, RING_ERR_CONFIG,
                        "the configuration is another file; give that one: ringtrain "
                        "--deepspeed_config %s, and this one to ringrun --config_file",
                        entry->value);
}

static ring_status take_special(const accelerate_reader *reader, const yaml_entry *entry)
{
    static const struct {
        const char *name;
        ring_status (*take)(const accelerate_reader *reader, const yaml_entry *entry);
    } specials[] = {
        {"distributed_type", take_type},        {"mixed_precision", take_precision},
        {"num_processes", take_processes},      {SECTION, take_section},
        {"deepspeed_config_file", refuse_file},
    };
    size_t i = 0;
    while (strcmp(specials[i].name, entry->key) != 0)
        i++;
    return specials[i].take(reader, entry);
}

static ring_status refuse_unknown(const accelerate_reader *reader, const yaml_entry *entry)
{
    const char *names[sizeof table / sizeof table[0]];
    size_t count = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].section, entry->section) == 0)
            names[count++] = table[i].name;
    }
    const char *nearest = words_nearest(entry->key, names, count);
    return lenient_fail(&reader->entries->text, entry->at, RING_ERR_CONFIG,
                        "unknown key \"%s\"%s%s%s; accelerate's file has keys like zero_stage; a "
                        "file of gpt-neox is of a model family that is not here: give a DeepSpeed "
                        "file by --deepspeed_config and a network by --model",
                        entry->key, nearest != NULL ? "; did you mean \"" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static const accelerate_key *find(const yaml_entry *entry)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].section, entry->section) == 0 && strcmp(table[i].name, entry->key) == 0)
            return &table[i];
    }
    return NULL;
}

static ring_status take_entry(const accelerate_reader *reader, const yaml_entry *entry)
{
    const accelerate_key *key = find(entry);
    char text[256];
    if (key == NULL)
        return refuse_unknown(reader, entry);
    if (key->path != NULL)
        return add(reader, key->path, json_of(entry), entry->at);
    if (key->why == NULL)
        return take_special(reader, entry);
    snprintf(text, sizeof text, "%s has no effect here: %s", key->name, key->why);
    if (reader->note != NULL)
        reader->note(reader->context, text);
    return RING_OK;
}

/* ---- The file ------------------------------------------------------------------------------ */

/* accelerate takes the batch from the script's loader, and the optimizer from the script. */
static ring_status take_entries(const accelerate_reader *reader)
{
    const yaml_subset *yaml = reader->yaml;
    for (size_t i = 0; i < yaml->count; i++)
        faults_note(reader->faults, yaml->list[i].at, take_entry(reader, &yaml->list[i]));
    const char *micro = "train_micro_batch_size_per_gpu";
    return add(reader, micro, cJSON_CreateString("auto"), 0);
}

static ring_status translate(const accelerate_reader *reader, const char *source, size_t length,
                             yaml_subset *yaml)
{
    config_entries *entries = reader->entries;
    if (!yaml_read(yaml, source, length))
        return lenient_fail(&entries->text, yaml->at, RING_ERR_CONFIG, "%s", yaml->problem);
    entries->text.tree = cJSON_CreateObject();
    entries->list = calloc(yaml->count + 1, sizeof *entries->list);
    if (entries->text.tree == NULL || entries->list == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for a configuration");
    return take_entries(reader);
}

ring_status accelerate_entries(config_entries *entries, const char *name, const char *source,
                               size_t length, faults *list, config_note_fn *note, void *context,
                               long *processes)
{
    yaml_subset *yaml = calloc(1, sizeof *yaml);
    const accelerate_reader reader = {entries, yaml, list, note, context, processes};
    *entries = (config_entries){0};
    *processes = 0;
    if (yaml == NULL) {
        faults_note(list, 0, train_fail(RING_ERR_MEMORY, "no memory for a configuration"));
        return RING_ERR_MEMORY;
    }
    entries->text = (lenient_text){.name = name, .source = source, .source_length = length};
    const ring_status status = translate(&reader, source, length, yaml);
    faults_note(list, SIZE_MAX, status);
    free(yaml);
    return status;
}
