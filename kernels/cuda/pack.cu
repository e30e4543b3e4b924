/* SPDX-License-Identifier: Apache-2.0
 * pack: copies buffers of any lengths into one flat buffer, or back. The pieces are cut into parts,
 * and block b copies the parts b, b + blocks, … of all pieces, so that a few long pieces keep all
 * blocks busy.
 * Host reference: memcpy() of each piece. Traffic: each byte is read and written once. Launch:
 * blocks of CUDA_BLOCK threads, as many as the device can run at once. */
#include "copy_range.h"
#include "kernel_args.h"

static const uint64_t part_bytes = 64 << 10;

/* Of as many pieces as a block has threads, the number of parts of each piece and all before it. */
struct pack_parts {
    uint32_t until[CUDA_BLOCK];
};

/* All threads call this. It counts the parts of the pieces from @p first on, and adds the counts
 * up: in each round, thread t adds the sum of thread t - reach, and the reach is doubled. */
DEVICE void count_parts(const cuda_pack_args &args, uint32_t first, pack_parts *parts)
{
    const uint32_t t = thread_index(), piece = first + t;
    const uint64_t bytes = piece < args.count ? args.pieces[piece].bytes : 0;
    parts->until[t] = (uint32_t)((bytes + part_bytes - 1) / part_bytes);
    block_barrier();
    for (uint32_t reach = 1; reach < thread_count(); reach *= 2) {
        const uint32_t before = t >= reach ? parts->until[t - reach] : 0;
        block_barrier();
        parts->until[t] += before;
        block_barrier();
    }
}

/* @return the number of the piece that contains the part, by binary search. */
DEVICE uint32_t find_piece(const pack_parts &parts, uint64_t part)
{
    uint32_t low = 0, high = thread_count() - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (parts.until[middle] > part)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

DEVICE void copy_part(const cuda_pack_args &args, const cuda_piece &piece, uint64_t part)
{
    const uint64_t begin = part * part_bytes, left = piece.bytes - begin;
    char *at = (char *)piece.at + begin, *flat = args.flat + piece.offset + begin;
    copy_range(args.unpack != 0 ? at : flat, args.unpack != 0 ? flat : at,
               left < part_bytes ? left : part_bytes);
}

KERNEL_BOUND(pack, cuda_pack_args, CUDA_BLOCK, 4)
{
    SHARED pack_parts parts;
    uint64_t before = 0; /* parts of earlier pieces */
    for (uint32_t first = 0; first < args.count; first += thread_count()) {
        count_parts(args, first, &parts);
        const uint64_t total = parts.until[thread_count() - 1];
        const uint64_t blocks = block_count(), mine = (block_index() + blocks - before % blocks);
        for (uint64_t part = mine % blocks; part < total; part += blocks) {
            const uint32_t piece = find_piece(parts, part);
            copy_part(args, args.pieces[first + piece],
                      part - (piece == 0 ? 0 : parts.until[piece - 1]));
        }
        before += total;
        block_barrier(); /* until all threads have read the sums */
    }
}
