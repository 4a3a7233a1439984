/* Workers: one for each core, each with a thread, stacks and its own images. A DPU always runs on the
 * same worker, because pointers that it keeps in WRAM belong to that worker's image. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/* Counts the groups of one emu_run that have not ended. */
struct launch {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t groups;
};

/* The DPUs of a launch that one worker runs. */
struct group {
    struct emu_dpu **dpus;
    size_t count;
    struct launch *launch;
    struct group *next;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct group *first, **last;
};

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* threads do not survive a fork */
    struct emu_worker *workers;
    struct queue *queues;
    uint32_t count, threads; /* workers; those that have a thread */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Faults of a program's stack need another stack to be reported on. */
static bool make_signal_stack(stack_t *made, stack_t *old) {
    made->ss_sp = mmap(NULL, EMU_SIGNAL_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made->ss_size = EMU_SIGNAL_STACK;
    made->ss_flags = 0;
    return made->ss_sp != MAP_FAILED && sigaltstack(made, old) == 0;
}

static void set_thread(struct emu_worker *worker, bool busy) {
    pthread_mutex_lock(&worker->thread_lock);
    worker->thread = pthread_self();
    worker->busy = busy;
    pthread_mutex_unlock(&worker->thread_lock);
}

static void run_group(struct emu_worker *worker, struct emu_dpu **dpus, size_t count) {
    pthread_mutex_lock(&worker->lock);
    set_thread(worker, true);
    for (size_t i = 0; i < count; ++i) emu_run_dpu(worker, dpus[i]);
    set_thread(worker, false);
    pthread_mutex_unlock(&worker->lock);
}

static void *work(void *argument) {
    const uint32_t index = (uint32_t)(uintptr_t)argument;
    struct queue *queue = &pool.queues[index];
    stack_t made, old;
    sigset_t blocked;
    if (!make_signal_stack(&made, &old))
        emu_complain("no memory for a worker's signals: a stack overflow will end the process");
    emu_unblock_signals(&blocked);
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        while (queue->first == NULL) pthread_cond_wait(&queue->filled, &queue->lock);
        struct group *group = queue->first;
        queue->first = group->next;
        if (queue->first == NULL) queue->last = &queue->first;
        pthread_mutex_unlock(&queue->lock);
        run_group(&pool.workers[index], group->dpus, group->count);
        struct launch *launch = group->launch;
        pthread_mutex_lock(&launch->lock);
        if (--launch->groups == 0) pthread_cond_signal(&launch->ended);
        pthread_mutex_unlock(&launch->lock);
    }
    return NULL;
}

static bool start_thread(uint32_t index) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, old;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* The embedding program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int status =
        pthread_create(&thread, &attributes, work, (void *)(uintptr_t)index);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return status == 0;
}

static bool make_workers(void) {
    const uint32_t count = emu_settings()->workers;
    pool.workers = calloc(count, sizeof *pool.workers);
    pool.queues = calloc(count, sizeof *pool.queues);
    pool.count = count;
    return pool.workers != NULL && pool.queues != NULL;
}

/* In this process nobody holds a lock or waits. A parent's stacks serve its child too. */
static void begin_process(void) {
    for (uint32_t i = 0; i < pool.count; ++i) {
        struct queue *queue = &pool.queues[i];
        pthread_mutex_init(&pool.workers[i].lock, NULL);
        pthread_mutex_init(&pool.workers[i].thread_lock, NULL);
        pool.workers[i].busy = false;
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->filled, NULL);
        queue->first = NULL;
        queue->last = &queue->first;
    }
    pool.threads = 0;
    pool.owner = getpid();
}

