/*
 * gate.h - streams that wait for a raw resend themselves, so that the host need not
 *
 * After a fixed exchange a kernel looks at what overflowed.  Nothing did: it writes a device word, for
 * which the stream waits with cuStreamWaitValue32(), and which is there already.  Else it writes a request
 * into pinned memory, and the word is left to the gate's helper thread (gate_helper.c), which sends
 * again raw what overflowed: the same pattern, into the same staging, on a stream and a communicator
 * of the gate's own, and then writes the word.  The waiting stream holds no SM.
 *
 * A communicator has one gate.  Its calls follow each other on the device, so that it has at most one
 * request at a time; and since all who must join see the same headers, all helpers run the same requests
 * in the same order.
 *
 * What a call would read on the host, how many messages overflowed and what would have fitted, is
 * counted once it has ended (zipccl_gate_ended()).  Captured calls have memory of their own, which lives
 * as long as the gate, and are not counted but for resends.
 *
 * Not run on a GPU yet.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_GATE_H
#define ZIPCCL_GPU_GATE_H

#include "gpu/exec_cuda.h"
#include "gpu/gate_kernels.h"
#include "gpu/gate_mode.h"

#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>

/* Eager calls that the host may be ahead of the device; then it waits for the first of them. */
#define ZIPCCL_GATE_AHEAD 64u

/* A send or receive of a resend. */
struct zipccl_gate_post {
    uint32_t peer;
    uint32_t flag; /* it is posted if this one is set; ZIPCCL_GATE_ALWAYS: with any */
    bool send;
    void *buf; /* only read if 'send' */
    size_t nbytes;
};
#define ZIPCCL_GATE_ALWAYS UINT32_MAX

/* One exchange of a call, and how it is run again. */
struct zipccl_gate_site {
    struct zipccl_gate_site *next; /* of its call */
    uint32_t number;               /* + 1 is what requests say */
    uint32_t resolve;              /* its RESOLVE step */
    bool shared;                   /* all of it goes again, not single messages */
    /* A collective of the library instead of posts; 0 bytes: none. */
    size_t ring_nbytes;
    bool broadcast;
    uint32_t root;
    const void *ring_src;
    void *ring_dst;
    struct zipccl_gate_post *posts; /* [nposts] */
    size_t nposts;
    /* What decides. */
    uint32_t nin, nout;
    const void **wire, **raw; /* [nin] messages that arrive, and where their elements would */
    uint64_t *n;              /* [nin] elements */
    uint32_t *from;           /* [nin] members of the group */
    const struct zipccl_gpu_result *d_in, *d_out; /* on the device, */
    const struct zipccl_gpu_result *h_in, *h_out; /* and on the host once the call has ended */
    struct zipccl_gpu_result *d_any;
};

/* A message of a call, for counting. */
struct zipccl_gate_coded {
    size_t n, capacity;                /* elements, bytes */
    uint32_t to;                       /* member of the group, in a plan of pairs */
    const struct zipccl_gpu_result *h; /* pinned */
};

/* A call between its enqueueing and its end; a captured one for ever. */
struct zipccl_gate_call {
    struct zipccl_cuda_arena arena; /* first: what exec_cuda.c knows of it */
    struct zipccl_gate_call *next;  /* the younger one */
    struct zipccl_gate_site *sites;
    const void *owner; /* as in its run */
    struct zipccl_ended_call ended;
    enum zipccl_op op;               /* that it counts as */
    int cls;                         /* of its messages, but for those of pairs with classes: */
    struct zipccl_ended_pairs pairs; /* parts of one block, NULL where there is none */
    size_t element;                  /* bytes */
    struct zipccl_gate_coded *coded; /* [ncoded] */
    size_t ncoded, room_coded;
};

/* What the device writes for the host; pinned. */
struct zipccl_gate_request {
    uint32_t bell, broken;
    uint32_t flags[]; /* [2 * nranks] */
};

typedef CUresult (*zipccl_gate_word)(CUstream stream, CUdeviceptr at, cuuint32_t value,
                                     unsigned flags);

