/* Launches, and how they went. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* What is known of a launch once all its ranks have ended. Under the lock. */
struct outcome {
    uint64_t slowest_cycles;
    bool other_clocks;
    uint32_t faults, first; /* DPU with the lowest place among those that faulted */
    char *message;          /* its */
};

struct launch {
    struct job job;
    int only;
    struct allocation *owner;
    struct outcome outcome;
};

static void look_at(struct rank *rank, uint32_t index, struct outcome *outcome) {
    const struct emu_dpu *dpu = rank->members[index].engine;
    const uint64_t cycles = emu_dpu_counters(dpu)->cycles;
    if (cycles > outcome->slowest_cycles) outcome->slowest_cycles = cycles;
    const uint32_t build = emu_program_info(emu_dpu_program(dpu))->build;
    if (!(build & EMU_COUNTED) || build & EMU_TRACED) outcome->other_clocks = true;
    if (emu_dpu_state(dpu) != EMU_FAULTED) return;
    const uint32_t place = rank->first_dpu + index;
    if (outcome->faults++ > 0 && place > outcome->first) return;
    const char *message;
    emu_dpu_fault(dpu, &message);
    free(outcome->message);
    outcome->message = strdup(message);
    outcome->first = place;
}

static void conclude(struct allocation *owner, struct outcome *outcome) {
    pthread_mutex_lock(&host_lock);
    if (outcome->other_clocks || emu_settings()->schedule == EMU_AT_RANDOM)
        owner->other_clocks = true;
    ++owner->counters.launches;
    owner->counters.slowest_cycles += outcome->slowest_cycles;
    owner->counters.launch_seconds += (double)outcome->slowest_cycles / owner->machine->clock_hz;
    pthread_mutex_unlock(&host_lock);
    const char *message = outcome->message != NULL ? outcome->message : "a DPU is in fault";
    if (outcome->faults == 1)
        emu_complain("%s", message);
    else if (outcome->faults > 1)
        emu_complain("%s (and %u more of this launch's DPUs)", message, outcome->faults - 1);
    free(outcome->message);
}

/* Run the DPUs of ranks that are busy with this. */
static dpu_error_t run(struct rank *const *ranks, uint32_t nr_ranks, int only,
                       struct outcome *outcome) {
    const uint32_t full = ranks[0]->machine->dpus_per_rank;
    struct emu_dpu **dpus = malloc((size_t)nr_ranks * full * sizeof *dpus);
    if (dpus == NULL) return DPU_ERR_SYSTEM;
    size_t count = 0;
    for (uint32_t i = 0; i < nr_ranks; ++i)
        for (uint32_t dpu = 0; dpu < ranks[i]->nr_dpus; ++dpu)
            if (only < 0 || dpu == (uint32_t)only) dpus[count++] = ranks[i]->members[dpu].engine;
    const int faulted = emu_run(dpus, count);
    free(dpus);
    if (faulted < 0) return DPU_ERR_SYSTEM;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < nr_ranks; ++i)
        for (uint32_t dpu = 0; dpu < ranks[i]->nr_dpus; ++dpu)
            if (only < 0 || dpu == (uint32_t)only) look_at(ranks[i], dpu, outcome);
    pthread_mutex_unlock(&host_lock);
    return faulted > 0 ? DPU_ERR_DPU_FAULT : DPU_OK;
}

static dpu_error_t run_launch(struct job *job, struct rank *rank, uint32_t position) {
    (void)position;
    struct launch *launch = (struct launch *)job;
    return run(&rank, 1, launch->only, &launch->outcome);
}

static void end_launch(struct job *job) {
    struct launch *launch = (struct launch *)job;
    conclude(launch->owner, &launch->outcome);
    free(launch);
}

static dpu_error_t launch_now(const struct scope *scope) {
    struct outcome outcome = {0};
    dpu_error_t status = host_acquire(scope, HOST_STOP_AT_ERROR);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        scope->ranks[i]->launching = true;
        pthread_cond_broadcast(&scope->ranks[i]->changed);
    }
    pthread_mutex_unlock(&host_lock);
    status = run(scope->ranks, scope->nr_ranks, scope->only, &outcome);
    pthread_mutex_lock(&host_lock); /* here too, for ranks that a callback keeps holding */
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) scope->ranks[i]->launching = false;
    pthread_mutex_unlock(&host_lock);
    host_release(scope);
    conclude(scope->ranks[0]->owner, &outcome);
    return status;
}

static dpu_error_t launch_later(const struct scope *scope) {
    struct launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL) return DPU_ERR_SYSTEM;
    launch->job = (struct job){.kind = JOB_LAUNCH, .run = run_launch, .end = end_launch};
    launch->only = scope->only;
    launch->owner = scope->ranks[0]->owner;
    return host_enqueue(scope, &launch->job);
}

static dpu_error_t check_programs(const struct scope *scope) {
    dpu_error_t status = DPU_OK;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        for (uint32_t dpu = host_first(scope); dpu < host_end(scope, scope->ranks[i]); ++dpu)
            if (scope->ranks[i]->members[dpu].program == NULL) status = DPU_ERR_NO_PROGRAM_LOADED;
    pthread_mutex_unlock(&host_lock);
    return status;
}

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    if (policy != DPU_SYNCHRONOUS && policy != DPU_ASYNCHRONOUS)
        status = host_refuse(DPU_ERR_INVALID_LAUNCH_POLICY, "dpu_launch: unknown policy %d",
                             (int)policy);
    if (status == DPU_OK) status = check_programs(&scope);
    if (status == DPU_OK)
        status = policy == DPU_SYNCHRONOUS ? launch_now(&scope) : launch_later(&scope);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault) {
    struct scope scope;
    if (done == NULL || fault == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_status: done or fault is NULL");
    const dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    *done = true;
    *fault = false;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope.nr_ranks; ++i) {
        const struct rank *rank = scope.ranks[i];
        if (!host_is_idle(rank) && !host_holds(rank)) *done = false;
        for (uint32_t dpu = host_first(&scope); dpu < host_end(&scope, rank); ++dpu)
            if (emu_dpu_state(rank->members[dpu].engine) == EMU_FAULTED) *fault = true;
    }
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return DPU_OK;
}
