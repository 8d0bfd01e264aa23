/*
 * transport_mpi_native.c - MPI's own collectives, nonblocking and polled
 *
 * Blocks of more bytes than one MPI message may have travel as one element of a type as long as the
 * block; reductions, which need elements, are cut.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_mpi_state.h"

#include "core/reduce.h"
#include "core/rings.h"

#include <stdlib.h>
#include <string.h>

/* One MPI_Op needs one function, and a function is not told which operator it is. */
#define REDUCE_WITH(name, dtype, redop)                                                            \
    static void name(void *in, void *inout, int *n, MPI_Datatype *type)                            \
    {                                                                                              \
        const void *sources[2] = {in, inout};                                                      \
                                                                                                   \
        (void)type;                                                                                \
        zipccl_reduce(dtype, redop, sources, 2, (size_t)*n, inout);                                \
    }

REDUCE_WITH(bf16_sum, ZIPCCL_BFLOAT16, ZIPCCL_SUM)
REDUCE_WITH(bf16_prod, ZIPCCL_BFLOAT16, ZIPCCL_PROD)
REDUCE_WITH(bf16_max, ZIPCCL_BFLOAT16, ZIPCCL_MAX)
REDUCE_WITH(bf16_min, ZIPCCL_BFLOAT16, ZIPCCL_MIN)
REDUCE_WITH(fp16_sum, ZIPCCL_FLOAT16, ZIPCCL_SUM)
REDUCE_WITH(fp16_prod, ZIPCCL_FLOAT16, ZIPCCL_PROD)
REDUCE_WITH(fp16_max, ZIPCCL_FLOAT16, ZIPCCL_MAX)
REDUCE_WITH(fp16_min, ZIPCCL_FLOAT16, ZIPCCL_MIN)
/* Sums of Open MPI's vector code saturate where NCCL's, and MPI's scalar ones, wrap around. */
REDUCE_WITH(int8_sum, ZIPCCL_INT8, ZIPCCL_SUM)
REDUCE_WITH(int8_prod, ZIPCCL_INT8, ZIPCCL_PROD)
REDUCE_WITH(int8_max, ZIPCCL_INT8, ZIPCCL_MAX)
REDUCE_WITH(int8_min, ZIPCCL_INT8, ZIPCCL_MIN)
REDUCE_WITH(uint8_sum, ZIPCCL_UINT8, ZIPCCL_SUM)
REDUCE_WITH(uint8_prod, ZIPCCL_UINT8, ZIPCCL_PROD)
REDUCE_WITH(uint8_max, ZIPCCL_UINT8, ZIPCCL_MAX)
REDUCE_WITH(uint8_min, ZIPCCL_UINT8, ZIPCCL_MIN)
#undef REDUCE_WITH

static int create_type(struct zipccl_mpi_type *t, MPI_Datatype same_size,
                       MPI_User_function *const *functions)
{
    int rc = MPI_Type_dup(same_size, &t->type);

    for (unsigned op = 0; rc == MPI_SUCCESS && op < ZIPCCL_AVG; op++)
        rc = MPI_Op_create(functions[op], 1, &t->op[op]);
    return rc;
}

int zipccl_mpi_types_create(struct zipccl_mpi *m)
{
    static MPI_User_function *const functions[ZIPCCL_MPI_NUM_TYPES][ZIPCCL_AVG] = {
        [ZIPCCL_MPI_BF16] = {bf16_sum, bf16_prod, bf16_max, bf16_min},
        [ZIPCCL_MPI_FP16] = {fp16_sum, fp16_prod, fp16_max, fp16_min},
        [ZIPCCL_MPI_INT8] = {int8_sum, int8_prod, int8_max, int8_min},
        [ZIPCCL_MPI_UINT8] = {uint8_sum, uint8_prod, uint8_max, uint8_min},
    };
    int rc = MPI_SUCCESS;

    for (unsigned i = 0; rc == MPI_SUCCESS && i < ZIPCCL_MPI_NUM_TYPES; i++)
        rc = create_type(&m->types[i],
                         i == ZIPCCL_MPI_BF16 || i == ZIPCCL_MPI_FP16 ? MPI_UINT16_T : MPI_UINT8_T,
                         functions[i]);
    return rc;
}

/* Nothing may be freed that was not made. */
void zipccl_mpi_types_clear(struct zipccl_mpi *m)
{
    for (unsigned i = 0; i < ZIPCCL_MPI_NUM_TYPES; i++) {
        m->types[i].type = MPI_DATATYPE_NULL;
        for (unsigned op = 0; op < ZIPCCL_NUM_REDOPS; op++)
            m->types[i].op[op] = MPI_OP_NULL;
    }
}

