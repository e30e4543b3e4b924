/* SPDX-License-Identifier: Apache-2.0
 * ringtrain's files: configurations, lists of layers, data sets as they are or compressed. */
#include "give.h"

#include "config.h"
#include "dataset.h"
#include "layer_list.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* From errors.h, whose RING_TRY is that of base.h. */
const char *train_error(void);

/* Some reasons have several lines. */
static const char *reason(void)
{
    static char text[2048];
    (void)text_format(text, sizeof text, "%s", train_error());
    for (char *at = text; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return text;
}

/* ---- Configurations ------------------------------------------------------------- */

static void seed_train_config(fuzz_seeds *to)
{
    fuzz_add_text(to, "{\"train_batch_size\": 64, \"optimizer\": {\"type\": \"SGD\", \"params\": "
                      "{\"lr\": 0.01, \"momentum\": 0.9, \"nesterov\": true}}, "
                      "\"gradient_clipping\": 1.0}");
    fuzz_add_text(to, "{ // comment\n train_micro_batch_size_per_gpu: 8,\n"
                      "  \"gradient_accumulation_steps\": 2e0,\n  optimizer: {type: \"AdamW\", "
                      "params: {lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.1,},},\n"
                      "  scheduler: {\"type\": \"WarmupDecayLR\", \"params\": "
                      "{\"warmup_min_lr\": 0, \"warmup_max_lr\": 0.01, \"warmup_num_steps\": 10, "
                      "\"total_num_steps\": 100, \"warmup_type\": \"linear\"}}, /* end */\n}");
    fuzz_add_text(to, "\xef\xbb\xbf{\"train_batch_size\": 4, \"optimizer\": {\"type\": \"Adam\"}, "
                      "\"fp16\": {\"enabled\": false}, \"steps_per_print\": 5, # x\n"
                      "\"wall_clock_breakdown\": true, \"zero_optimization\": {\"stage\": 0}}");
    fuzz_add_text(to,
                  "{\"train_micro_batch_size_per_gpu\": [30, 20, 5], \"data_partition\": [3, 2, "
                  "1], \"data_split\": \"contiguous\", \"sampler_shuffle\": false, "
                  "\"sampler_drop_last\": true, \"optimizer\": {\"type\": \"SGD\"}}");
    fuzz_add_text(to, "# Hjson\ntrain_batch_size: 64\noptimizer: {\n  type: SGD\n  'params': {lr: "
                      "1e-3}\n}\nwandb: {\n team: a \"b\" \\ c\n project: 'it\\'s'\n}\n");
    fuzz_add_text(to,
                  "{train_batch_size: 12, optimizer: {type: \"Lion\", params: {lr: 1e-4, betas: "
                  "[0.9, 0.99], weight_decay: 0.1}}, pipeline: {stages: 2, "
                  "partition: \"type:linear\", activation_checkpoint_interval: 1}, "
                  "scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 0.001, "
                  "cycle_max_lr: 0.01, cycle_first_step_size: 4, cycle_second_step_size: 2, "
                  "cycle_first_stair_count: 2, decay_step_size: 3, decay_lr_rate: 0.5, "
                  "cycle_min_mom: 0.8, cycle_max_mom: 0.9, decay_mom_rate: 0.1}}}");
    fuzz_add_text(to,
                  "{train_batch_size: 12, optimizer: {type: \"Adagrad\", params: {lr_decay: 0.1, "
                  "initial_accumulator_value: 0.5}, param_groups: \"no_decay\", no_decay_lr: "
                  "0.1}, tensor_parallel: {autotp_size: 2}, bf16: {enabled: true}, "
                  "zero_optimization: {stage: 3, offload_optimizer: {device: \"nvme\", "
                  "nvme_path: \"/a\"}, offload_param: {device: \"nvme\", nvme_path: \"/b\"}, "
                  "stage3_param_persistence_threshold: 0}, aio: {block_size: 65536, "
                  "queue_depth: 2}}");
    fuzz_add_any_text(to, "{\"train_batch_size\": [1|2|3], ..., \"\\u001b[2J\": 1}");
    fuzz_add_any_text(to, "{\"optimiser\": {\"type\": \"SGD\\u009b\"}, \"a\\nb\": 1}");
}

static void check_number(double value)
{
    must(isfinite(value));
}

static void check_config(const train_config *c)
{
    must(c->train_batch >= 0 && c->micro_batch >= 0 && c->accumulation >= 0);
    must(c->optimizer.kind < OPTIMIZER_KINDS && c->schedule.kind < SCHEDULE_KINDS);
    must(c->zero_stage >= 0 && c->zero_stage <= 3 && c->pipeline.stages >= 1);
    must(c->tensor_ranks >= 0 && c->offload.block_size > 0 && c->offload.queue_depth > 0);
    check_number(c->optimizer.lr);
    check_number(c->optimizer.momentum);
    check_number(c->optimizer.weight_decay);
    check_number(c->optimizer.betas[0]);
    check_number(c->optimizer.betas[1]);
    check_number(c->optimizer.no_decay_lr);
    check_number(c->optimizer.first_sum);
    check_number(c->schedule.max_lr);
    check_number(c->schedule.cycle.max_lr);
    check_number(c->schedule.cycle.max_momentum);
    check_number(c->gradient_clipping);
    must(c->optimizer.lr >= 0 && c->gradient_clipping >= 0 && c->schedule.warmup_steps >= 0);
}

static long batch_of_a_pass(const train_config *c, int ranks)
{
    const rank_numbers *micro = &c->micro_batches;
    long sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += micro->listed ? micro->values[r] : c->micro_batch;
    return sum;
}

/* As the program resolves what depends on the number of ranks. */
static ring_status resolve(train_config *c, int ranks, int *shares)
{
    RING_TRY(config_resolve_tensor(c, 0, ranks, "a fuzzer"));
    *shares = ranks / (int)c->tensor_ranks;
    RING_TRY(config_resolve_stages(c, 0, *shares, "a fuzzer"));
    *shares /= (int)c->pipeline.stages;
    return config_resolve_batch(c, *shares, "a fuzzer", BATCH_EXACT);
}

static void check_ranks(const train_config *config, int ranks)
{
    int shares;
    train_config c = *config;
    const ring_status status = resolve(&c, ranks, &shares);
    if (status != RING_OK)
        fuzz_check_refusal(status, reason());
    else
        must(shares >= 1 && c.micro_batch >= 1 && c.accumulation >= 1 &&
             c.train_batch == c.accumulation * batch_of_a_pass(&c, shares));
}

static void print_config(const train_config *c)
{
    static FILE *nowhere;
    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "we");
    must(nowhere != NULL);
    config_print(c, true, nowhere);
    config_list(c, nowhere);
}

