/* Allocating ranks and giving them back. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Free indices of the machine's ranks, at most `most`. */
static uint32_t find_free(const struct emu_machine *machine, uint32_t most, uint32_t *indices) {
    uint32_t count = 0;
    for (uint32_t index = 0; index < machine->ranks && count < most; ++index) {
        bool taken = false;
        for (uint32_t slot = 0; slot < HOST_MOST_RANKS && !taken; ++slot) {
            const struct rank *rank = host_slot(slot);
            taken = rank->owner != NULL && rank->machine == machine && rank->index == index;
        }
        if (!taken) indices[count++] = index;
    }
    return count;
}

static struct rank *find_slot(void) {
    for (uint32_t slot = 0; slot < HOST_MOST_RANKS; ++slot)
        if (host_slot(slot)->owner == NULL) return host_slot(slot);
    return NULL;
}

void host_describe(const struct emu_machine *machine, dpu_description_t description) {
    const uint32_t slices = (machine->dpus_per_rank + DPU_MAX_NR_DPUS_PER_CI - 1) /
                            DPU_MAX_NR_DPUS_PER_CI;
    struct dpu_hw_description_t *hw = &description->hw;
    description->type = FUNCTIONAL_SIMULATOR;
    hw->timings.clock_division = 2;
    hw->timings.fck_frequency_in_mhz = (uint32_t)(machine->clock_hz * 2e-6 + 0.5);
    hw->topology.nr_of_control_interfaces = (uint8_t)slices;
    hw->topology.nr_of_dpus_per_control_interface = DPU_MAX_NR_DPUS_PER_CI;
    hw->memories.mram_size = machine->mram_bytes;
    hw->memories.wram_size = machine->wram_bytes / (uint32_t)sizeof(dpuword_t);
    hw->memories.iram_size = (iram_size_t)machine->iram_instructions;
    hw->dpu.nr_of_threads = (uint8_t)machine->max_tasklets;
}

static bool open_rank(struct allocation *allocation, uint32_t index, uint32_t nr_dpus) {
    const struct emu_machine *machine = allocation->machine;
    struct rank *rank = find_slot();
    if (rank == NULL) return false;
    struct emu_rank *engine = emu_create_rank(machine, index);
    struct member *members = calloc(machine->dpus_per_rank, sizeof *members);
    if (engine == NULL || members == NULL) {
        if (engine != NULL) emu_destroy_rank(engine);
        free(members);
        return false;
    }
    for (uint32_t i = 0; i < machine->dpus_per_rank; ++i)
        members[i].engine = emu_rank_dpu(engine, i);
    const uint32_t position = allocation->nr_ranks++;
    uint32_t first_dpu = 0;
    if (position > 0) {
        const struct rank *before = allocation->ranks[position - 1];
        first_dpu = before->first_dpu + before->nr_dpus;
    }
    *rank = (struct rank){.generation = rank->generation + 1,
                          .owner = allocation,
                          .machine = machine,
                          .index = index,
                          .position = position,
                          .first_dpu = first_dpu,
                          .nr_dpus = nr_dpus,
                          .engine = engine,
                          .members = members};
    pthread_cond_init(&rank->changed, NULL);
    host_describe(machine, &rank->description);
    allocation->ranks[position] = rank;
    allocation->handles[position] = host_rank_handle(rank);
    return true;
}

/* Nothing uses the ranks any more; under the lock. */
static void close_allocation(struct allocation *allocation) {
    for (uint32_t i = 0; i < allocation->nr_ranks; ++i) {
        struct rank *rank = allocation->ranks[i];
        for (uint32_t dpu = 0; dpu < rank->machine->dpus_per_rank; ++dpu)
            host_drop_program(rank->members[dpu].program);
        emu_destroy_rank(rank->engine);
        free(rank->members);
        pthread_cond_destroy(&rank->changed);
        rank->owner = NULL;
    }
    free(allocation->ranks);
    free(allocation);
}

static struct allocation *make_allocation(const struct profile *profile, uint32_t nr_ranks) {
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL) return NULL;
    allocation->machine = profile->machine;
    allocation->scatter = profile->scatter;
    allocation->ranks = calloc(nr_ranks, sizeof *allocation->ranks);
    allocation->handles = host_make_handles(nr_ranks);
    if (allocation->ranks != NULL && allocation->handles != NULL) return allocation;
    free(allocation->ranks);
    free(allocation);
    return NULL;
}

/* DPUs of rank `position`: ranks are filled one after the other, or evenly. */
static uint32_t share(const struct profile *profile, uint32_t nr_dpus, uint32_t nr_ranks,
                      uint32_t position) {
    const uint32_t full = profile->machine->dpus_per_rank;
    if (profile->dispatch) return nr_dpus / nr_ranks + (position < nr_dpus % nr_ranks);
    const uint32_t before = position * full;
    return nr_dpus - before < full ? nr_dpus - before : full;
}

static dpu_error_t allocate(const struct profile *profile, uint32_t nr_dpus, uint32_t nr_ranks,
                            const uint32_t *indices, struct dpu_set_t *dpu_set) {
    struct allocation *allocation = make_allocation(profile, nr_ranks);
    if (allocation == NULL) return DPU_ERR_SYSTEM;
    for (uint32_t i = 0; i < nr_ranks; ++i) {
        if (open_rank(allocation, indices[i], share(profile, nr_dpus, nr_ranks, i))) continue;
        close_allocation(allocation);
        return DPU_ERR_SYSTEM;
    }
    allocation->most_blocks = profile->most_blocks != 0 ? profile->most_blocks : nr_dpus;
    memset(dpu_set, 0, sizeof *dpu_set);
    dpu_set->kind = DPU_SET_RANKS;
    dpu_set->list.nr_ranks = nr_ranks;
    dpu_set->list.ranks = allocation->handles;
    return DPU_OK;
}

