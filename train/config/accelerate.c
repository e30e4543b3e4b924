/* SPDX-License-Identifier: Apache-2.0
 * Translates accelerate's file with a table of its keys. A key stands for a key of DeepSpeed, is
 * handled by a function, or has no effect, for a reason that a note states. */
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
#define LAUNCH "it is about starting ranks; give the file to ringrun --config_file"
#define HOSTS "list the hosts in ringrun --hostfile"
#define NO_TPU "TPUs are not supported"
#define NO_CLOUD "Amazon SageMaker is not supported"

/* The state of reading one file. */
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

/* @return the entry's value as JSON. Its type need not be the one that the key expects, which the
 * reader of the configuration checks later. */
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

static ring_status take_type(const accelerate_reader *reader, const yaml_entry *entry)
{
    if (strcmp(entry->value, "DEEPSPEED") == 0 || strcmp(entry->value, "NO") == 0 ||
        strncmp(entry->value, "MULTI_", strlen("MULTI_")) == 0)
        return RING_OK;
    return wrong(reader, entry,
                 "DEEPSPEED, NO, or a name that begins with MULTI_, such as MULTI_GPU");
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
    return entry->is_section ? RING_OK
                             : wrong(reader, entry, "a section: indented lines below the key");
}

static ring_status refuse_file(const accelerate_reader *reader, const yaml_entry *entry)
{
    return lenient_fail(&reader->entries->text, entry->at, RING_ERR_CONFIG,
                        "the configuration is in another file; give that file to ringtrain "
                        "--deepspeed_config %s, and this one to ringrun --config_file",
                        entry->value);
}

/* A key of accelerate's file. It stands for DeepSpeed's key @p path, is handled by @p take, or has
 * no effect, for the reason @p why. A key with the value @p neutral is skipped silently; "*" stands
 * for any value, and NULL for "no". */
typedef struct accelerate_key {
    const char *section, *name, *path, *why, *neutral;
    ring_status (*take)(const accelerate_reader *reader, const yaml_entry *entry);
} accelerate_key;