static void take_note(void *context, const char *text)
{
    must(text[0] != '\0' && fuzz_is_printable(text));
}

static ring_status parse_with(const config_options *options, const unsigned char *bytes,
                              size_t size)
{
    train_config c;
    const ring_status status = config_parse("a.json", (const char *)bytes, size, options, take_note,
                                            NULL, &c);
    if (status != RING_OK) {
        fuzz_check_refusal(status, reason());
        return status;
    }
    check_config(&c);
    check_ranks(&c, 1);
    check_ranks(&c, 3);
    check_ranks(&c, 65536);
    print_config(&c);
    return RING_OK;
}

static ring_status parse_train_config(const unsigned char *bytes, size_t size)
{
    const config_options lenient = {.warn_unknown = true, .compat_ds_0_13 = true}, strict = {0};
    (void)parse_with(&lenient, bytes, size);
    return parse_with(&strict, bytes, size);
}

const fuzz_target fuzz_train_config = {.name = "train_config",
                                       .reads = "configurations of ringtrain",
                                       .most = 4096,
                                       .seeds = seed_train_config,
                                       .parse = parse_train_config};

/* ---- accelerate's YAML ---------------------------------------------------------- */

static void seed_accelerate(fuzz_seeds *to)
{
    fuzz_add_text(to, "compute_environment: LOCAL_MACHINE\ndebug: false\ndeepspeed_config:\n"
                      "  gradient_accumulation_steps: 2\n  gradient_clipping: 1.0\n"
                      "  offload_param_device: cpu\n  zero_stage: 3\ndistributed_type: DEEPSPEED\n"
                      "mixed_precision: 'no'\nnum_processes: 8\ntpu_env: []\n");
    fuzz_add_text(to, "---\n# x\nmixed_precision: \"no\" # y\r\nmachine_rank: ~\n"
                      "deepspeed_config:\n    zero_stage: null\n\nuse_cpu: yes");
    fuzz_add_text(to, "{\n  \"deepspeed_config\": {\"zero_stage\": 2},\n  \"num_processes\": 2,\n"
                      "  \"commands\": [\"a\", \"b\"], \"fsdp_config\": {}\n}\n");
    fuzz_add_text(to, "commands:\n- a\n- b\n  c\nfsdp_config: {}\ndebug: false\n");
    fuzz_add_text(to, "commands:\n- nul"); /* the text ends inside a word */
    fuzz_add_any_text(to, "a: 'it''s'\nb: \"\\\"\\\\\"\n\tc: [1]\n- d\n");
}

