/* SPDX-License-Identifier: Apache-2.0
 * A table of the file's keys. */
#include "accelerate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "errors.h"
#include "keys.h"
#include "numbers.h"
#include "words.h"
#include "yaml_subset.h"

#define SECTION "deepspeed_config"
#define LAUNCH "it says how ranks are started, and ringrun --config_file takes it"
#define HOSTS "hosts are named by ringrun --hostfile"
#define NO_TPU "there is no TPU here"
#define NO_CLOUD "jobs of Amazon SageMaker are started there"

/* A key stands for DeepSpeed's path, or has no effect, for a reason, or is looked at below. The
 * neutral value needs no reason; "*": none does. */
typedef struct accelerate_key {
    const char *section, *name, *path, *why, *neutral;
} accelerate_key;

static const accelerate_key table[] = {
    {SECTION, "zero_stage", "zero_optimization.stage", NULL, NULL},
    {SECTION, "gradient_accumulation_steps", "gradient_accumulation_steps", NULL, NULL},
    {SECTION, "gradient_clipping", "gradient_clipping", NULL, NULL},
    {SECTION, "offload_optimizer_device", "zero_optimization.offload_optimizer.device", NULL, NULL},
    {SECTION, "offload_param_device", "zero_optimization.offload_param.device", NULL, NULL},
    {SECTION, "offload_optimizer_nvme_path", "zero_optimization.offload_optimizer.nvme_path", NULL,
     NULL},
    {SECTION, "offload_param_nvme_path", "zero_optimization.offload_param.nvme_path", NULL, NULL},
    {SECTION, "zero3_save_16bit_model",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save", NULL, NULL},
    {SECTION, "zero3_init_flag", NULL, "each rank keeps its part from the start", NULL},
    {SECTION, "deepspeed_multinode_launcher", NULL, LAUNCH, "standard"},
    {SECTION, "deepspeed_hostfile", NULL, HOSTS, NULL},
    {SECTION, "deepspeed_exclusion_filter", NULL, HOSTS, NULL},
    {SECTION, "deepspeed_inclusion_filter", NULL, HOSTS, NULL},
    {SECTION, "deepspeed_moe_layer_cls_names", NULL, "networks here have no experts", NULL},
    {SECTION, "deepspeed_config_file", NULL, NULL, "none"},
    {"", SECTION, NULL, NULL, NULL},
    {"", "distributed_type", NULL, NULL, NULL},
    {"", "mixed_precision", NULL, NULL, NULL},
    {"", "fp16", "fp16.enabled", NULL, NULL},
    {"", "num_processes", NULL, NULL, "-1"},
    {"", "num_machines", NULL, LAUNCH, "1"},
    {"", "machine_rank", NULL, LAUNCH, "0"},
    {"", "main_process_ip", NULL, LAUNCH, NULL},
    {"", "main_process_port", NULL, LAUNCH, NULL},
    {"", "mpirun_config", NULL, LAUNCH, NULL},
    {"", "rdzv_backend", NULL, "ranks meet at rank 0, always", "static"},
    {"", "same_network", NULL, "", "*"},
    {"", "gpu_ids", NULL, "ranks run on CPUs", "all"},
    {"", "use_cpu", NULL, "", "*"},
    {"", "compute_environment", NULL, NO_CLOUD, "LOCAL_MACHINE"},
    {"", "debug", NULL, "different calls of ranks are always noticed", NULL},
    {"", "enable_cpu_affinity", NULL, "ringrun ties ranks to cores by --bind-to", NULL},
    {"", "main_training_function", NULL, "there is one", "main"},
    {"", "fsdp_config", NULL, "ZeRO stages 2 and 3 do this", NULL},
    {"", "fp8_config", NULL, "numbers of 8 bits are not trained with", NULL},
    {"", "tp_config", NULL, "ringtrain --tp does this", NULL},
    {"", "parallelism_config", NULL, "ringtrain has options for this", NULL},
    {"", "megatron_lm_config", NULL, "Megatron-LM is not here", NULL},
    {"", "ipex_config", NULL, "there is one library of kernels here", NULL},
    {"", "dynamo_backend", NULL, "networks are not compiled here", NULL},
    {"", "dynamo_config", NULL, "networks are not compiled here", NULL},
    {"", "command_file", NULL, NO_TPU, NULL},
    {"", "commands", NULL, NO_TPU, NULL},
    {"", "downcast_bf16", NULL, NO_TPU, NULL},
    {"", "tpu_env", NULL, NO_TPU, NULL},
    {"", "tpu_name", NULL, NO_TPU, NULL},
    {"", "tpu_use_cluster", NULL, NO_TPU, NULL},
    {"", "tpu_use_sudo", NULL, NO_TPU, NULL},
    {"", "tpu_vm", NULL, NO_TPU, NULL},
    {"", "tpu_zone", NULL, NO_TPU, NULL},
    {"", "additional_args", NULL, NO_CLOUD, NULL},
    {"", "base_job_name", NULL, NO_CLOUD, NULL},
    {"", "ec2_instance_type", NULL, NO_CLOUD, NULL},
    {"", "iam_role_name", NULL, NO_CLOUD, NULL},
    {"", "image_uri", NULL, NO_CLOUD, NULL},
    {"", "profile", NULL, NO_CLOUD, NULL},
    {"", "py_version", NULL, NO_CLOUD, NULL},
    {"", "pytorch_version", NULL, NO_CLOUD, NULL},
    {"", "region", NULL, NO_CLOUD, NULL},
    {"", "sagemaker_inputs_file", NULL, NO_CLOUD, NULL},
    {"", "sagemaker_metrics_file", NULL, NO_CLOUD, NULL},
    {"", "transformers_version", NULL, NO_CLOUD, NULL},
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
    if (entry->kind == YAML_LIST)
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

/* Accelerate writes these values where nothing was chosen. */
static bool is_neutral(const accelerate_key *key, const yaml_entry *entry)
{
    bool yes;
    const char *neutral = key->neutral != NULL ? key->neutral : "no";
    return yaml_is_null(entry) || strcasecmp(entry->value, neutral) == 0 ||
           strcmp(neutral, "*") == 0 || (yaml_bool(entry, &yes) && !yes) ||
           (entry->kind >= YAML_QUOTED && entry->value[0] == '\0');
}

static ring_status take_type(const accelerate_reader *reader, const yaml_entry *entry)
{
    if (strcmp(entry->value, "DEEPSPEED") == 0 || strcmp(entry->value, "NO") == 0 ||
        strncmp(entry->value, "MULTI_", strlen("MULTI_")) == 0)
        return RING_OK;
    return wrong(reader, entry, "DEEPSPEED, or MULTI_CPU, MULTI_GPU … or NO: ZeRO stage 0 here");
}

static ring_status take_precision(const accelerate_reader *reader, const yaml_entry *entry)
{
    char path[16];
    if (strcmp(entry->value, "fp16") != 0 && strcmp(entry->value, "bf16") != 0)
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
    return entry->is_section ? RING_OK : wrong(reader, entry, "a section: indented lines after it");
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

static const accelerate_key *find(const char *section, const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].section, section) == 0 && strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

static ring_status take_entry(const accelerate_reader *reader, const yaml_entry *entry)
{
    const accelerate_key *key = find(entry->section, entry->key);
    const accelerate_key *section = find("", entry->section);
    char text[256];
    if (section != NULL && section->why != NULL)
        return RING_OK; /* the section's own line has the reason */
    if (key == NULL)
        return refuse_unknown(reader, entry);
    if (key->path != NULL)
        return add(reader, key->path, json_of(entry), entry->at);
    if (is_neutral(key, entry))
        return RING_OK;
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