/* `count` ranks or DPUs, or all that are left. */
static dpu_error_t allocate_count(const char *function, uint32_t count, bool ranks,
                                  const char *text, struct dpu_set_t *dpu_set) {
    struct profile profile;
    if (dpu_set == NULL) return host_refuse(DPU_ERR_INTERNAL, "%s: dpu_set is NULL", function);
    if (!host_parse_profile(text, &profile)) return DPU_ERR_INVALID_PROFILE;
    const uint32_t full = profile.machine->dpus_per_rank;
    if (ranks || count == DPU_ALLOCATE_ALL) profile.dispatch = false;
    uint32_t indices[HOST_MOST_RANKS];

    pthread_mutex_lock(&host_lock);
    const uint32_t left = find_free(profile.machine, HOST_MOST_RANKS, indices);
    uint32_t nr_ranks = ranks ? count : count / full + (count % full != 0);
    if (count == DPU_ALLOCATE_ALL) nr_ranks = left;
    dpu_error_t status = DPU_ERR_ALLOCATION;
    if (nr_ranks > 0 && nr_ranks <= left) {
        const uint32_t nr_dpus = ranks || count == DPU_ALLOCATE_ALL ? nr_ranks * full : count;
        if (profile.dispatch) nr_ranks = left < nr_dpus ? left : nr_dpus;
        status = allocate(&profile, nr_dpus, nr_ranks, indices, dpu_set);
    }
    pthread_mutex_unlock(&host_lock);
    if (status == DPU_ERR_ALLOCATION)
        host_refuse(status, "%s: %u %s asked for, %u ranks of %u DPUs are left of machine %s",
                    function, count, ranks ? "ranks" : "DPUs", left, full, profile.machine->name);
    return status;
}

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set) {
    return allocate_count("dpu_alloc", nr_dpus, false, profile, dpu_set);
}

dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set) {
    return allocate_count("dpu_alloc_ranks", nr_ranks, true, profile, dpu_set);
}

/* The allocation that the set is, or NULL. */
static struct allocation *find_allocation(struct dpu_set_t set) {
    if (set.kind != DPU_SET_RANKS || set.list.ranks == NULL || set.list.nr_ranks == 0) return NULL;
    const struct rank *rank = host_rank_of(set.list.ranks[0]);
    if (rank == NULL) return NULL;
    struct allocation *allocation = rank->owner;
    const bool whole = set.list.ranks == allocation->handles &&
                       set.list.nr_ranks == allocation->nr_ranks;
    return whole && !allocation->closing && host_in_callback != allocation ? allocation : NULL;
}

static bool in_use(const struct allocation *allocation, struct rank **busy) {
    *busy = allocation->ranks[0];
    if (allocation->callbacks > 0) return true;
    for (uint32_t i = 0; i < allocation->nr_ranks; ++i) {
        *busy = allocation->ranks[i];
        if (!host_is_idle(*busy) || (*busy)->pins > 0) return true;
    }
    return false;
}

dpu_error_t dpu_free(struct dpu_set_t dpu_set) {
    if (dpu_set.kind != DPU_SET_RANKS && dpu_set.kind != DPU_SET_DPU) return DPU_ERR_INTERNAL;
    pthread_mutex_lock(&host_lock);
    struct allocation *allocation = find_allocation(dpu_set);
    if (allocation == NULL) {
        pthread_mutex_unlock(&host_lock);
        return host_refuse(DPU_ERR_INVALID_DPU_SET, "dpu_free: not a set as it was allocated");
    }
    allocation->closing = true;
    uint32_t nr_dpus = 0;
    for (struct rank *busy; in_use(allocation, &busy);) pthread_cond_wait(&busy->changed, &host_lock);
    for (uint32_t i = 0; i < allocation->nr_ranks; ++i) {
        host_stop_thread(allocation->ranks[i]);
        nr_dpus += allocation->ranks[i]->nr_dpus;
    }
    host_report(allocation, nr_dpus);
    close_allocation(allocation);
    pthread_mutex_unlock(&host_lock);
    return DPU_OK;
}

dpu_error_t dpu_get_rank_of_type(const char *profile, struct dpu_rank_t **rank) {
    struct dpu_set_t set;
    if (rank == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpu_get_rank_of_type: rank is NULL");
    const dpu_error_t status = allocate_count("dpu_get_rank_of_type", 1, true, profile, &set);
    if (status == DPU_OK) *rank = set.list.ranks[0];
    return status;
}

dpu_error_t dpu_free_rank(struct dpu_rank_t *rank) {
    struct dpu_set_t set = {.kind = DPU_SET_RANKS, .list = {1, NULL}};
    pthread_mutex_lock(&host_lock);
    const struct rank *found = host_rank_of(rank);
    if (found != NULL) set.list.ranks = found->owner->handles;
    pthread_mutex_unlock(&host_lock);
    return dpu_free(set); /* refused where the rank is one of several */
}
