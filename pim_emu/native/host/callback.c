/* Functions of the program that are called between the jobs of ranks.
 *
 * A callback that others wait for holds its ranks: calls it makes on them run at once, in its
 * thread. One that nobody waits for has a thread of its own and holds nothing. */
#include <stdlib.h>

#include "host.h"

#define ALL_FLAGS                                                                                 \
    (DPU_CALLBACK_ASYNC | DPU_CALLBACK_NONBLOCKING | DPU_CALLBACK_SINGLE_CALL |                   \
     DPU_CALLBACK_PARALLEL)
#define NO_RANK UINT32_MAX /* in the place of a rank's index */

typedef dpu_error_t (*callback_function)(struct dpu_set_t, uint32_t, void *);

struct call {
    struct job job;
    struct allocation *owner;
    callback_function function;
    void *args;
    struct dpu_set_t set;
    bool whole;       /* called with `set`, not with a rank of it */
    bool nonblocking;
    bool waited;      /* the caller waits for the end, and frees this */
    dpu_error_t status;
    bool done;
    uint32_t missing; /* of a single call: ranks that have not reached it */
    bool cancelled, called;
    struct scope *scope; /* of a single or parallel call, on the heap */
};

static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static dpu_error_t invoke(const struct call *call, struct dpu_set_t set, uint32_t index) {
    const struct allocation *outer = host_in_callback;
    host_in_callback = call->owner;
    const dpu_error_t status = call->function(set, index, call->args);
    host_in_callback = outer;
    return status;
}

static struct dpu_set_t set_of(const struct call *call, const struct rank *rank) {
    if (call->whole) return call->set;
    return (struct dpu_set_t){.kind = DPU_SET_RANKS,
                              .list = {1, call->owner->handles + rank->position}};
}

/* Under the lock. A rank that runs a launch beside the callback cannot be held. */
static bool hold(struct rank *rank) {
    if (rank->held || rank->launching) return false;
    rank->held = true;
    rank->holder = pthread_self();
    return true;
}

/* --- In threads of their own --- */
struct solo {
    struct call *call; /* owned: a copy */
    struct rank *rank; /* NULL: all of the call's scope, beside launches */
    struct dpu_set_t set;
    uint32_t index;
};

static void *run_solo(void *argument) {
    struct solo *solo = argument;
    struct call *call = solo->call;
    struct allocation *owner = call->owner;
    const dpu_error_t status = solo->rank != NULL ? invoke(call, solo->set, solo->index)
                                                  : host_do_beside(call->scope, &call->job);
    pthread_mutex_lock(&host_lock);
    host_fail(solo->rank != NULL ? solo->rank : call->scope->ranks[0], JOB_CALLBACK, status);
    --owner->callbacks;
    pthread_cond_broadcast(&owner->ranks[0]->changed);
    pthread_mutex_unlock(&host_lock);
    free(call->scope);
    free(call);
    free(solo);
    return NULL;
}

/* `call` is copied but for its scope, which passes to the copy. */
static dpu_error_t go_solo(const struct call *call, struct scope *scope, struct rank *rank,
                           struct dpu_set_t set, uint32_t index) {
    struct solo *solo = malloc(sizeof *solo);
    struct call *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (solo != NULL && copy != NULL) {
        pthread_mutex_lock(&host_lock);
        *copy = *call;
        ++call->owner->callbacks;
        pthread_mutex_unlock(&host_lock);
        copy->scope = scope;
        *solo = (struct solo){.call = copy, .rank = rank, .set = set, .index = index};
        if (pthread_create(&thread, NULL, run_solo, solo) == 0) {
            pthread_detach(thread);
            return DPU_OK;
        }
        pthread_mutex_lock(&host_lock);
        --call->owner->callbacks;
        pthread_mutex_unlock(&host_lock);
    }
    free(solo);
    free(copy);
    free(scope);
    return DPU_ERR_SYSTEM;
}

/* --- Once for each rank --- */
static dpu_error_t run_each(struct job *job, struct rank *rank, uint32_t position) {
    struct call *call = (struct call *)job;
    const struct dpu_set_t set = set_of(call, rank);
    const uint32_t index = call->whole ? NO_RANK : position;
    if (call->nonblocking) return go_solo(call, NULL, rank, set, index);
    pthread_mutex_lock(&host_lock);
    const bool held = hold(rank);
    pthread_mutex_unlock(&host_lock);
    const dpu_error_t status = invoke(call, set, index);
    pthread_mutex_lock(&host_lock);
    if (held) rank->held = false;
    if (call->status == DPU_OK) call->status = status;
    pthread_mutex_unlock(&host_lock);
    return call->waited ? DPU_OK : status;
}

static void skip_each(struct job *job, struct rank *rank) {
    struct call *call = (struct call *)job;
    pthread_mutex_lock(&host_lock);
    if (call->status == DPU_OK) call->status = host_failure(rank);
    pthread_mutex_unlock(&host_lock);
}

/* --- Once, when all ranks have reached it --- */
static dpu_error_t invoke_holding(const struct call *call, const struct scope *scope) {
    pthread_mutex_lock(&host_lock);
    bool outer = false; /* a callback around this one holds them already */
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) outer = !hold(scope->ranks[i]);
    pthread_mutex_unlock(&host_lock);
    const dpu_error_t status = invoke(call, call->set, NO_RANK);
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) scope->ranks[i]->held = outer;
    pthread_mutex_unlock(&host_lock);
    return status;
}

static void wake_all(const struct scope *scope) {
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        pthread_cond_broadcast(&scope->ranks[i]->changed);
}

/* A rank arrives, under the lock; whether it is the last and the function is to be called. */
static bool arrive(struct call *call) {
    if (--call->missing > 0) return false;
    if (!call->cancelled) return true;
    call->called = true;
    wake_all(call->scope);
    return false;
}

