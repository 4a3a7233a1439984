/* Launches, callbacks, and waiting for them. */
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum { LAUNCH = 1, CALLBACK = 4 }; /* kinds of jobs in codes */

static void run_shadow(struct shadow *dpu) {
    uint32_t mode, word;
    uint64_t runs;
    memcpy(&mode, dpu->bytes[MODE], sizeof mode);
    memcpy(&runs, dpu->bytes[RUNS], sizeof runs);
    ++runs;
    memcpy(dpu->bytes[RUNS], &runs, sizeof runs);
    dpu->faulted = mode == STOPS;
    dpu->printed = mode == PRINTS;
    if (dpu->faulted) return;
    const uint32_t words = variable_bytes(WORDS, dpu->program) / 4;
    for (uint32_t i = 0; i < words; ++i) {
        memcpy(&word, dpu->bytes[WORDS] + 4 * i, sizeof word);
        ++word;
        memcpy(dpu->bytes[WORDS] + 4 * i, &word, sizeof word);
    }
    for (uint32_t i = 0; i < 64; ++i) dpu->bytes[BUFFER][i] ^= 0x5a;
}

/* Whether a DPU of the rank is going to stop with a fault. */
static bool will_fault(const struct target *target, const struct rank *rank) {
    bool fault = false;
    for (uint32_t i = rank->first; i < rank->first + rank->count; ++i) {
        uint32_t mode;
        memcpy(&mode, target->owner->dpus[i].bytes[MODE], sizeof mode);
        fault |= mode == STOPS && i >= first_dpu(target) && i < end_dpu(target);
    }
    return fault;
}

void do_launch(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 5);
    struct set *set = target.owner;
    bool later = chance(fuzz, 60), fault = false;
    dpu_launch_policy_t policy = later ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS;
    uint64_t errors = program_errors(&target) & E(NO_PROGRAM_LOADED);
    if (chance(fuzz, 3)) {
        policy = (dpu_launch_policy_t)(2 + draw(fuzz, 9));
        errors |= E(INVALID_LAUNCH_POLICY);
    }
    for (uint32_t i = 0; set != NULL && i < target.nr_ranks; ++i)
        fault |= will_fault(&target, &set->ranks[target.first_rank + i]);
    const dpu_error_t got = dpu_launch(target.handle, policy);
    if (errors == 0 && set != NULL && !later && fault && got == DPU_ERR_DPU_FAULT &&
        !has_error(&target))
        settle(fuzz, "dpu_launch", &target, IDLE, 0, DPU_OK); /* it has run all the same */
    else if (!settle(fuzz, "dpu_launch", &target, later ? QUEUE : IDLE,
                     errors | (!later && fault ? E(DPU_FAULT) : 0), got))
        return;
    for (uint32_t i = 0; i < target.nr_ranks; ++i) {
        struct rank *rank = &set->ranks[target.first_rank + i];
        if (rank->error != DPU_OK) continue;
        const bool stops = will_fault(&target, rank);
        for (uint32_t dpu = rank->first; dpu < rank->first + rank->count; ++dpu)
            if (dpu >= first_dpu(&target) && dpu < end_dpu(&target)) run_shadow(&set->dpus[dpu]);
        rank->launched = later;
        if (!later || !stops) continue;
        rank->error = DPU_ERR_DPU_FAULT;
        rank->error_kind = LAUNCH;
    }
}

void do_sync(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 10);
    if (target.owner == NULL) {
        expect(fuzz, "dpu_sync", target.errors, dpu_sync(target.handle));
    } else if (target.nr_ranks == target.owner->nr_ranks && target.only < 0) {
        make_idle(fuzz, target.owner);
    } else {
        uint64_t errors = 0;
        for (uint32_t i = 0; i < target.nr_ranks; ++i) {
            struct rank *rank = &target.owner->ranks[target.first_rank + i];
            if (rank->error != DPU_OK && errors == 0) errors = 1ull << rank->error;
            rank->error = DPU_OK;
            rank->queued = rank->launched = false;
        }
        expect(fuzz, "dpu_sync", errors, dpu_sync(target.handle));
    }
}

void do_status(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 10);
    bool done = false, fault = false, expected = false;
    const char *name, *message;
    expect(fuzz, "dpu_status(NULL)", E(INTERNAL), dpu_status(target.handle, NULL, &fault));
    if (!settle(fuzz, "dpu_status", &target, NOTHING, 0, dpu_status(target.handle, &done, &fault)))
        return;
    if (was_queued(&target)) return;
    for (uint32_t i = first_dpu(&target); i < end_dpu(&target); ++i)
        expected |= target.owner->dpus[i].faulted;
    if ((!done && !target.owner->wanders) || fault != expected)
        fail(fuzz, "done %d, fault %d, the model has 1, %d", done, fault, expected);
    if (target.only < 0) return;
    expect(fuzz, "pim_emu_get_fault", 0, pim_emu_get_fault(target.handle, &name, &message));
    if (strcmp(name, expected ? "MRAM out of bounds" : "") != 0) fail(fuzz, "the fault is %s", name);
    if ((strstr(message, "fuzz_dpu.c:") != NULL) != expected) fail(fuzz, "it says %s", message);
}

