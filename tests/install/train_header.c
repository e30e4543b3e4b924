/* SPDX-License-Identifier: Apache-2.0
 * An update of one rank, in the C that every standard of C and C++ since 1989 understands. */
#include <ring/train.h>

int main(void)
{
    ring_comm *comm = NULL;
    ring_train *engine = NULL;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    ring_train_op op = RING_TRAIN_OP_INIT;
    float inputs[2] = {1, 2};
    uint32_t label = 1;
    double loss = 0;
    int ok;
    (void)op;
    options.config_text = "{train_batch_size: 1, optimizer: {type: \"SGD\", params: {lr: 0.1}}}";
    options.layers = "{input: [2], layers: [{type: \"linear\", features: 3}]}";
    batch.rows = 1;
    batch.inputs = inputs;
    ok = ring_comm_init_env(&comm) == RING_OK &&
         ring_train_create(&engine, comm, &options) == RING_OK &&
         ring_train_forward(engine, &batch, NULL) == RING_OK &&
         ring_train_loss(engine, &label, &loss) == RING_OK &&
         ring_train_backward(engine) == RING_OK && ring_train_step(engine) == RING_OK && loss > 0;
    ring_train_destroy(engine);
    ring_comm_destroy(comm);
    return !ok;
}
