/* Jobs of ranks, first in, first out.
 *
 * Each rank has a queue of entries: jobs, which the rank's thread runs, and turns, with which a
 * caller waits for what was queued before it. A call enqueues on all its ranks under the lock, so
 * that any two calls have the same order on all ranks they share, and none can wait for another in
 * a circle. */
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

struct entry {
    struct job *job; /* NULL: a turn */
    struct entry *next;
    uint32_t position; /* of the rank in the job's scope */
    uint64_t number;
};

__thread const struct allocation *host_in_callback;

const char *host_job_name(uint32_t kind) {
    static const char *const names[] = {"job", "launch", "transfer", "scattered transfer",
                                        "callback"};
    return names[kind < sizeof names / sizeof names[0] ? kind : 0];
}

bool host_holds(const struct rank *rank) {
    return rank->held && pthread_equal(rank->holder, pthread_self());
}

bool host_is_idle(const struct rank *rank) {
    return rank->head == NULL && !rank->busy;
}

void host_fail(struct rank *rank, uint32_t kind, dpu_error_t error) {
    if (error == DPU_OK || rank->error != DPU_OK) return;
    rank->error = error;
    rank->error_kind = kind;
}

dpu_error_t host_failure(const struct rank *rank) {
    if (rank->error == DPU_OK) return DPU_OK;
    return (dpu_error_t)((uint32_t)DPU_ERR_ASYNC_JOBS |
                         rank->error_kind << DPU_ERROR_ASYNC_JOB_TYPE_SHIFT |
                         (uint32_t)rank->error);
}

static dpu_error_t failure(const struct scope *scope) {
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        if (scope->ranks[i]->error != DPU_OK) return host_failure(scope->ranks[i]);
    return DPU_OK;
}

static dpu_error_t take_failure(const struct scope *scope) {
    dpu_error_t first = DPU_OK;
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        if (first == DPU_OK) first = scope->ranks[i]->error;
        scope->ranks[i]->error = DPU_OK;
    }
    return first;
}

static void append(struct rank *rank, struct entry *entry) {
    entry->next = NULL;
    entry->number = ++rank->queued;
    if (rank->head == NULL)
        rank->head = entry;
    else
        rank->tail->next = entry;
    rank->tail = entry;
}

static void remove_head(struct rank *rank) {
    rank->started = rank->head->number;
    rank->head = rank->head->next;
    if (rank->head == NULL) rank->tail = NULL;
}

/* One entry for each rank that this thread does not hold already. */
static void wait_turns(const struct scope *scope) {
    struct entry turns[HOST_MOST_RANKS];
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        if (host_holds(scope->ranks[i])) continue;
        turns[i].job = NULL;
        append(scope->ranks[i], &turns[i]);
    }
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        struct rank *rank = scope->ranks[i];
        if (host_holds(rank)) continue;
        while (rank->head != &turns[i] || rank->busy) pthread_cond_wait(&rank->changed, &host_lock);
        remove_head(rank);
        rank->busy = true;
    }
}

static void release(const struct scope *scope) {
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        struct rank *rank = scope->ranks[i];
        if (host_holds(rank)) continue;
        rank->busy = rank->launching = false;
        pthread_cond_broadcast(&rank->changed);
    }
}

static dpu_error_t acquire(const struct scope *scope, enum host_errors errors) {
    dpu_error_t status = failure(scope);
    if (errors == HOST_STOP_AT_ERROR && status != DPU_OK) return status;
    bool idle = true;
    for (uint32_t i = 0; i < scope->nr_ranks && idle; ++i)
        idle = host_is_idle(scope->ranks[i]) || host_holds(scope->ranks[i]);
    for (uint32_t i = 0; i < scope->nr_ranks && idle; ++i) scope->ranks[i]->busy = true;
    if (!idle) wait_turns(scope);
    if (errors == HOST_TAKE_ERROR) return take_failure(scope);
    if (errors == HOST_KEEP_ERROR) return DPU_OK;
    status = failure(scope); /* of what it waited for */
    if (status != DPU_OK) release(scope);
    return status;
}

dpu_error_t host_acquire(const struct scope *scope, enum host_errors errors) {
    pthread_mutex_lock(&host_lock);
    const dpu_error_t status = acquire(scope, errors);
    pthread_mutex_unlock(&host_lock);
    return status;
}

void host_release(const struct scope *scope) {
    pthread_mutex_lock(&host_lock);
    release(scope);
    pthread_mutex_unlock(&host_lock);
}

static dpu_error_t run_here(const struct scope *scope, struct job *job) {
    dpu_error_t status = DPU_OK;
    for (uint32_t i = 0; i < scope->nr_ranks && status == DPU_OK; ++i)
        status = job->run(job, scope->ranks[i], i);
    return status;
}