static ring_status parse_accelerate(const unsigned char *bytes, size_t size)
{
    const config_options options = {.accelerate = true};
    return parse_with(&options, bytes, size);
}

const fuzz_target fuzz_accelerate = {.name = "accelerate",
                                     .reads = "accelerate's configurations",
                                     .most = 4096,
                                     .seeds = seed_accelerate,
                                     .parse = parse_accelerate};

/* ---- Lists of layers ------------------------------------------------------------ */

static void seed_layer_list(fuzz_seeds *to)
{
    fuzz_add_text(to,
                  "{\"name\": \"a\", \"input\": [1, 8, 8], layers: [{type: \"conv2d\", channels: "
                  "3, kernel: 3, stride: 1, padding: 1, name: \"c\"}, // x\n {type: \"relu\"}, "
                  "{type: \"max_pool2d\", kernel: 2}, {type: \"flatten\"}, {type: \"dropout\", "
                  "probability: 0.25}, {type: \"linear\", features: 10},],}");
    fuzz_add_text(to,
                  "{\"input\": [4], \"layers\": [{\"type\": \"linear\", \"features\": 4, \"name\": "
                  "\"a\"}, {\"type\": \"linear\", \"features\": 4, \"tie\": \"a\"}, {\"type\": "
                  "\"tanh\", \"input\": \"a\"}, {\"type\": \"add\", \"input\": [\"1\", \"2\"]}]}");
    fuzz_add_text(to,
                  "{\"input\": [2, 7, 7], \"layers\": [{\"type\": \"avg_pool2d\", \"kernel\": 3, "
                  "\"stride\": 2, \"padding\": 1}, {\"type\": \"conv2d\", \"channels\": 1, "
                  "\"kernel\": 4}, {\"type\": \"flatten\"}, {\"type\": \"linear\", \"features\": "
                  "1e1}]}");
    fuzz_add_text(
        to, "{name: \"g\", gpt: {n_layer: 2, n_head: 3, n_embd: 12, block_size: 5, vocab_size: "
            "7, dropout: 0.1, approximate: \"tanh\", tie_word_embeddings: false}}");
    fuzz_add_text(
        to, "{input: [4], layers: [{type: \"embedding\", vocabulary: 9, features: 6, init_std: "
            "0.02}, {type: \"position_embedding\"}, {type: \"layer_norm\"}, {type: \"linear\", "
            "features: 18, bias: false}, {type: \"attention\", heads: 2}, {type: \"gelu\", "
            "approximate: \"none\"}]}");
    fuzz_add_any_text(to, "{\"input\": [1], \"layers\": [{\"type\": \"\\u001b[2J\"}]}");
    fuzz_add_any_text(to,
                      "{\"input\": [16777216], \"layers\": [{\"type\": \"linear\", \"features\": "
                      "16777216, \"name\": \"\\u009b\"}]}");
}