void zipccl_mpi_types_destroy(struct zipccl_mpi *m)
{
    for (unsigned i = 0; i < ZIPCCL_MPI_NUM_TYPES; i++) {
        for (unsigned op = 0; op < ZIPCCL_NUM_REDOPS; op++)
            if (m->types[i].op[op] != MPI_OP_NULL)
                MPI_Op_free(&m->types[i].op[op]);
        if (m->types[i].type != MPI_DATATYPE_NULL)
            MPI_Type_free(&m->types[i].type);
    }
}

/* Ours, for what MPI lacks or does not add as we do; NULL: its own serves. */
static const struct zipccl_mpi_type *own_type(const struct zipccl_mpi *m, enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return &m->types[ZIPCCL_MPI_BF16];
    case ZIPCCL_FLOAT16: return &m->types[ZIPCCL_MPI_FP16];
    case ZIPCCL_INT8: return &m->types[ZIPCCL_MPI_INT8];
    case ZIPCCL_UINT8: return &m->types[ZIPCCL_MPI_UINT8];
    default: return NULL;
    }
}

/* The type of a reduction's elements, and its operator; avg sums. */
static void reduction_of(const struct zipccl_mpi *m, const struct zipccl_native_call *call,
                         MPI_Datatype *type, MPI_Op *op)
{
    enum zipccl_redop redop = call->redop == ZIPCCL_AVG ? ZIPCCL_SUM : call->redop;
    const struct zipccl_mpi_type *own = own_type(m, call->dtype);

    if (own != NULL) {
        *type = own->type;
        *op = own->op[redop];
        return;
    }
    switch (call->dtype) {
    case ZIPCCL_INT32: *type = MPI_INT32_T; break;
    case ZIPCCL_UINT32: *type = MPI_UINT32_T; break;
    case ZIPCCL_INT64: *type = MPI_INT64_T; break;
    case ZIPCCL_UINT64: *type = MPI_UINT64_T; break;
    case ZIPCCL_FLOAT32: *type = MPI_FLOAT; break;
    default: *type = MPI_DOUBLE; break;
    }
    switch (redop) {
    case ZIPCCL_PROD: *op = MPI_PROD; break;
    case ZIPCCL_MAX: *op = MPI_MAX; break;
    case ZIPCCL_MIN: *op = MPI_MIN; break;
    default: *op = MPI_SUM; break;
    }
}

/* The limit is over: name the collective, and a rank that does not answer. */
static zipccl_status fail_late(struct zipccl_mpi *m, const struct zipccl_native_call *call)
{
    struct zipccl_error text, more;
    size_t nbytes = call->count * zipccl_dtype_size(call->dtype);
    uint32_t silent;

    zipccl_fail(&text, ZIPCCL_ERR_TIMEOUT,
                "rank %d has waited %g s in MPI's own %s of %zu %s elements, %zu bytes a block",
                m->world[m->base.rank], m->config.limit_s, zipccl_op_name(call->op), call->count,
                zipccl_dtype_name(call->dtype), nbytes);
    zipccl_mpi_tell(m, ZIPCCL_ERR_TIMEOUT, ZIPCCL_MPI_NO_RANK, &text);
    silent = zipccl_mpi_silent_rank(m);
    if (silent != ZIPCCL_MPI_NO_RANK) {
        more = text;
        zipccl_fail(&text, ZIPCCL_ERR_TIMEOUT, "%.400s; rank %d gives no sign of life in it",
                    more.text, m->world[silent]);
    }
    return zipccl_mpi_fail(m, ZIPCCL_ERR_TIMEOUT, ZIPCCL_MPI_NO_RANK, &text);
}

/* Poll what MPI call 'rc' has started. */
static zipccl_status finish(struct zipccl_mpi *m, const struct zipccl_native_call *call, int rc,
                            MPI_Request *request)
{
    struct zipccl_mpi_wait wait;
    zipccl_status status;
    int done = 0;

    if (rc != MPI_SUCCESS)
        return zipccl_mpi_fail_rc(m, zipccl_op_name(call->op), rc);
    zipccl_mpi_wait_start(&wait);
    for (;;) {
        rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (rc != MPI_SUCCESS)
            return zipccl_mpi_fail_rc(m, zipccl_op_name(call->op), rc);
        if (done)
            return ZIPCCL_OK;
        status = zipccl_mpi_wait_idle(m, &wait);
        if (status == ZIPCCL_OK)
            continue;
        if (status == ZIPCCL_ERR_TIMEOUT)
            status = fail_late(m, call);
        zipccl_mpi_drain(m, request, 1, false);
        return status;
    }
}