dpu_error_t host_do(const struct scope *scope, struct job *job) {
    dpu_error_t status = host_acquire(scope, HOST_STOP_AT_ERROR);
    if (status != DPU_OK) return status;
    status = run_here(scope, job);
    host_release(scope);
    return status;
}

/* Wait until the launch that was queued last runs, if that is what was queued last. */
static bool is_launching(struct rank *rank) {
    if (host_holds(rank)) return false;
    if (rank->head == NULL) return rank->launching;
    const uint64_t last = rank->tail->number;
    if (rank->tail->job == NULL || rank->tail->job->kind != JOB_LAUNCH) return false;
    while (rank->started < last) pthread_cond_wait(&rank->changed, &host_lock);
    return rank->launching && rank->started == last;
}

dpu_error_t host_do_beside(const struct scope *scope, struct job *job) {
    dpu_error_t status = DPU_OK;
    for (uint32_t i = 0; i < scope->nr_ranks && status == DPU_OK; ++i) {
        struct scope one = {.machine = scope->machine, .nr_ranks = 1, .only = scope->only};
        one.ranks[0] = scope->ranks[i];
        pthread_mutex_lock(&host_lock);
        const bool beside = is_launching(scope->ranks[i]);
        status = beside ? failure(&one) : acquire(&one, HOST_STOP_AT_ERROR);
        pthread_mutex_unlock(&host_lock);
        if (status != DPU_OK) return status;
        status = job->run(job, scope->ranks[i], i);
        if (!beside) host_release(&one);
    }
    return status;
}

/* Under the lock, which is left while the job ends. */
static void finish(struct job *job) {
    if (--job->pending > 0) return;
    pthread_mutex_unlock(&host_lock);
    free(job->entries);
    job->end(job);
    pthread_mutex_lock(&host_lock);
}

static void run_head(struct rank *rank) {
    struct entry *entry = rank->head;
    struct job *job = entry->job;
    remove_head(rank);
    rank->busy = true;
    const bool skipped = rank->error != DPU_OK;
    rank->launching = !skipped && job->kind == JOB_LAUNCH;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&host_lock);
    dpu_error_t status = DPU_OK;
    if (!skipped)
        status = job->run(job, rank, entry->position);
    else if (job->skip != NULL)
        job->skip(job, rank);
    pthread_mutex_lock(&host_lock);
    host_fail(rank, job->kind, status);
    finish(job);
    rank->busy = rank->launching = false;
    pthread_cond_broadcast(&rank->changed);
}

static void *work(void *argument) {
    struct rank *rank = argument;
    pthread_mutex_lock(&host_lock);
    while (!rank->stop) {
        if (rank->head != NULL && rank->head->job != NULL && !rank->busy)
            run_head(rank);
        else
            pthread_cond_wait(&rank->changed, &host_lock);
    }
    pthread_mutex_unlock(&host_lock);
    return NULL;
}

/* Threads do not survive a fork. */
static bool has_thread(const struct rank *rank) {
    return rank->has_thread && rank->thread_owner == getpid();
}

static bool start_threads(const struct scope *scope) {
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        struct rank *rank = scope->ranks[i];
        if (has_thread(rank)) continue;
        if (pthread_create(&rank->thread, NULL, work, rank) != 0) return false;
        rank->has_thread = true;
        rank->thread_owner = getpid();
    }
    return true;
}

void host_stop_thread(struct rank *rank) {
    if (!has_thread(rank)) return;
    rank->stop = true;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&host_lock);
    pthread_join(rank->thread, NULL);
    pthread_mutex_lock(&host_lock);
    rank->has_thread = false;
}

dpu_error_t host_enqueue(const struct scope *scope, struct job *job) {
    job->entries = calloc(scope->nr_ranks, sizeof *job->entries);
    pthread_mutex_lock(&host_lock);
    dpu_error_t status = failure(scope);
    if (status == DPU_OK && (job->entries == NULL || !start_threads(scope))) status = DPU_ERR_SYSTEM;
    for (uint32_t i = 0; i < scope->nr_ranks && status == DPU_OK; ++i) {
        struct rank *rank = scope->ranks[i];
        job->entries[i] = (struct entry){.job = job, .position = i};
        ++job->pending;
        append(rank, &job->entries[i]);
        pthread_cond_broadcast(&rank->changed);
    }
    pthread_mutex_unlock(&host_lock);
    if (status != DPU_OK) {
        free(job->entries);
        job->end(job);
    }
    return status;
}

dpu_error_t dpu_sync(struct dpu_set_t dpu_set) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = host_acquire(&scope, HOST_TAKE_ERROR);
    host_release(&scope);
    host_leave(&scope);
    return status;
}
