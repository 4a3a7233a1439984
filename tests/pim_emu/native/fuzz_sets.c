/* Allocating, freeing, loading, asking. */
#include <string.h>

#include "fuzz.h"

static const struct {
    const char *text;
    bool valid, dispatch, scatter, v1b;
    uint32_t most_blocks;
} profiles[] = {
    {NULL, true, false, false, false, 0},
    {"", true, false, false, false, 0},
    {"backend=simulator", true, false, false, false, 0},
    {"dispatchOnAllRanks=true", true, true, false, false, 0},
    {"dispatchOnAllRanks=true,sgXferEnable=true", true, true, true, false, 0},
    {"sgXferEnable=true, sgXferMaxBlocksPerDpu=3", true, false, true, false, 3},
    {"machine=upmem-v1b,sgXferEnable=true", true, false, true, true, 0},
    {"nrThreadsPerRank=0,regionMode=perf", true, false, false, false, 0},
    {"backend=abacus", false, false, false, false, 0},
    {"colour=red", false, false, false, false, 0},
    {"backend", false, false, false, false, 0},
    {",,=,", false, false, false, false, 0},
    {"sgXferMaxBlocksPerDpu=0", false, false, false, false, 0},
    {"sgXferMaxBlocksPerDpu=-1", false, false, false, false, 0},
    {"sgXferMaxBlocksPerDpu=99999999999999999999", false, false, false, false, 0},
    {"machine=", false, false, false, false, 0},
    {"dispatchOnAllRanks=maybe", false, false, false, false, 0},
};

static void add_set(struct fuzz *fuzz, struct set *set, struct dpu_set_t handle, uint32_t nr_dpus) {
    static const uint8_t pattern[8] = {0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed, 0xfa, 0xce};
    *set = (struct set){.live = true, .handle = handle, .nr_ranks = handle.list.nr_ranks,
                        .nr_dpus = nr_dpus, .dpus = calloc(nr_dpus, sizeof *set->dpus)};
    set->good = (struct argument){set, DPU_OK};
    set->bad = (struct argument){set, DPU_ERR_TIMEOUT};
    if (set->nr_ranks > MOST_RANKS) fail(fuzz, "%u ranks for %u DPUs", set->nr_ranks, nr_dpus);
    uint32_t first = 0;
    for (uint32_t i = 0; i < set->nr_ranks; ++i) {
        struct rank *rank = &set->ranks[i];
        const struct dpu_set_t one = dpu_set_from_rank(&handle.list.ranks[i]);
        rank->first = first;
        expect(fuzz, "dpu_get_nr_dpus", 0, dpu_get_nr_dpus(one, &rank->count));
        first += rank->count;
    }
    if (first != nr_dpus) fail(fuzz, "%u DPUs, the model has %u", first, nr_dpus);
    for (uint32_t i = 0; i < nr_dpus; ++i) {
        struct shadow *dpu = &set->dpus[i];
        for (uint32_t at = 0; at < sizeof dpu->bytes[BUFFER]; ++at)
            dpu->bytes[BUFFER][at] = pattern[at % 8];
        memset(dpu->known[BUFFER], 1, sizeof dpu->known[BUFFER]);
        dpu->outcome_known = true;
    }
}

void do_alloc(struct fuzz *fuzz) {
    struct set *set = &fuzz->sets[draw(fuzz, SETS)];
    struct dpu_set_t handle, *into = chance(fuzz, 5) ? NULL : &handle;
    const uint32_t which = draw(fuzz, sizeof profiles / sizeof *profiles);
    const uint32_t bad[] = {0, 2561, 4000000000u};
    const bool ranks = chance(fuzz, 10), wrong = chance(fuzz, 15);
    uint32_t count = ranks ? 1 : 1 + draw(fuzz, MOST_RANKS);
    if (!ranks && !profiles[which].dispatch && chance(fuzz, 10)) count = 63 + draw(fuzz, 4);
    if (wrong) count = bad[draw(fuzz, 3)];
    uint64_t errors = (into == NULL ? E(INTERNAL) : 0) | (wrong ? E(ALLOCATION) : 0);
    if (!profiles[which].valid) errors |= E(INVALID_PROFILE);
    if (errors == 0 && set->live) return;
    const dpu_error_t got = (ranks ? dpu_alloc_ranks : dpu_alloc)(count, profiles[which].text, into);
#ifdef __SANITIZE_THREAD__ /* it leaves addresses for a few ranks only */
    if (got == DPU_ERR_SYSTEM) return;
#endif
    expect(fuzz, "dpu_alloc", errors, got);
    if (errors != 0) return;
    add_set(fuzz, set, handle, ranks ? 64 : count);
    set->scatter = profiles[which].scatter;
    set->most_blocks = profiles[which].most_blocks ? profiles[which].most_blocks : set->nr_dpus;
}

