/*
 * decode_index.cu - checks headers and directories, and sums up what directories say
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/decode_index.cuh"

/*
 * Fill first [nmessages + 1] in shared memory from a table of at most ZIPCCL_GPU_MAX_MESSAGES slots;
 * false if there are more elements than the caller said.
 */
static __device__ bool map_table(const struct decode_launch *p, uint32_t *first,
                                 struct team_meeting *meeting)
{
    const uint32_t per = ZIPCCL_GPU_MAX_MESSAGES / TEAM_THREADS;
    uint64_t n = 0, total_n, total;
    uint32_t mine = 0, count[per], from = per * threadIdx.x;
    bool fits = true;
    for (uint32_t k = 0; k < per; k++) {
        uint64_t one = from + k < p->nmessages ? p->in.batch.d_slots[from + k].n : 0;
        fits = fits && one <= p->in.batch.total_n;
        one = fits ? one : 0;
        n += one;
        count[k] = decode_superblocks(one);
        mine += count[k];
    }
    fits = !__syncthreads_or(!fits);
    (void)team_scan(meeting, n, &total_n);
    fits = fits && total_n <= p->in.batch.total_n;
    uint32_t before = (uint32_t)team_scan(meeting, (uint64_t)mine, &total);
    for (uint32_t k = 0; k < per; k++) {
        if (from + k < p->nmessages)
            first[from + k] = fits ? before : 0;
        before += count[k];
    }
    if (threadIdx.x == 0)
        first[p->nmessages] = fits ? (uint32_t)total : 0;
    __syncthreads();
    return fits;
}

/* The same without a table, or from the one in shared memory. */
static __device__ uint32_t first_of(const struct decode_launch *p, const uint32_t *first,
                                    uint32_t i)
{
    return p->in.batch.d_slots ? first[i] : i * p->superblocks;
}