/* A type as long as 'nbytes', which are too many for one message; MPI's return code. */
static int long_type(size_t nbytes, size_t piece, MPI_Datatype *type)
{
    MPI_Aint places[2] = {0, (MPI_Aint)(nbytes / piece * piece)};
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    int counts[2] = {(int)(nbytes / piece), (int)(nbytes % piece)};
    int rc = MPI_Type_contiguous((int)piece, MPI_BYTE, &parts[0]);

    if (rc != MPI_SUCCESS)
        return rc;
    rc = MPI_Type_create_struct(2, counts, places, parts, type);
    MPI_Type_free(&parts[0]);
    return rc == MPI_SUCCESS ? MPI_Type_commit(type) : rc;
}

/* all_gather, alltoall and broadcast move blocks of 'nbytes'. */
static zipccl_status move_blocks(struct zipccl_mpi *m, const struct zipccl_native_call *call)
{
    size_t nbytes = call->count * zipccl_dtype_size(call->dtype);
    bool is_long = nbytes > m->config.native_bytes;
    MPI_Datatype type = MPI_BYTE;
    MPI_Request request = MPI_REQUEST_NULL;
    const void *send = call->send;
    int n = is_long ? 1 : (int)nbytes;
    int rc = is_long ? long_type(nbytes, m->config.native_bytes, &type) : MPI_SUCCESS;
    zipccl_status status;

    if (rc != MPI_SUCCESS)
        return zipccl_mpi_fail_rc(m, "MPI_Type_create_struct", rc);
    switch (call->op) {
    case ZIPCCL_ALL_GATHER:
        if (send == (char *)call->recv + m->base.rank * nbytes)
            send = MPI_IN_PLACE;
        rc = MPI_Iallgather(send, n, type, call->recv, n, type, m->comm, &request);
        break;
    case ZIPCCL_ALLTOALL:
        rc = MPI_Ialltoall(send, n, type, call->recv, n, type, m->comm, &request);
        break;
    default:
        if (m->base.rank == call->root && call->recv != send && nbytes > 0)
            memcpy(call->recv, send, nbytes);
        rc = MPI_Ibcast(call->recv, n, type, (int)call->root, m->comm, &request);
        break;
    }
    status = finish(m, call, rc, &request);
    if (is_long)
        MPI_Type_free(&type); /* when what uses it is over */
    return status;
}

static void divide_doubles(double *p, size_t n, double divisor)
{
    for (size_t i = 0; i < n; i++)
        p[i] /= divisor;
}

static void divide_floats(enum zipccl_dtype dtype, char *p, size_t n, uint32_t divisor)
{
    float sums[1024];
    size_t size = zipccl_dtype_size(dtype);

    for (size_t first = 0; first < n; first += sizeof sums / sizeof *sums) {
        size_t len =
            n - first < sizeof sums / sizeof *sums ? n - first : sizeof sums / sizeof *sums;

        zipccl_accumulate(dtype, sums, p + first * size, len, true);
        zipccl_round_sums(dtype, sums, len, divisor, p + first * size);
    }
}

#define DIVIDE_INTS(type, divisor_type)                                                            \
    for (size_t i = 0; i < n; i++)                                                                 \
    ((type *)p)[i] = (type)(((type *)p)[i] / (divisor_type)divisor)

/* Divide sums by the number of ranks; integers truncate. */
static void divide(enum zipccl_dtype dtype, void *p, size_t n, uint32_t divisor)
{
    if (divisor == 1)
        return;
    switch (dtype) {
    case ZIPCCL_INT8: DIVIDE_INTS(int8_t, int64_t); break;
    case ZIPCCL_UINT8: DIVIDE_INTS(uint8_t, uint64_t); break;
    case ZIPCCL_INT32: DIVIDE_INTS(int32_t, int64_t); break;
    case ZIPCCL_UINT32: DIVIDE_INTS(uint32_t, uint64_t); break;
    case ZIPCCL_INT64: DIVIDE_INTS(int64_t, int64_t); break;
    case ZIPCCL_UINT64: DIVIDE_INTS(uint64_t, uint64_t); break;
    case ZIPCCL_FLOAT64: divide_doubles(p, n, divisor); break;
    default: divide_floats(dtype, p, n, divisor); break;
    }
}
#undef DIVIDE_INTS

/* The elements of one MPI reduction at most. */
static size_t longest_cut(const struct zipccl_mpi *m, const struct zipccl_native_call *call)
{
    size_t n = m->config.native_bytes / zipccl_dtype_size(call->dtype);

    return n > 0 ? n : 1;
}

/* Room beside the buffers of an in-place call. */
static zipccl_status reserve_scratch(struct zipccl_mpi *m, size_t nbytes)
{
    struct zipccl_error text;

    if (nbytes <= m->scratch_bytes)
        return ZIPCCL_OK;
    free(m->scratch);
    m->scratch = malloc(nbytes);
    m->scratch_bytes = m->scratch != NULL ? nbytes : 0;
    if (m->scratch != NULL)
        return ZIPCCL_OK;
    zipccl_fail(&text, ZIPCCL_ERR_NOMEM, "rank %d has no memory for %zu bytes",
                m->world[m->base.rank], nbytes);
    return zipccl_mpi_fail(m, ZIPCCL_ERR_NOMEM, ZIPCCL_MPI_NO_RANK, &text);
}