void free_set(struct fuzz *fuzz, struct set *set) {
    const uint32_t slot = fuzz->nr_stale < STALE ? fuzz->nr_stale++ : draw(fuzz, STALE);
    fuzz->stale[slot] = set->handle;
    fuzz->stale_dpu[slot] = dpu_set_from_dpu(dpu_get(set->handle.list.ranks[0], 0, 0));
    if (chance(fuzz, 50)) make_idle(fuzz, set); /* else it waits itself, and errors are lost */
    expect(fuzz, "dpu_free", 0, dpu_free(set->handle));
    const uint32_t calls = atomic_load(&set->calls);
    if (calls < set->least_calls || calls > set->most_calls)
        fail(fuzz, "%u callbacks, the model has %u to %u", calls, set->least_calls,
             set->most_calls);
    verify_and_free(fuzz, set);
    free(set->dpus);
    set->live = false;
    expect(fuzz, "dpu_free again", E(INVALID_DPU_SET), dpu_free(set->handle));
}

void do_free(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 50);
    if (target.owner == NULL) /* every set that is not as it was allocated is refused alike */
        expect(fuzz, "dpu_free", E(INVALID_DPU_SET) | E(INTERNAL), dpu_free(target.handle));
    else if (target.only < 0 && target.nr_ranks == target.owner->nr_ranks)
        free_set(fuzz, target.owner);
    else
        expect(fuzz, "dpu_free of a part", E(INVALID_DPU_SET), dpu_free(target.handle));
}

static void apply_load(struct fuzz *fuzz, const struct target *target, int program) {
    ++fuzz->loads;
    for (uint32_t i = first_dpu(target); i < end_dpu(target); ++i) {
        struct shadow *dpu = &target->owner->dpus[i];
        /* What lies where in MRAM is the program's business. */
        if (dpu->program != 0 && dpu->program != program) forget(dpu, BUFFER);
        dpu->program = program;
        dpu->load = fuzz->loads;
        dpu->faulted = dpu->printed = false;
        dpu->outcome_known = true;
        for (enum variable variable = MODE; variable < BUFFER; ++variable) {
            memset(dpu->bytes[variable], 0, sizeof dpu->bytes[variable]);
            memset(dpu->known[variable], 1, sizeof dpu->known[variable]);
        }
    }
}

void do_load(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 10);
    struct dpu_program_t *program = NULL, **shown = chance(fuzz, 50) ? &program : NULL;
    const int which = 1 + (int)draw(fuzz, 2);
    struct dpu_incbin_t incbin = {fuzz->files[which], fuzz->file_bytes[which], "here"};
    const uint32_t cut = draw(fuzz, (uint32_t)fuzz->file_bytes[which]);
    uint64_t errors = 0;
    dpu_error_t got;
    switch (draw(fuzz, 16)) {
    case 0:
        errors = E(ELF_NO_SUCH_FILE);
        got = dpu_load(target.handle, "/no/such/file", shown);
        break;
    case 1:
        errors = E(ELF_NO_SUCH_FILE);
        got = dpu_load(target.handle, chance(fuzz, 50) ? NULL : "/", shown);
        break;
    case 2:
        errors = E(ELF_INVALID_FILE);
        got = dpu_load(target.handle, "/proc/self/exe", shown);
        break;
    case 3: {
        errors = E(ELF_INVALID_FILE);
        uint8_t *part = malloc(cut);
        memcpy(part, fuzz->files[which], cut);
        got = dpu_load_from_memory(target.handle, part, cut, shown);
        free(part);
        break;
    }
    case 4:
        errors = E(ELF_INVALID_FILE);
        got = dpu_load_from_memory(target.handle, NULL, cut, shown);
        break;
    case 5:
        errors = E(ELF_INVALID_FILE);
        incbin.buffer = NULL;
        got = dpu_load_from_incbin(target.handle, chance(fuzz, 50) ? NULL : &incbin, shown);
        break;
    case 6:
    case 7:
        got = dpu_load_from_incbin(target.handle, &incbin, shown);
        break;
    case 8:
    case 9:
        got = dpu_load_from_memory(target.handle, fuzz->files[which], fuzz->file_bytes[which],
                                   shown);
        break;
    default:
        got = dpu_load(target.handle, fuzz->paths[which], shown);
    }
    if (!settle(fuzz, "dpu_load", &target, IDLE, errors, got)) return;
    apply_load(fuzz, &target, which);
    if (shown == NULL) return;
    target.owner->program = program;
    target.owner->program_load = fuzz->loads;
    if (program == NULL || program->nr_threads_enabled != 2) fail(fuzz, "no program is shown");
}