static void check_nodes(const model_spec *spec)
{
    int failed;
    must(spec->count > 0 && spec->count <= NODES_MAX && fuzz_is_printable(spec->name));
    for (int n = 0; n < spec->count; n++) {
        const node_spec *node = &spec->nodes[n];
        must(node->op != NULL && node->tie < n && node->name[0] != '\0');
        must(fuzz_is_printable(node->name));
        for (int k = 0; k < node->op->inputs; k++)
            must(node->inputs[k] >= MODEL_INPUT && node->inputs[k] < n);
    }
    must(model_check(spec, &failed) == RING_OK);
    (void)model_spec_hash(spec);
}

static ring_status parse_layer_list(const unsigned char *bytes, size_t size)
{
    model_spec spec;
    const ring_status status = layer_list_parse(&spec, NULL, "a.json", (const char *)bytes, size);
    if (status == RING_OK)
        check_nodes(&spec);
    model_spec_free(&spec);
    return status;
}

const fuzz_target fuzz_layer_list = {.name = "layer_list",
                                     .reads = "networks of ringtrain",
                                     .most = 4096,
                                     .seeds = seed_layer_list,
                                     .parse = parse_layer_list,
                                     .reason = reason};

/* ---- Data ----------------------------------------------------------------------- */

static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0,  0,
                                       0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 0, 9, 5};

/* @return bytes of the gzip file. */
static size_t compress_to(unsigned char *out, size_t most, const unsigned char *in, size_t size)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)in,
                  .avail_in = (unsigned)size,
                  .next_out = out,
                  .avail_out = (unsigned)most};
    must(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    const size_t bytes = most - z.avail_out;
    deflateEnd(&z);
    return bytes;
}

static void seed_idx_file(fuzz_seeds *to)
{
    static unsigned char large[16 + 60 * 60], packed[512];
    static const unsigned char head[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0, 60};
    fuzz_add(to, images, sizeof images);
    fuzz_add(to, packed, compress_to(packed, sizeof packed, images, sizeof images));
    memcpy(large, head, sizeof head);
    fuzz_add(to, packed, compress_to(packed, sizeof packed, large, sizeof large));
}

static ring_status parse_idx_file(const unsigned char *bytes, size_t size)
{
    idx_array a;
    const ring_status status = idx_read(give_file(0, bytes, size), 3, &a);
    if (status == RING_OK)
        must(a.bytes > 0 && a.bytes == a.shape[0] * a.shape[1] * a.shape[2] && a.data != NULL &&
             a.data[a.bytes - 1] <= UINT8_MAX);
    idx_free(&a);
    return status;
}

const fuzz_target fuzz_idx_file = {.name = "idx_file",
                                   .reads = "IDX files, raw and gzip",
                                   .most = 4096,
                                   .seeds = seed_idx_file,
                                   .parse = parse_idx_file,
                                   .reason = reason};

/* A byte that says how long the file of labels is, which follows; then that of images. */
static void add_dataset(fuzz_seeds *to, const unsigned char *first, size_t first_bytes,
                        const unsigned char *second, size_t second_bytes)
{
    unsigned char both[1024] = {(unsigned char)first_bytes};
    memcpy(both + 1, first, first_bytes);
    memcpy(both + 1 + first_bytes, second, second_bytes);
    fuzz_add(to, both, 1 + first_bytes + second_bytes);
}

static void seed_dataset(fuzz_seeds *to)
{
    unsigned char packed[256];
    const size_t bytes = compress_to(packed, sizeof packed, labels, sizeof labels);
    add_dataset(to, labels, sizeof labels, images, sizeof images);
    add_dataset(to, packed, bytes, images, sizeof images);
}

static const char *dataset_folder(void)
{
    static const char *folder;
    if (folder == NULL) {
        folder = give_folder(NULL);
        give_link(folder, "t10k-labels-idx1-ubyte.gz", 0);
        give_link(folder, "t10k-images-idx3-ubyte", 1);
    }
    return folder;
}