void do_log(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 5);
    char *text = NULL, wanted[128] = "";
    size_t bytes = 0;
    uint64_t errors = 0;
    if (target.owner != NULL && target.only < 0) errors = E(INVALID_DPU_SET);
    else if (program_errors(&target) != 0) errors = E(LOG_CONTEXT_MISSING);
    expect(fuzz, "dpu_log_read(NULL)", E(INTERNAL), dpu_log_read(target.handle, NULL));
    FILE *stream = open_memstream(&text, &bytes);
    /* It waits, but an earlier error does not keep it from showing what explains it. */
    const dpu_error_t got = dpu_log_read(target.handle, stream);
    fclose(stream);
    expect(fuzz, "dpu_log_read", errors | target.errors | (target.errors ? E(INVALID_DPU_SET) : 0),
           got);
    if (errors == 0 && target.errors == 0) {
        const struct shadow *dpu = &target.owner->dpus[target.only];
        uint64_t runs;
        memcpy(&runs, dpu->bytes[RUNS], sizeof runs);
        int end = snprintf(wanted, sizeof wanted, DPU_LOG_FORMAT_HEADER,
                           dpu_get_id(target.handle.dpu));
        /* The count may have been written since. */
        if (dpu->printed)
            snprintf(wanted + end, sizeof wanted - (size_t)end, "run %lu\n", (unsigned long)runs);
        if (strncmp(text, wanted, (size_t)end) != 0 || (text[end] != '\0') != dpu->printed)
            fail(fuzz, "the log is \"%s\", the model has \"%s\"", text, wanted);
    }
    free(text);
}

static dpu_error_t called(struct dpu_set_t handle, uint32_t rank, void *argument) {
    const struct argument *given = argument;
    uint32_t dpus = 0;
    (void)rank;
    atomic_fetch_add(&given->set->calls, 1);
    const dpu_error_t status = dpu_get_nr_dpus(handle, &dpus);
    return status != DPU_OK ? status : given->code;
}

/* How often it is called: of ranks in error, nobody says. */
static void count_calls(const struct target *target, uint32_t flags, bool done, bool single) {
    struct set *set = target->owner;
    const uint32_t most = single ? 1 : target->nr_ranks;
    uint32_t least = done ? most : 0;
    if (has_error(target)) least = 0;
    (void)flags;
    set->least_calls += least;
    set->most_calls += most;
}

/* dpu_sync does not wait for callbacks that go beside the queues. */
static void wait_calls(struct fuzz *fuzz, struct set *set) {
    set->wanders = true;
    for (int i = 0; atomic_load(&set->calls) < set->least_calls; ++i) {
        if (i > 20000) fail(fuzz, "callbacks never came");
        usleep(500);
    }
}

void do_callback(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 5);
    struct set *set = target.owner;
    uint32_t flags = draw(fuzz, 16);
    uint64_t errors = 0;
    if (chance(fuzz, 3)) flags |= 16u << draw(fuzz, 16);
    const bool none = chance(fuzz, 3), later = flags & DPU_CALLBACK_ASYNC;
    const bool beside = flags & DPU_CALLBACK_PARALLEL;
    const bool single = flags & DPU_CALLBACK_SINGLE_CALL || target.only >= 0;
    if (none || flags >= 16) errors |= E(INTERNAL);
    if (flags & DPU_CALLBACK_NONBLOCKING && !later) errors |= E(NONBLOCKING_SYNC_CALLBACK);
    /* The error of one that nobody waits for comes at any time. */
    const bool fails = set != NULL && chance(fuzz, 15) && !beside &&
                       !(flags & DPU_CALLBACK_NONBLOCKING) && (!single || target.nr_ranks == 1);
    struct argument *argument = set == NULL ? NULL : fails ? &set->bad : &set->good;
    const enum wait wait = beside ? BESIDE : later ? QUEUE : IDLE;
    const bool before = set != NULL && has_error(&target);
    if (beside && later && before) return; /* what it meets then, nobody says */
    const dpu_error_t got = dpu_callback(target.handle, none ? NULL : called, argument,
                                         (dpu_callback_flags_t)flags);
    const uint64_t code = fails && !later ? E(TIMEOUT) : 0;
    const bool done = settle(fuzz, "dpu_callback", &target, wait, errors | code, got);
    if (set == NULL || errors != 0) return;
    count_calls(&target, flags, done || (code != 0 && !before), single);
    if (beside && later) wait_calls(fuzz, set);
    if (!done || !later || !fails) return;
    for (uint32_t i = 0; i < target.nr_ranks; ++i) {
        struct rank *rank = &set->ranks[target.first_rank + i];
        if (rank->error != DPU_OK) continue;
        rank->error = argument->code;
        rank->error_kind = CALLBACK;
    }
}