static const accelerate_key table[] = {
    {SECTION, "zero_stage", .path = "zero_optimization.stage"},
    {SECTION, "gradient_accumulation_steps", .path = "gradient_accumulation_steps"},
    {SECTION, "gradient_clipping", .path = "gradient_clipping"},
    {SECTION, "offload_optimizer_device", .path = "zero_optimization.offload_optimizer.device"},
    {SECTION, "offload_param_device", .path = "zero_optimization.offload_param.device"},
    {SECTION, "offload_optimizer_nvme_path",
     .path = "zero_optimization.offload_optimizer.nvme_path"},
    {SECTION, "offload_param_nvme_path", .path = "zero_optimization.offload_param.nvme_path"},
    {SECTION, "zero3_save_16bit_model",
     .path = "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {SECTION, "zero3_init_flag", .why = "each rank only ever holds its own part"},
    {SECTION, "deepspeed_multinode_launcher", .why = LAUNCH, .neutral = "standard"},
    {SECTION, "deepspeed_hostfile", .why = HOSTS},
    {SECTION, "deepspeed_exclusion_filter", .why = HOSTS},
    {SECTION, "deepspeed_inclusion_filter", .why = HOSTS},
    {SECTION, "deepspeed_moe_layer_cls_names", .why = "layers of experts are not supported"},
    {SECTION, "deepspeed_config_file", .take = refuse_file, .neutral = "none"},
    {"", SECTION, .take = take_section},
    {"", "distributed_type", .take = take_type},
    {"", "mixed_precision", .take = take_precision},
    {"", "fp16", .path = "fp16.enabled"},
    {"", "num_processes", .take = take_processes, .neutral = "-1"},
    {"", "num_machines", .why = LAUNCH, .neutral = "1"},
    {"", "machine_rank", .why = LAUNCH, .neutral = "0"},
    {"", "main_process_ip", .why = LAUNCH},
    {"", "main_process_port", .why = LAUNCH},
    {"", "mpirun_config", .why = LAUNCH},
    {"", "rdzv_backend", .why = "rendezvous is always at rank 0", .neutral = "static"},
    {"", "same_network", .why = "", .neutral = "*"},
    {"", "gpu_ids", .why = "ranks run on CPUs", .neutral = "all"},
    {"", "use_cpu", .why = "", .neutral = "*"},
    {"", "compute_environment", .why = NO_CLOUD, .neutral = "LOCAL_MACHINE"},
    {"", "debug", .why = "mismatched calls of ranks are always detected"},
    {"", "enable_cpu_affinity", .why = "ringrun --bind-to binds ranks to cores"},
    {"", "main_training_function", .why = "there is no training script", .neutral = "main"},
    {"", "fsdp_config", .why = "ZeRO stages 2 and 3 shard states"},
    {"", "fp8_config", .why = "training in 8 bits is not supported"},
    {"", "tp_config", .why = "ringtrain --tp sets the number of tensor ranks"},
    {"", "parallelism_config", .why = "ringtrain has options for parallelism"},
    {"", "megatron_lm_config", .why = "Megatron-LM is not supported"},
    {"", "ipex_config", .why = "there is only one library of kernels"},
    {"", "dynamo_backend", .why = "networks are not compiled"},
    {"", "dynamo_config", .why = "networks are not compiled"},
    {"", "command_file", .why = NO_TPU},
    {"", "commands", .why = NO_TPU},
    {"", "downcast_bf16", .why = NO_TPU},
    {"", "tpu_env", .why = NO_TPU},
    {"", "tpu_name", .why = NO_TPU},
    {"", "tpu_use_cluster", .why = NO_TPU},
    {"", "tpu_use_sudo", .why = NO_TPU},
    {"", "tpu_vm", .why = NO_TPU},
    {"", "tpu_zone", .why = NO_TPU},
    {"", "additional_args", .why = NO_CLOUD},
    {"", "base_job_name", .why = NO_CLOUD},
    {"", "ec2_instance_type", .why = NO_CLOUD},
    {"", "iam_role_name", .why = NO_CLOUD},
    {"", "image_uri", .why = NO_CLOUD},
    {"", "profile", .why = NO_CLOUD},
    {"", "py_version", .why = NO_CLOUD},
    {"", "pytorch_version", .why = NO_CLOUD},
    {"", "region", .why = NO_CLOUD},
    {"", "sagemaker_inputs_file", .why = NO_CLOUD},
    {"", "sagemaker_metrics_file", .why = NO_CLOUD},
    {"", "transformers_version", .why = NO_CLOUD},
};

/* @return whether this is the value that accelerate writes if the user did not choose one. */
static bool is_neutral(const accelerate_key *key, const yaml_entry *entry)
{
    bool yes;
    const char *neutral = key->neutral != NULL ? key->neutral : "no";
    return yaml_is_null(entry) || strcasecmp(entry->value, neutral) == 0 ||
           strcmp(neutral, "*") == 0 || (yaml_bool(entry, &yes) && !yes) ||
           (entry->kind >= YAML_QUOTED && entry->value[0] == '\0');
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
                        "unknown key \"%s\"%s%s%s; accelerate's file has keys such as "
                        "zero_stage. Files of gpt-neox are not supported: give a DeepSpeed file "
                        "with --deepspeed_config and a network with --model",
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
        return RING_OK; /* the note about the section states the reason */
    if (key == NULL)
        return refuse_unknown(reader, entry);
    if (key->path != NULL)
        return add(reader, key->path, json_of(entry), entry->at);
    if (is_neutral(key, entry))
        return RING_OK;
    if (key->take != NULL)
        return key->take(reader, entry);
    snprintf(text, sizeof text, "%s has no effect here: %s", key->name, key->why);
    if (reader->note != NULL)
        reader->note(reader->context, text);
    return RING_OK;
}

/* ---- The file ------------------------------------------------------------------------------ */

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
    for (size_t i = 0; i < yaml->count; i++)
        faults_note(reader->faults, yaml->list[i].at, take_entry(reader, &yaml->list[i]));
    /* With accelerate, the script sets the batch size, so the file does not have it. */
    return add(reader, "train_micro_batch_size_per_gpu", cJSON_CreateString("auto"), 0);
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