/* In place Open MPI has only its slow algorithms (4.1: 7.4 s instead of 2.3 s for 32 MiB on 4 ranks at
 * 200 Mb/s), so what is sent is copied first. */
static zipccl_status all_reduce(struct zipccl_mpi *m, const struct zipccl_native_call *call)
{
    size_t size = zipccl_dtype_size(call->dtype), longest = longest_cut(m, call);
    const char *send = call->send;
    MPI_Datatype type;
    MPI_Op op;

    if (call->count > 0 && call->send == call->recv) {
        ZIPCCL_TRY(reserve_scratch(m, call->count * size));
        send = memcpy(m->scratch, call->send, call->count * size);
    }
    reduction_of(m, call, &type, &op);
    for (size_t first = 0; first < call->count; first += longest) {
        size_t n = call->count - first < longest ? call->count - first : longest;
        char *recv = (char *)call->recv + first * size;
        MPI_Request request = MPI_REQUEST_NULL;
        int rc = MPI_Iallreduce(send + first * size, recv, (int)n, type, op, m->comm, &request);

        ZIPCCL_TRY(finish(m, call, rc, &request));
    }
    if (call->redop == ZIPCCL_AVG)
        divide(call->dtype, call->recv, call->count, m->base.nranks);
    return ZIPCCL_OK;
}

/* Blocks that are too long are reduced one by one, to the rank whose block it is. */
static zipccl_status scatter_cut(struct zipccl_mpi *m, const struct zipccl_native_call *call,
                                 void *recv)
{
    size_t size = zipccl_dtype_size(call->dtype), longest = longest_cut(m, call);
    MPI_Datatype type;
    MPI_Op op;

    reduction_of(m, call, &type, &op);
    for (uint32_t owner = 0; owner < m->base.nranks; owner++)
        for (size_t first = 0; first < call->count; first += longest) {
            size_t n = call->count - first < longest ? call->count - first : longest;
            MPI_Request request = MPI_REQUEST_NULL;
            int rc = MPI_Ireduce((const char *)call->send + (owner * call->count + first) * size,
                                 (char *)recv + first * size, (int)n, type, op, (int)owner, m->comm,
                                 &request);

            ZIPCCL_TRY(finish(m, call, rc, &request));
        }
    return ZIPCCL_OK;
}

static zipccl_status reduce_scatter(struct zipccl_mpi *m, const struct zipccl_native_call *call)
{
    size_t nbytes = call->count * zipccl_dtype_size(call->dtype);
    bool in_place = call->recv == (const char *)call->send + m->base.rank * nbytes;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type;
    MPI_Op op;
    void *out = call->recv;

    if (call->count == 0)
        return ZIPCCL_OK;
    if (in_place) {
        ZIPCCL_TRY(reserve_scratch(m, nbytes));
        out = m->scratch;
    }
    reduction_of(m, call, &type, &op);
    if (call->count > longest_cut(m, call))
        ZIPCCL_TRY(scatter_cut(m, call, out));
    else
        ZIPCCL_TRY(finish(m, call,
                          MPI_Ireduce_scatter_block(call->send, out, (int)call->count, type, op,
                                                    m->comm, &request),
                          &request));
    if (in_place)
        memcpy(call->recv, out, nbytes);
    if (call->redop == ZIPCCL_AVG)
        divide(call->dtype, call->recv, call->count, m->base.nranks);
    return ZIPCCL_OK;
}

bool zipccl_mpi_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    (void)t;
    if (zipccl_dtype_size(dtype) == 0 || (unsigned)op >= ZIPCCL_NUM_OPS)
        return false;
    if (zipccl_is_reduction(op))
        return zipccl_reduce_serves(dtype, redop);
    return true;
}

zipccl_status zipccl_mpi_native(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    struct zipccl_mpi *m = (struct zipccl_mpi *)t;
    zipccl_status status;

    if (!zipccl_mpi_has_native(t, call->op, call->dtype, call->redop))
        return ZIPCCL_ERR_UNSUPPORTED;
    if (call->op == ZIPCCL_BROADCAST && call->root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    if (zipccl_is_uneven(call->op))
        return zipccl_rings_native(t, call, NULL);
    ZIPCCL_TRY(zipccl_mpi_begin(m));
    switch (call->op) {
    case ZIPCCL_ALL_REDUCE: status = all_reduce(m, call); break;
    case ZIPCCL_REDUCE_SCATTER: status = reduce_scatter(m, call); break;
    default: status = move_blocks(m, call); break;
    }
    return zipccl_mpi_end(m, status);
}