/* The message to which chunk q may belong. */
static __device__ uint32_t message_of_chunk(const struct decode_launch *p, const uint32_t *first,
                                            uint32_t q)
{
    uint32_t low = 0, high = p->nmessages;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (decode_first_chunk(first_of(p, first, middle), middle) <= q)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Sum up entries [s, end) of the directory at 'wire'. */
static __device__ void sum_entries(const struct decode_launch *p, const struct decode_slot *slot,
                                   uint32_t s, uint32_t end, struct decode_place *places,
                                   struct team_meeting *meeting, struct decode_chunk *out)
{
    uint64_t carry = 0;
    bool bad = false;
    for (; s < end; s += TEAM_THREADS) {
        uint32_t i = s + threadIdx.x;
        unsigned nshare = 0, nvariable = 0;
        if (i < end) {
            const struct wire_words x =
                words_at(slot->wire + ZIPCCL_MESSAGE_HEADER_BYTES + (size_t)i * ZIPCCL_ENTRY_BYTES);
            bad |= !entry_sizes(&p->in.fields, &x, (unsigned)zipccl_superblock_n(slot->n, i),
                                &nshare, &nvariable);
        }
        /* Both sums at once: each stays far below 2^32 within a chunk. */
        uint64_t all, mine = (uint64_t)nshare << 32 | nvariable;
        uint64_t before = carry + team_scan(meeting, mine, &all);
        carry += all;
        if (i < end) {
            struct decode_place place = {(uint32_t)(before >> 32), (uint32_t)before, nvariable};
            places[i] = place;
        }
    }
    out->shares = carry >> 32;
    out->variable = carry & 0xffffffffu;
    out->bad = (uint32_t)__syncthreads_or(bad);
}

/* What the header says of slot i, and the state that follows from it. */
static __device__ void open_message(const struct decode_launch *p, const struct decode_slot *slot,
                                    struct zipccl_gpu_result *result, struct decode_state *state)
{
    const struct decode_input *in = &p->in;
    uint32_t superblocks = decode_superblocks(slot->n);
    state->kind = DECODE_SKIP;
    state->nchunks = 0;
    state->chunk = DECODE_CHUNK;
    if (slot->is_elements) {
        result->nbytes = state->nbytes = slot->n * in->size;
        result->flags = 0;
        result->error = ZIPCCL_OK;
        state->kind = DECODE_ELEMENTS;
        return;
    }
    header_read(slot, in->dtype, in->size, in->fields.size != 0, result);
    state->nbytes = result->nbytes;
    if (result->error != ZIPCCL_OK)
        return;
    if (result->flags & ZIPCCL_MESSAGE_RAW) {
        state->kind = DECODE_RAW;
        return;
    }
    struct zipccl_layout layout;
    if (!zipccl_layout_of(&in->fields, slot->n, &layout) || layout.fixed > result->nbytes) {
        result->error = ZIPCCL_ERR_CORRUPT;
        return;
    }
    state->kind = DECODE_CODED;
    while (superblocks > DECODE_MOST_CHUNKS * state->chunk)
        state->chunk += DECODE_CHUNK;
    state->nchunks = (superblocks + state->chunk - 1) / state->chunk;
}

__global__ void __launch_bounds__(TEAM_THREADS) decode_index_kernel(struct decode_launch p)
{
    SIMT_SHARED(uint32_t, first, ZIPCCL_GPU_MAX_MESSAGES + 1);
    SIMT_SHARED(struct team_meeting, meeting, 1);
    bool table = p.in.batch.d_slots != NULL, fits = true;
    team_begin(meeting);
    if (table)
        fits = map_table(&p, first, meeting);
    if (table && blockIdx.x == 0)
        for (uint32_t i = threadIdx.x; i <= p.nmessages; i += TEAM_THREADS)
            p.space.first[i] = first[i];
    uint32_t nchunks = decode_first_chunk(first_of(&p, first, p.nmessages), p.nmessages);
    for (uint32_t q = blockIdx.x; q < nchunks; q += gridDim.x) {
        uint32_t i = message_of_chunk(&p, first, q), from = first_of(&p, first, i);
        uint32_t c = q - decode_first_chunk(from, i);
        struct decode_slot slot = slot_at(&p.in, i);
        struct zipccl_gpu_result result = {0, 0, ZIPCCL_ERR_ARG};
        struct decode_state state = {0, DECODE_SKIP, 0, DECODE_CHUNK};
        if (fits)
            open_message(&p, &slot, &result, &state);
        if (c == 0 && threadIdx.x == 0) {
            p.in.d_results[i] = result;
            p.space.states[i] = state;
        }
        if (c < state.nchunks) {
            uint32_t all = decode_superblocks(slot.n), s = c * state.chunk, end = s + state.chunk;
            struct decode_chunk sum;
            sum_entries(&p, &slot, s, end < all ? end : all, p.space.places + from, meeting, &sum);
            if (threadIdx.x == 0)
                p.space.chunks[q] = sum;
        }
    }
}

static size_t align256(size_t x)
{
    return (x + 255) & ~(size_t)255;
}

/* Offsets of the parts of a workspace; the last one is its size. */
static void parts_of(uint64_t superblocks, uint32_t nmessages, size_t at[5])
{
    at[0] = 0;
    at[1] = align256((nmessages + (size_t)1) * sizeof(uint32_t));
    at[2] = at[1] + align256(nmessages * sizeof(struct decode_state));
    at[3] =
        at[2] + align256((superblocks / DECODE_CHUNK + nmessages) * sizeof(struct decode_chunk));
    at[4] = at[3] + align256(superblocks * sizeof(struct decode_place));
}

size_t zipccl_gpu_index_workspace(uint64_t superblocks, uint32_t nmessages)
{
    size_t at[5];
    parts_of(superblocks, nmessages, at);
    return at[4];
}

cudaError_t zipccl_gpu_index(struct decode_launch *p, uint64_t most, void *d_workspace,
                             size_t workspace_nbytes, uint32_t nsms, cudaStream_t stream)
{
    size_t at[5];
    uint8_t *space = (uint8_t *)d_workspace;
    parts_of(most, p->nmessages, at);
    if (most > INT32_MAX || workspace_nbytes < at[4] || (uintptr_t)space % 256 != 0 || nsms == 0)
        return cudaErrorInvalidValue;
    p->space.first = (uint32_t *)(space + at[0]);
    p->space.states = (struct decode_state *)(space + at[1]);
    p->space.chunks = (struct decode_chunk *)(space + at[2]);
    p->space.places = (struct decode_place *)(space + at[3]);
    uint64_t chunks = most / DECODE_CHUNK + p->nmessages, grid = chunks < nsms ? chunks : nsms;
    const struct decode_launch launch = *p;
    SIMT_LAUNCH(decode_index_kernel, dim3((unsigned)grid), dim3(TEAM_THREADS), 0, stream, launch);
    return cudaGetLastError();
}

SIMT_KERNEL(decode_index_kernel);