struct zipccl_gate {
    enum zipccl_gate_mode mode;
    struct zipccl_exec_cuda *exec; /* borrowed */
    const struct zipccl_nccl_api *api;
    int device;
    uint32_t nranks;
    zipccl_gate_word wait_value, write_value;
    ncclComm_t comm;      /* for resends */
    cudaStream_t side;    /* the same */
    cudaStream_t release; /* of a waiting stream, after an abort */
    cudaStream_t apart;   /* of what is done at once while the caller's stream is captured */
    cudaStream_t
        wire; /* of captured plans with chunks: it is captured till the caller's stream is not */
    cudaEvent_t sent;  /* end of a resend */
    uint32_t *d_words; /* [ZIPCCL_GATE_NWORDS], and room for messages of the warm-up */
    struct zipccl_gate_request *request;

    /* The caller's side. */
    bool on, captured;         /* of the call under way */
    bool plain;                /* a captured call that ran the library's own collective, */
    struct zipccl_plan native; /* this one */
    struct zipccl_step native_step;
    zipccl_status entered;                        /* of zipccl_gate_enter() */
    enum zipccl_op op;                            /* that it counts as, if whoever calls tells it */
    struct zipccl_run_stats late[ZIPCCL_NUM_OPS]; /* of calls that have ended, by that */
    struct zipccl_gate_call *call;
    unsigned step_of; /* RESOLVE of the step that is enqueued; ZIPCCL_STEP_NONE */
    struct zipccl_gate_call *oldest, *youngest, *spare, *graphs;
    size_t ncalls;                  /* not known to have ended */
    struct zipccl_gate_call *ended; /* of which nobody has asked yet */
    unsigned long long capture_id;  /* of the last captured call */
    cudaEvent_t captured_done;

    /* Between the two sides. */
    pthread_mutex_t mutex;
    struct zipccl_gate_site **sites; /* [nsites], NULL where there is none */
    uint32_t nsites;
    struct zipccl_error error; /* of the helper's first failure */
    atomic_int status;         /* zipccl_status of that */
    atomic_bool closing, closed, comm_gone;
    atomic_uint_least64_t resends;

    /* The helper's side. */
    bool sending;
    double since_s;
    double limit_s; /* as the transport's */

    /* The helper itself. */
    struct zipccl_gate *next; /* of all gates of the process */
    pthread_t thread;
    sem_t wake;
    bool helped; /* 'thread' runs, and is to be joined */
    atomic_bool asleep, stop, stopped;
    atomic_uint asks; /* sites, and aborts: without any nobody asks */
};

/*
 * Give 'e' a gate.  Collective over the transport's ranks: all ask for the same mode, not OFF.  Waits.
 *
 * '*able' is false, on all ranks, if some rank's CUDA or NCCL lacks what it needs; then there is none.
 * ZIPCCL_ERR_NOMEM, ZIPCCL_ERR_IO, ZIPCCL_ERR_MISMATCH with the text in the transport.
 */
zipccl_status zipccl_gate_open(struct zipccl_exec_cuda *e, enum zipccl_gate_mode mode, bool *able);

/*
 * Let every stream that waits go on, and nobody wait again; any thread.  Returns when that is so, or after
 * a second.  Results of calls under way are then void.
 */
void zipccl_gate_abort(struct zipccl_gate *gate);

/* False if a resend that was given up may still write to staging: the calls' streams did not wait for it.  Waits a
 * second at most. */
bool zipccl_gate_is_quiet(const struct zipccl_gate *gate);

/* After the last call has ended, or was aborted; 'under_way': leave memory that the device may still use. */
void zipccl_gate_close(struct zipccl_gate *gate, bool under_way);

/* The failure of a resend or of a captured call; its text is then in the transport. */
zipccl_status zipccl_gate_failed(struct zipccl_gate *gate);

/* Look which calls have ended; does not wait. */
void zipccl_gate_look_back(struct zipccl_gate *gate);