static bool start_locked(void) {
    if (pool.owner == getpid() && pool.threads == pool.count) return true;
    if (pool.workers == NULL && !make_workers()) return false;
    if (pool.owner != getpid()) begin_process();
    uint32_t stacks = 0;
    while (stacks < pool.count && emu_make_stacks(&pool.workers[stacks])) ++stacks;
    while (stacks == pool.count && pool.threads < pool.count && start_thread(pool.threads))
        ++pool.threads;
    if (pool.threads < pool.count) {
        emu_complain("no %s for worker %u of %u: set PIM_EMU_WORKERS lower, or load the emulator "
                     "earlier (in Python, import pim_emu first)",
                     stacks < pool.count ? "memory below 4 GiB" : "thread",
                     stacks < pool.count ? stacks : pool.threads, pool.count);
        return false;
    }
    emu_start_watchdog(pool.workers, pool.count);
    return true;
}

static bool start(void) {
    pthread_mutex_lock(&pool.lock);
    const bool good = start_locked() && emu_take_signals();
    pthread_mutex_unlock(&pool.lock);
    return good;
}

/* On the calling thread: there is nobody to share the work with, and no thread to wake. */
static bool run_here(struct emu_dpu **dpus, size_t count) {
    stack_t made, old;
    sigset_t blocked;
    if (!make_signal_stack(&made, &old)) return false;
    emu_unblock_signals(&blocked);
    run_group(&pool.workers[dpus[0]->worker], dpus, count);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    sigaltstack(&old, NULL);
    munmap(made.ss_sp, made.ss_size);
    return true;
}

static void enqueue(struct group *group, uint32_t worker) {
    struct queue *queue = &pool.queues[worker];
    pthread_mutex_lock(&queue->lock);
    *queue->last = group;
    queue->last = &group->next;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

/* Order the DPUs by worker. Returns how many workers have any. */
static uint32_t split(struct emu_dpu **dpus, size_t count, struct emu_dpu **sorted,
                      struct group *groups, struct launch *launch) {
    uint32_t used = 0;
    size_t filled = 0;
    for (uint32_t worker = 0; worker < pool.count; ++worker) {
        groups[worker] = (struct group){&sorted[filled], 0, launch, NULL};
        for (size_t i = 0; i < count; ++i)
            if (dpus[i]->worker == worker) sorted[filled++] = dpus[i];
        groups[worker].count = (size_t)(&sorted[filled] - groups[worker].dpus);
        used += groups[worker].count > 0;
    }
    return used;
}

static bool run_everywhere(struct emu_dpu **dpus, size_t count) {
    struct emu_dpu **sorted = malloc(count * sizeof(struct emu_dpu *));
    struct group *groups = malloc(pool.count * sizeof *groups);
    struct launch launch = {.groups = 0};
    bool good = sorted != NULL && groups != NULL;
    if (good) {
        launch.groups = split(dpus, count, sorted, groups, &launch);
        pthread_mutex_init(&launch.lock, NULL);
        pthread_cond_init(&launch.ended, NULL);
        for (uint32_t worker = 0; worker < pool.count; ++worker)
            if (groups[worker].count > 0) enqueue(&groups[worker], worker);
        pthread_mutex_lock(&launch.lock);
        while (launch.groups > 0) pthread_cond_wait(&launch.ended, &launch.lock);
        pthread_mutex_unlock(&launch.lock);
        pthread_cond_destroy(&launch.ended);
        pthread_mutex_destroy(&launch.lock);
    }
    free(groups);
    free(sorted);
    return good;
}

int emu_run(struct emu_dpu **dpus, size_t count) {
    if (count == 0) return 0;
    if (!start()) return -1;
    bool one_worker = true;
    for (size_t i = 0; i < count; ++i) {
        atomic_store(&dpus[i]->state, EMU_RUNNING);
        one_worker = one_worker && dpus[i]->worker == dpus[0]->worker;
    }
    if (!(one_worker ? run_here(dpus, count) : run_everywhere(dpus, count))) {
        for (size_t i = 0; i < count; ++i) atomic_store(&dpus[i]->state, EMU_IDLE);
        return -1;
    }
    int faults = 0;
    for (size_t i = 0; i < count; ++i) faults += emu_dpu_state(dpus[i]) == EMU_FAULTED;
    return faults;
}
