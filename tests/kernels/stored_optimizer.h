/* SPDX-License-Identifier: Apache-2.0
 * Written by make_optimizer_vectors.py with PyTorch 2.13.0+cpu: parameters
 * after 3 steps of each optimiser. */
enum { STORED_COUNT = 37, STORED_STEPS = 3 };

static const float stored_start[STORED_COUNT] = {
    0x1.f562c2p-2f, 0x1.2262a2p-1f, 0x1.8cfda4p+0f, -0x1.6eef7ap-2f,
    0x1.5bbbf6p-1f, -0x1.44b0f4p-5f, -0x1.1aa082p-3f, -0x1.c9cb08p-2f,
    0x1.2fdf6p+0f, -0x1.0cc604p-2f, 0x1.f773f8p-1f, 0x1.a375dap-1f,
    -0x1.07b2p-2f, 0x1.bf7e4p+0f, -0x1.f54e54p+0f, -0x1.dabb8cp-4f,
    -0x1.03d25ap+0f, 0x1.0b0c1cp-2f, -0x1.21b35p-1f, -0x1.f91c96p-9f,
    -0x1.896dcap+0f, 0x1.23b284p+0f, 0x1.4b0bccp-4f, -0x1.8bc95cp-1f,
    0x1.039efcp-1f, 0x1.5ef76ap+0f, 0x1.0f357ap-1f, -0x1.8ae43ep+0f,
    -0x1.6d9c2p+0f, 0x1.af89acp-5f, -0x1.702b7ep-1f, 0x1.36d936p+0f,
    0x1.29614cp+0f, 0x1.8b808cp-1f, 0x1.5d104ep-3f, -0x1.8a585ep-3f,
    -0x1.0c65c6p+0f};

static const float stored_grads[STORED_STEPS][STORED_COUNT] = {
{
    -0x1.01ff8p-6f, -0x1.d07048p-10f, 0x1.23273ep-10f, 0x1.c6dec2p-11f,
    0x1.b3b378p-14f, 0x1.14f6fap-10f, -0x1.69ff54p-10f, -0x1.785572p-6f,
    0x1.8da004p+2f, -0x1.ac7bfp-7f, -0x1.c7339cp-7f, -0x1.108b56p+1f,
    -0x1.20dc38p-9f, 0x1.2743b8p-10f, -0x1.bd422p+0f, 0x1.294da8p-3f,
    0x1.f257a8p+2f, -0x1.0fed24p-1f, 0x1.bbcd5ep-7f, -0x1.a0b634p-11f,
    0x1.235d1p-6f, 0x1.a854d2p-9f, 0x1.2e311ap-1f, 0x1.95147p-14f,
    0x1.9c526p-6f, -0x1.455fa4p-15f, 0x1.f8bf4p-5f, -0x1.d5b67ep-5f,
    -0x1.b7403p-13f, 0x1.339eap-4f, -0x1.462fe6p-3f, -0x1.e79e5p-14f,
    0x1.5f88dcp-10f, -0x1.a937cap+1f, 0x1.333096p-10f, 0x1.bfbf8cp-11f,
    0x1.d5e57ap-7f},
{
    -0x1.b06aa6p-6f, 0x1.de706p-5f, -0x1.30cbe6p+1f, 0x1.40547p-8f,
    -0x1.2eacp+2f, -0x1.0a16e8p-15f, -0x1.2ac6c2p-10f, -0x1.1bd23cp-12f,
    0x1.85a0dap+1f, -0x1.2e9b24p-11f, 0x1.3deecap-14f, -0x1.16be5ep+1f,
    0x1.0131c4p+3f, -0x1.671b5p-1f, -0x1.2550b6p+4f, -0x1.60242ep-13f,
    0x1.73bd0ap+3f, 0x1.569fbcp-4f, 0x1.ab7c44p-5f, -0x1.e12e3cp+0f,
    0x1.fd34c2p-6f, 0x1.599f6p-4f, 0x1.a39b32p-17f, 0x1.68e066p-7f,
    0x1.549076p+1f, -0x1.591828p-9f, 0x1.6c8a9p-3f, 0x1.08328p-3f,
    0x1.72edc8p-1f, 0x1.7e65cp+2f, -0x1.264e36p-10f, -0x1.96d5a6p+3f,
    -0x1.194a62p-11f, -0x1.d7b3fp+1f, -0x1.9589ep-12f, -0x1.0f1776p-8f,
    0x1.930df6p+0f},
{
    0x1.836fcp+1f, -0x1.f9c44p+0f, -0x1.30664cp+2f, 0x1.8dc62cp+2f,
    0x1.a96b82p+0f, -0x1.22d928p-20f, -0x1.2195c2p+2f, 0x1.1f6112p-8f,
    -0x1.417d44p-3f, 0x1.68e7dp+2f, 0x1.2b7b9ep-4f, -0x1.1a8f94p-13f,
    0x1.5b27bcp+3f, 0x1.9bcea6p-8f, 0x1.03463p-1f, -0x1.eb7e42p-16f,
    -0x1.1b7c96p-3f, 0x1.c17cfep-3f, -0x1.2a13bep-12f, -0x1.3caea8p-11f,
    -0x1.c6a4e2p-4f, 0x1.010daep-4f, 0x1.07387ep-3f, -0x1.876c92p-8f,
    -0x1.237466p-3f, -0x1.0912b6p-14f, 0x1.6cc34p-2f, -0x1.ea3498p-11f,
    -0x1.fa1fd2p-1f, -0x1.eed196p-9f, -0x1.fecbecp+1f, -0x1.b77d86p-19f,
    -0x1.58ed8cp-4f, 0x1.6e960ep+4f, 0x1.69d00ap-10f, 0x1.8ff89ep-11f,
    -0x1.c82e2ap-5f}};