/* Wait until all have. */
zipccl_status zipccl_gate_wait(struct zipccl_exec_cuda *e);

/* A call of 'owner' that has ended, which is then forgotten; false if there is none. */
bool zipccl_gate_ended(struct zipccl_gate *gate, const void *owner, struct zipccl_ended_call *out);

/* Device memory. */
size_t zipccl_gate_bytes(const struct zipccl_gate *gate);

/* For exec_cuda*.c; 'e' has a gate where the names of its parts stand, and may have none in is_on(). */

/* Whether 'stream' is being captured, and as which capture. */
bool zipccl_gate_capturing(cudaStream_t stream, unsigned long long *id);

/* zipccl_exec_cuda_enter() for a captured stream; false: it is none. */
bool zipccl_gate_enter(struct zipccl_exec_cuda *e, cudaStream_t stream);

/* Start a call: whether it waits on the device.  Then where its arena is; may wait, for room. */
void zipccl_gate_begin(struct zipccl_exec_cuda *e, cudaStream_t stream);
static inline bool zipccl_gate_is_on(const struct zipccl_exec_cuda *e);
zipccl_status zipccl_gate_arena(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s);

/* True if a captured call cannot run 'plan', which exchanges sizes: gate->native is what it runs. */
bool zipccl_gate_native(struct zipccl_gate *gate, const struct zipccl_plan *plan);

/* Wait until what was put into 'apart' has happened. */
zipccl_status zipccl_gate_apart(struct zipccl_exec_cuda *e);

/* An ENCODE, whose results are in e->seen; a RESOLVE, whose headers were looked at; its raw EXCHANGE. */
zipccl_status zipccl_gate_coded(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                                const struct zipccl_step *step);
zipccl_status zipccl_gate_look(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                               const struct zipccl_step *step);
zipccl_status zipccl_gate_pass(struct zipccl_exec_cuda *e, unsigned resolve);

/* After the decoders of e->list, whose results start at 'outcomes'; before a sum. */
zipccl_status zipccl_gate_decoded(struct zipccl_exec_cuda *e, size_t outcomes);
zipccl_status zipccl_gate_summed(struct zipccl_exec_cuda *e, const struct zipccl_term *terms,
                                 struct zipccl_gpu_term *d_terms, size_t nterms);

/* The end of a call in 'stream'; and whether it failed or not, what later ones wait for: true if that is
 * done here. */
zipccl_status zipccl_gate_end(struct zipccl_exec_cuda *e, cudaStream_t stream);
bool zipccl_gate_mark(struct zipccl_exec_cuda *e, cudaStream_t stream);

/* Bytes of tables and results that a RESOLVE of 'messages' messages needs besides its own. */
size_t zipccl_gate_table_bytes(size_t messages);
size_t zipccl_gate_result_bytes(void);

static inline bool zipccl_gate_is_on(const struct zipccl_exec_cuda *e)
{
    return e->gate != NULL && e->gate->on;
}

/* Whether what the call under way found is known when it returns. */
static inline int zipccl_gate_told(const struct zipccl_exec_cuda *e)
{
    return !zipccl_gate_is_on(e) ? ZIPCCL_TOLD
           : e->gate->captured   ? ZIPCCL_TOLD_NEVER
                                 : ZIPCCL_TOLD_LATE;
}

/* The wire's stream of the call under way, if its plan has chunks. */
static inline cudaStream_t zipccl_gate_wire(const struct zipccl_exec_cuda *e)
{
    return e->gate != NULL && e->gate->captured ? e->gate->wire : e->wire;
}

/* Private to gate*.c. */

/* It has a helper thread from here on, until the second returns. */
zipccl_status zipccl_gate_helper_join(struct zipccl_gate *gate);
void zipccl_gate_helper_leave(struct zipccl_gate *gate);

/* Keep a site where the helper finds it. */
zipccl_status zipccl_gate_site_add(struct zipccl_gate *gate, struct zipccl_gate_site *site);
void zipccl_gate_sites_free(struct zipccl_gate *gate, struct zipccl_gate_call *call);

#endif