static void check_dataset(const train_dataset *d)
{
    const uint32_t order[] = {(uint32_t)d->count - 1, 0};
    float *taken = malloc(2 * d->features * sizeof *taken);
    uint32_t classes[2];
    must(taken != NULL && d->count > 0 && d->features > 0);
    dataset_take(d, order, 2, taken, classes);
    must(classes[0] < DATASET_CLASSES && classes[1] < DATASET_CLASSES);
    must(taken[0] >= 0 && taken[2 * d->features - 1] <= 1);
    (void)dataset_hash(d);
    free(taken);
}

static ring_status parse_dataset(const unsigned char *bytes, size_t size)
{
    train_dataset d;
    if (size == 0)
        return RING_IN_PROGRESS;
    const char *folder = dataset_folder();
    const size_t first = min_size(bytes[0], size - 1);
    (void)give_fd(0, bytes + 1, first);
    (void)give_fd(1, bytes + 1 + first, size - 1 - first);
    RING_TRY(dataset_read(folder, DATASET_TEST, &d));
    check_dataset(&d);
    dataset_free(&d);
    return RING_OK;
}

const fuzz_target fuzz_dataset = {.name = "dataset",
                                  .reads = "images and labels that belong together",
                                  .most = 2048,
                                  .seeds = seed_dataset,
                                  .parse = parse_dataset,
                                  .reason = reason};

static void seed_cifar(fuzz_seeds *to)
{
    static unsigned char records[2 * 3073];
    records[0] = 9;
    records[3072] = 255;
    fuzz_add(to, records, sizeof records);
    fuzz_add(to, records, 3073);
    records[3073] = 10;
    fuzz_add_any(to, records, sizeof records);
}

static ring_status parse_cifar(const unsigned char *bytes, size_t size)
{
    static const char *folder;
    train_dataset d;
    if (folder == NULL) {
        folder = give_folder(NULL);
        give_link(folder, "data_batch_1.bin", 0);
    }
    (void)give_fd(0, bytes, size);
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &d));
    must(d.count == size / 3073 && d.features == 3072);
    check_dataset(&d);
    dataset_free(&d);
    return RING_OK;
}

const fuzz_target fuzz_cifar = {.name = "cifar",
                                .reads = "CIFAR-10's binary files",
                                .most = 3 * 3073,
                                .seeds = seed_cifar,
                                .parse = parse_cifar,
                                .reason = reason};

/* Tokens of 16 bits, the same after llm.c's header, and of 32 bits after its other one. */
static void seed_text(fuzz_seeds *to)
{
    static unsigned char file[1024 + 8] = {0x88, 0xd8, 0x34, 0x01, 1, 0, 0, 0, 4};
    static const unsigned char tokens[] = {1, 0, 255, 255, 0, 1, 7, 0, 9, 0};
    memcpy(file + 1024, tokens, 8);
    fuzz_add(to, tokens, sizeof tokens);
    fuzz_add(to, file, sizeof file);
    fuzz_add_any(to, file, sizeof file - 2);
    fuzz_add_any(to, tokens, 3);
    static unsigned char wide[1024 + 12] = {0xa1, 0xd9, 0x34, 0x01, 7, 0, 0, 0, 3};
    wide[1024] = wide[1024 + 4] = wide[1024 + 6] = 1;
    fuzz_add(to, wide, sizeof wide);
    fuzz_add_any(to, wide, sizeof wide - 2);
}

static ring_status parse_text(const unsigned char *bytes, size_t size)
{
    static const char *folder;
    train_dataset d;
    const uint32_t first[] = {0};
    float taken[2];
    uint32_t next[2];
    if (folder == NULL) {
        folder = give_folder(NULL);
        give_link(folder, "train.bin", 0);
    }
    (void)give_fd(0, bytes, size);
    RING_TRY(dataset_read(folder, DATASET_TRAIN, &d));
    const ring_status status = dataset_cut(&d, 2);
    if (status == RING_OK) {
        dataset_take(&d, first, 1, taken, next);
        must(d.count <= size / 4 && taken[1] == (float)next[0] && next[1] < d.classes);
    }
    dataset_free(&d);
    return status;
}

const fuzz_target fuzz_text = {.name = "text",
                               .reads = "texts of 16-bit and 32-bit tokens",
                               .most = 2048,
                               .seeds = seed_text,
                               .parse = parse_text,
                               .reason = reason};