typedef struct stored_case {
    bool is_sgd, is_adam;
    kernel_sgd sgd;
    kernel_adam adam;
    float end[STORED_COUNT];
} stored_case;

static const stored_case stored_cases[] = {
{ /* SGD */
.is_sgd = true,
.sgd = {.scale = 1, .lr = 0.1},
.end = {
    0x1.8780d8p-3f, 0x1.84a39ap-1f, 0x1.21d73ap+1f, -0x1.f5fb5p-1f,
    0x1.f8c84cp-1f, -0x1.4587a6p-5f, 0x1.4247d6p-2f, -0x1.c7dcc2p-2f,
    0x1.1ba972p-2f, -0x1.a6698p-1f, 0x1.f46ab6p-1f, 0x1.3ffdcp+0f,
    -0x1.12ac6ep+1f, 0x1.d1424p+0f, -0x1.c1f4b4p-10f, -0x1.0b0e66p-3f,
    -0x1.7880cp+1f, 0x1.22647cp-2f, -0x1.250d16p-1f, 0x1.7956bp-3f,
    -0x1.87d696p+0f, 0x1.1fd902p+0f, 0x1.2525a4p-7f, -0x1.8c0cb2p-1f,
    0x1.02c94cp-2f, 0x1.5f0958p+0f, 0x1.e167b8p-2f, -0x1.8cb3c6p+0f,
    -0x1.66d84p+0f, -0x1.1a994cp-1f, -0x1.374738p-2f, 0x1.3e28dcp+1f,
    0x1.2b83e8p+0f, -0x1.a2ce26p-1f, 0x1.5c9ec8p-3f, -0x1.89d444p-3f,
    -0x1.33a5p+0f}},
{ /* SGD */
.is_sgd = true,
.sgd = {.scale = 1, .lr = 0.1, .weight_decay = 0.01},
.end = {
    0x1.847c74p-3f, 0x1.83c588p-1f, 0x1.213726p+1f, -0x1.f56e76p-1f,
    0x1.f77f84p-1f, -0x1.448e18p-5f, 0x1.42b428p-2f, -0x1.c67ebcp-2f,
    0x1.199a44p-2f, -0x1.a602bep-1f, 0x1.f2e814p-1f, 0x1.3f32aap+0f,
    -0x1.1278d2p+1f, 0x1.cfe658p+0f, 0x1.026a74p-9f, -0x1.0a4916p-3f,
    -0x1.77c4p+1f, 0x1.217df8p-2f, -0x1.242dc8p-1f, 0x1.78fa1ap-3f,
    -0x1.86a84cp+0f, 0x1.1ef9dp+0f, 0x1.21137p-7f, -0x1.8adce4p-1f,
    0x1.0181fep-2f, 0x1.5dfc0cp+0f, 0x1.dfcf72p-2f, -0x1.8b84b6p+0f,
    -0x1.65bbp+0f, -0x1.1a5db4p-1f, -0x1.351aa8p-2f, 0x1.3d87f4p+1f,
    0x1.2a9fc4p+0f, -0x1.a484eep-1f, 0x1.5b9314p-3f, -0x1.88a5d8p-3f,
    -0x1.32cc92p+0f}},
{ /* SGD */
.is_sgd = true,
.sgd = {.scale = 1, .lr = 0.05, .momentum = 0.9},
.end = {
    0x1.5f29ep-2f, 0x1.523e7ep-1f, 0x1.01df2cp+1f, -0x1.56e014p-1f,
    0x1.0b9b9ap+0f, -0x1.45d6c2p-5f, 0x1.6aa0c4p-4f, -0x1.c6cdep-2f,
    0x1.056f74p-4f, -0x1.15d05p-1f, 0x1.f68a92p-1f, 0x1.508d7cp+0f,
    -0x1.902d5cp+0f, 0x1.d06e66p+0f, -0x1.9dba96p-8f, -0x1.159d8p-3f,
    -0x1.95561ap+1f, 0x1.415d64p-2f, -0x1.252bc4p-1f, 0x1.66165ap-3f,
    -0x1.89617ep+0f, 0x1.20bac6p+0f, -0x1.6db564p-8f, -0x1.8c2d1p-1f,
    0x1.08352cp-2f, 0x1.5f085cp+0f, 0x1.f25094p-2f, -0x1.8c072cp+0f,
    -0x1.72919p+0f, -0x1.0cc3bep-1f, -0x1.fdd012p-2f, 0x1.3605fep+1f,
    0x1.2a6caep+0f, 0x1.b55becp-2f, 0x1.5cac24p-3f, -0x1.89db02p-3f,
    -0x1.3278fp+0f}},
{ /* SGD */
.is_sgd = true,
.sgd = {.scale = 1, .lr = 0.05, .momentum = 0.9, .dampening = 0.3,
         .weight_decay = 0.02},
.end = {
    0x1.8a8208p-2f, 0x1.428c68p-1f, 0x1.de35f4p+0f, -0x1.2633b2p-1f,
    0x1.dd4338p-1f, -0x1.444ea8p-5f, 0x1.5cae06p-6f, -0x1.c49452p-2f,
    0x1.25e534p-3f, -0x1.d3c16ep-2f, 0x1.f4b7dcp-1f, 0x1.3f958ep+0f,
    -0x1.2b8402p+0f, 0x1.c936cap+0f, -0x1.06721cp-1f, -0x1.14764ap-3f,
    -0x1.6a708ap+1f, 0x1.45d78ep-2f, -0x1.2309aep-1f, 0x1.f09ad8p-4f,
    -0x1.87b744p+0f, 0x1.203484p+0f, -0x1.0348f8p-8f, -0x1.8a2fbp-1f,
    0x1.5147f6p-2f, 0x1.5d59c8p+0f, 0x1.fa6ca6p-2f, -0x1.893892p+0f,
    -0x1.6f57aap+0f, -0x1.6b4f32p-2f, -0x1.1bd664p-1f, 0x1.06de4p+1f,
    0x1.28b048p+0f, 0x1.52b88ap-1f, 0x1.5b0ap-3f, -0x1.88349ep-3f,
    -0x1.25eadep+0f}},
{ /* SGD */
.is_sgd = true,
.sgd = {.scale = 1, .lr = 0.05, .momentum = 0.8, .nesterov = 1,
         .weight_decay = 0.02},
.end = {
    0x1.c0fe9ap-3f, 0x1.77d41cp-1f, 0x1.20fa1cp+1f, -0x1.d4eb06p-1f,
    0x1.19d5b4p+0f, -0x1.4399e6p-5f, 0x1.150dc6p-2f, -0x1.c36a46p-2f,
    -0x1.7b200ep-4f, -0x1.8840a8p-1f, 0x1.f182dp-1f, 0x1.645dccp+0f,
    -0x1.1b00fap+1f, 0x1.d1f828p+0f, 0x1.ffc48p-2f, -0x1.175dcp-3f,
    -0x1.c73964p+1f, 0x1.3a803p-2f, -0x1.23e20ep-1f, 0x1.cd861ap-3f,
    -0x1.85afap+0f, 0x1.1d6738p+0f, -0x1.29ef68p-6f, -0x1.895d26p-1f,
    0x1.81c672p-3f, 0x1.5c8814p+0f, 0x1.da33c2p-2f, -0x1.89e5f6p+0f,
    -0x1.6acc44p+0f, -0x1.5f6e8p-1f, -0x1.532362p-2f, 0x1.609508p+1f,
    0x1.2926bcp+0f, -0x1.6dd616p-2f, 0x1.5a0bdep-3f, -0x1.86e13p-3f,
    -0x1.3ad5c6p+0f}},
{ /* Adam */
.is_adam = true,
.adam = {.scale = 1, .lr = 0.001, .beta1 = 0.9, .beta2 = 0.999,
         .eps = 1e-08, .bias_correction = 1},
.end = {
    0x1.f6c4fap-2f, 0x1.22d868p-1f, 0x1.8d2328p+0f, -0x1.717bfap-2f,
    0x1.5bc5cap-1f, -0x1.5647eep-5f, -0x1.153ddap-3f, -0x1.c7ab48p-2f,
    0x1.2f32d4p+0f, -0x1.0baeecp-2f, 0x1.f808a6p-1f, 0x1.a4e17p-1f,
    -0x1.084f2ep-2f, 0x1.bf92acp+0f, -0x1.f4b086p+0f, -0x1.e3b01cp-4f,
    -0x1.0486a6p+0f, 0x1.0cc87cp-2f, -0x1.23046ep-1f, -0x1.92092ap-10f,
    -0x1.89d6d4p+0f, 0x1.23065p+0f, 0x1.419344p-4f, -0x1.8cc994p-1f,
    0x1.02721ap-1f, 0x1.5f9186p+0f, 0x1.0dc3d2p-1f, -0x1.8ad1d6p+0f,
    -0x1.6d7fdap+0f, 0x1.9c6b66p-5f, -0x1.6ef986p-1f, 0x1.377134p+0f,
    0x1.2932acp+0f, 0x1.8c4a7ep-1f, 0x1.58ca32p-3f, -0x1.8a7c78p-3f,
    -0x1.0cfcfap+0f}},
{ /* Adam */
.is_adam = true,
.adam = {.scale = 1, .lr = 0.003, .eps = 1e-06, .weight_decay = 0.1,
         .beta1 = 0.8, .beta2 = 0.99, .bias_correction = 1},
.end = {
    0x1.ed2a88p-2f, 0x1.205b76p-1f, 0x1.8d74ep+0f, -0x1.6af914p-2f,
    0x1.5bd106p-1f, -0x1.f580cp-6f, -0x1.09fe1ep-3f, -0x1.c0e742p-2f,
    0x1.2de56p+0f, -0x1.08e676p-2f, 0x1.f2d56cp-1f, 0x1.a79e08p-1f,
    -0x1.09cd9p-2f, 0x1.bf436p+0f, -0x1.f36dacp+0f, -0x1.f202fep-4f,
    -0x1.05e814p+0f, 0x1.0f743cp-2f, -0x1.1dbffap-1f, 0x1.a393bep-9f,
    -0x1.872362p+0f, 0x1.21653ap+0f, 0x1.2f63a8p-4f, -0x1.873174p-1f,
    0x1.000038p-1f, 0x1.5ca9ep+0f, 0x1.0aaa56p-1f, -0x1.88eddep+0f,
    -0x1.6cfd86p+0f, 0x1.75636p-5f, -0x1.6c35dp-1f, 0x1.371aeep+0f,
    0x1.273258p+0f, 0x1.8dbf7ep-1f, 0x1.4ab08p-3f, -0x1.77f116p-3f,
    -0x1.0c8d98p+0f}},
{ /* AdamW */
.is_adam = true,
.adam = {.scale = 1, .lr = 0.001, .beta1 = 0.9, .beta2 = 0.999,
         .eps = 1e-08, .weight_decay = 0.01, .decoupled = 1, .bias_correction = 1},
.end = {
    0x1.f6c11cp-2f, 0x1.22d62ep-1f, 0x1.8d201cp+0f, -0x1.717926p-2f,
    0x1.5bc31ep-1f, -0x1.56456p-5f, -0x1.153bb2p-3f, -0x1.c7a7c4p-2f,
    0x1.2f307cp+0f, -0x1.0bacdcp-2f, 0x1.f804c8p-1f, 0x1.a4de34p-1f,
    -0x1.084d28p-2f, 0x1.bf8f3ap+0f, -0x1.f4acaep+0f, -0x1.e3ac6ep-4f,
    -0x1.0484a8p+0f, 0x1.0cc66cp-2f, -0x1.230234p-1f, -0x1.92033ap-10f,
    -0x1.89d3cep+0f, 0x1.23041p+0f, 0x1.4190cp-4f, -0x1.8cc688p-1f,
    0x1.02701cp-1f, 0x1.5f8ed4p+0f, 0x1.0dc1bcp-1f, -0x1.8aceccp+0f,
    -0x1.6d7d0ap+0f, 0x1.9c6824p-5f, -0x1.6ef6bp-1f, 0x1.376edp+0f,
    0x1.293064p+0f, 0x1.8c4772p-1f, 0x1.58c784p-3f, -0x1.8a796ep-3f,
    -0x1.0cfaeap+0f}},
{ /* AdamW */
.is_adam = true,
.adam = {.scale = 1, .lr = 0.0001, .eps = 1e-07, .weight_decay = 0.3,
         .beta1 = 0.9, .beta2 = 0.95, .decoupled = 1, .bias_correction = 1},
.end = {
    0x1.f57aep-2f, 0x1.2267a6p-1f, 0x1.8cf814p+0f, -0x1.6f279ap-2f,
    0x1.5bb4dp-1f, -0x1.467028p-5f, -0x1.1a10dap-3f, -0x1.c989a2p-2f,
    0x1.2fc6fcp+0f, -0x1.0ca348p-2f, 0x1.f77782p-1f, 0x1.a390aep-1f,
    -0x1.07bb1p-2f, 0x1.bf75ecp+0f, -0x1.f53314p+0f, -0x1.db982cp-4f,
    -0x1.03de6cp+0f, 0x1.0b32a6p-2f, -0x1.21ce3ep-1f, -0x1.dac6c4p-9f,
    -0x1.896f3ep+0f, 0x1.239aaep+0f, 0x1.4a0f3ep-4f, -0x1.8bd9b8p-1f,
    0x1.037b08p-1f, 0x1.5efeacp+0f, 0x1.0f0a9ep-1f, -0x1.8ad94ap+0f,
    -0x1.6d90d8p+0f, 0x1.ad9836p-5f, -0x1.700482p-1f, 0x1.36e134p+0f,
    0x1.2955aap+0f, 0x1.8b8bcp-1f, 0x1.5c9acap-3f, -0x1.8a533cp-3f,
    -0x1.0c6ea6p+0f}},
};