static bool is_held(const struct set *set) {
    bool held = false;
    for (uint32_t i = 0; i < set->nr_dpus; ++i)
        held |= set->program != NULL && set->dpus[i].load == set->program_load;
    return held;
}

static void ask_symbol(struct fuzz *fuzz, const struct target *target) {
    struct dpu_symbol_t symbol;
    const struct set *set = target->owner;
    if (set == NULL || !is_held(set)) return;
    const int program = 1 + (int)draw(fuzz, 2); /* perhaps not the one */
    const enum variable variable = (enum variable)draw(fuzz, VARIABLES);
    for (uint32_t i = 0; i < set->nr_dpus; ++i)
        if (set->dpus[i].load == set->program_load && set->dpus[i].program != program) return;
    expect(fuzz, "dpu_get_symbol", 0,
           dpu_get_symbol(set->program, variable_names[variable], &symbol));
    if (symbol.size != variable_bytes(variable, program))
        fail(fuzz, "%s has %u bytes", variable_names[variable], symbol.size);
    expect(fuzz, "dpu_get_symbol", E(UNKNOWN_SYMBOL),
           dpu_get_symbol(set->program, chance(fuzz, 50) ? NULL : "nosuch", &symbol));
    expect(fuzz, "dpu_get_symbol", E(INTERNAL), dpu_get_symbol(set->program, "mode", NULL));
    uint64_t nonsense = 7;
    expect(fuzz, "dpu_get_symbol", E(NO_PROGRAM_LOADED),
           dpu_get_symbol((struct dpu_program_t *)(void *)&nonsense, "mode", &symbol));
}

void do_queries(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 25);
    uint32_t count = 0, ranks = 0;
    struct dpu_program_t *program;
    double value;
    const bool good = settle(fuzz, "dpu_get_nr_dpus", &target, NOTHING, 0,
                             dpu_get_nr_dpus(target.handle, &count));
    if (good && count != end_dpu(&target) - first_dpu(&target)) fail(fuzz, "%u DPUs", count);
    settle(fuzz, "dpu_get_nr_ranks", &target, NOTHING, 0, dpu_get_nr_ranks(target.handle, &ranks));
    if (good && ranks != target.nr_ranks) fail(fuzz, "%u ranks", ranks);
    expect(fuzz, "dpu_get_nr_dpus(NULL)", E(INTERNAL) | target.errors,
           dpu_get_nr_dpus(target.handle, NULL));
    settle(fuzz, "dpu_get_common_program", &target, NOTHING, program_errors(&target),
           dpu_get_common_program(&target.handle, &program));
    const bool known = chance(fuzz, 50);
    settle(fuzz, "pim_emu_get_machine_fact", &target, NOTHING, known ? 0 : E(UNKNOWN_SYMBOL),
           pim_emu_get_machine_fact(target.handle, known ? "clock_hz" : "colour", &value));
    ask_symbol(fuzz, &target);
}

void do_iterate(struct fuzz *fuzz) {
    struct target target;
    choose_target(fuzz, &target, 30);
    struct dpu_set_t rank, dpu, again;
    uint32_t dpus = 0, inner = 0, index = 0, at = 0;
    DPU_FOREACH (target.handle, dpu, index) {
        if (index != dpus++) fail(fuzz, "DPU_FOREACH counts %u", index);
        DPU_FOREACH (dpu, again) inner += again.dpu == dpu.dpu;
    }
    if (target.owner == NULL) {
        if (target.errors & E(INTERNAL) && dpus != 0) fail(fuzz, "a bad set has DPUs");
        return;
    }
    DPU_RANK_FOREACH (target.handle, rank)
        DPU_FOREACH (rank, dpu) {
            uint32_t one = 0;
            expect(fuzz, "dpu_get_nr_dpus", 0, dpu_get_nr_dpus(dpu, &one));
            at += one;
        }
    const uint32_t expected = end_dpu(&target) - first_dpu(&target);
    if (dpus != expected || inner != expected || at != expected)
        fail(fuzz, "%u, %u and %u DPUs, the model has %u", dpus, inner, at, expected);
}