static dpu_error_t run_single(struct job *job, struct rank *rank, uint32_t position) {
    (void)position;
    struct call *call = (struct call *)job;
    dpu_error_t status = DPU_OK;
    pthread_mutex_lock(&host_lock);
    if (arrive(call)) {
        pthread_mutex_unlock(&host_lock);
        status = call->nonblocking ? go_solo(call, NULL, rank, call->set, NO_RANK)
                                   : invoke_holding(call, call->scope);
        pthread_mutex_lock(&host_lock);
        call->called = true;
        wake_all(call->scope);
    }
    while (!call->nonblocking && !call->called) pthread_cond_wait(&rank->changed, &host_lock);
    pthread_mutex_unlock(&host_lock);
    return status;
}

static void skip_single(struct job *job, struct rank *rank) {
    (void)rank;
    struct call *call = (struct call *)job;
    pthread_mutex_lock(&host_lock);
    call->cancelled = true;
    arrive(call);
    pthread_mutex_unlock(&host_lock);
}

static void end_call(struct job *job) {
    struct call *call = (struct call *)job;
    if (call->waited) {
        pthread_mutex_lock(&host_lock);
        call->done = true;
        pthread_cond_broadcast(&ended);
        pthread_mutex_unlock(&host_lock);
    } else {
        free(call->scope);
        free(call);
    }
}

/* --- The ways to call --- */
static dpu_error_t call_once_now(const struct scope *scope, const struct call *call) {
    dpu_error_t status = host_acquire(scope, HOST_STOP_AT_ERROR);
    if (status != DPU_OK) return status;
    status = invoke_holding(call, scope);
    host_release(scope);
    return status;
}

/* By the threads of the ranks, at the same time. */
static dpu_error_t call_each_and_wait(const struct scope *scope, struct call *call) {
    call->waited = true;
    dpu_error_t status = host_enqueue(scope, &call->job);
    pthread_mutex_lock(&host_lock);
    while (!call->done) pthread_cond_wait(&ended, &host_lock);
    pthread_mutex_unlock(&host_lock);
    if (status == DPU_OK) status = call->status;
    free(call);
    /* The rank whose call was last is not idle yet. */
    if (host_acquire(scope, HOST_KEEP_ERROR) == DPU_OK) host_release(scope);
    return status;
}

static dpu_error_t call_later(const struct scope *scope, struct call *call, bool single,
                              bool beside) {
    if (single || beside) {
        call->scope = malloc(sizeof *call->scope);
        if (call->scope == NULL) {
            free(call);
            return DPU_ERR_SYSTEM;
        }
        *call->scope = *scope;
    }
    if (beside) {
        call->nonblocking = false;
        const dpu_error_t status = go_solo(call, call->scope, NULL, call->set, NO_RANK);
        free(call);
        return status;
    }
    if (single) {
        call->missing = scope->nr_ranks;
        call->job.run = run_single;
        call->job.skip = skip_single;
    }
    return host_enqueue(scope, &call->job);
}

static bool holds_any(const struct scope *scope) {
    bool held = false;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) held = held || host_holds(scope->ranks[i]);
    pthread_mutex_unlock(&host_lock);
    return held;
}

static dpu_error_t start(const struct scope *scope, struct dpu_set_t set,
                         callback_function function, void *args, uint32_t flags) {
    const bool single = (flags & DPU_CALLBACK_SINGLE_CALL) != 0;
    const bool beside = (flags & DPU_CALLBACK_PARALLEL) != 0;
    struct call call = {.job = {.kind = JOB_CALLBACK, .run = run_each, .end = end_call},
                        .owner = scope->ranks[0]->owner,
                        .function = function,
                        .args = args,
                        .set = set,
                        .whole = single || set.kind == DPU_SET_DPU,
                        .nonblocking = (flags & DPU_CALLBACK_NONBLOCKING) != 0};
    struct scope first;
    if (single && beside) { /* ranks that may run a launch cannot meet */
        first = *scope;
        first.nr_ranks = 1;
        scope = &first;
    }
    const bool here = scope->nr_ranks == 1 || holds_any(scope);
    if (!(flags & DPU_CALLBACK_ASYNC)) {
        if (beside) return host_do_beside(scope, &call.job);
        if (single) return call_once_now(scope, &call);
        if (here) return host_do(scope, &call.job);
    }
    struct call *heap = malloc(sizeof *heap);
    if (heap == NULL) return DPU_ERR_SYSTEM;
    *heap = call;
    if (flags & DPU_CALLBACK_ASYNC) return call_later(scope, heap, single, beside);
    heap->job.skip = skip_each;
    return call_each_and_wait(scope, heap);
}

dpu_error_t dpu_callback(struct dpu_set_t dpu_set, callback_function callback, void *args,
                         dpu_callback_flags_t flags) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    if (callback == NULL)
        status = host_refuse(DPU_ERR_INTERNAL, "dpu_callback: callback is NULL");
    else if ((uint32_t)flags & ~(uint32_t)ALL_FLAGS)
        status = host_refuse(DPU_ERR_INTERNAL, "dpu_callback: unknown flags 0x%x", flags);
    else if (flags & DPU_CALLBACK_NONBLOCKING && !(flags & DPU_CALLBACK_ASYNC))
        status = host_refuse(DPU_ERR_NONBLOCKING_SYNC_CALLBACK,
                             "dpu_callback: DPU_CALLBACK_NONBLOCKING needs DPU_CALLBACK_ASYNC");
    else
        status = start(&scope, dpu_set, callback, args, (uint32_t)flags);
    host_leave(&scope);
    return status;
}
