/* Counters of sets and DPUs, constants of machines, and the report at the end. Transfers are
 * modelled as in cost/transfers.py: a rank takes what its DPUs take one by one, or what a full rank
 * takes if that is less; ranks follow each other. WRAM transfers count as MRAM transfers do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

void host_count_transfer(struct rank *rank, dpu_xfer_t direction, uint32_t dpus, size_t bytes) {
    const struct emu_machine *machine = rank->machine;
    struct pim_emu_set_counters *counters = &rank->owner->counters;
    const bool to = direction == DPU_XFER_TO_DPU;
    const double one = to ? machine->to_dpu_bandwidth : machine->from_dpu_bandwidth;
    const double full = to ? machine->to_rank_bandwidth : machine->from_rank_bandwidth;
    const double in_turn = (double)dpus * (double)bytes / one;
    const double at_once = (double)machine->dpus_per_rank * (double)bytes / full;
    pthread_mutex_lock(&host_lock);
    *(to ? &counters->bytes_to_dpus : &counters->bytes_from_dpus) += (uint64_t)dpus * bytes;
    counters->transfer_seconds += in_turn < at_once ? in_turn : at_once;
    pthread_mutex_unlock(&host_lock);
}

void host_count_broadcast(struct rank *rank, uint32_t dpus, size_t bytes) {
    const struct emu_machine *machine = rank->machine;
    struct pim_emu_set_counters *counters = &rank->owner->counters;
    pthread_mutex_lock(&host_lock);
    counters->broadcast_bytes += (uint64_t)dpus * bytes;
    counters->transfer_seconds +=
        (double)machine->dpus_per_rank * (double)bytes / machine->broadcast_bandwidth;
    pthread_mutex_unlock(&host_lock);
}

void host_report(const struct allocation *allocation, uint32_t nr_dpus) {
    const char *wanted = getenv("PIM_EMU_REPORT");
    if (wanted == NULL || strcmp(wanted, "1") != 0) return;
    const struct pim_emu_set_counters *counters = &allocation->counters;
    fprintf(stderr,
            "pim_emu: %u DPUs in %u ranks of %s\n"
            "pim_emu:   to DPUs %llu B, broadcast %llu B delivered, from DPUs %llu B\n"
            "pim_emu:   transfers %.6g s (modelled)\n"
            "pim_emu:   %llu launches, %llu cycles of the slowest DPUs, %.6g s (modelled%s)\n",
            nr_dpus, allocation->nr_ranks, allocation->machine->name,
            (unsigned long long)counters->bytes_to_dpus,
            (unsigned long long)counters->broadcast_bytes,
            (unsigned long long)counters->bytes_from_dpus, counters->transfer_seconds,
            (unsigned long long)counters->launches,
            (unsigned long long)counters->slowest_cycles, counters->launch_seconds,
            allocation->other_clocks ? ", of runs whose cycles mean nothing" : "");
}

dpu_error_t pim_emu_get_set_counters(struct dpu_set_t set, struct pim_emu_set_counters *counters) {
    struct scope scope;
    if (counters == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "pim_emu_get_set_counters: counters is NULL");
    const dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    *counters = scope.ranks[0]->owner->counters;
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return DPU_OK;
}

dpu_error_t pim_emu_reset_set_counters(struct dpu_set_t set) {
    struct scope scope;
    const dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    scope.ranks[0]->owner->counters = (struct pim_emu_set_counters){0};
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return DPU_OK;
}

/* The DPU, idle; to be released and left. */
static dpu_error_t enter_dpu(struct dpu_set_t set, struct scope *scope, struct emu_dpu **dpu) {
    if (set.kind != DPU_SET_DPU)
        return host_refuse(DPU_ERR_INVALID_DPU_SET, "the set is not one DPU");
    const dpu_error_t status = host_enter(set, scope);
    if (status != DPU_OK) return status;
    host_acquire(scope, HOST_KEEP_ERROR);
    *dpu = scope->ranks[0]->members[scope->only].engine;
    return DPU_OK;
}

dpu_error_t pim_emu_get_counters(struct dpu_set_t dpu, struct pim_emu_counters *counters) {
    struct scope scope;
    struct emu_dpu *engine;
    if (counters == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "pim_emu_get_counters: counters is NULL");
    const dpu_error_t status = enter_dpu(dpu, &scope, &engine);
    if (status != DPU_OK) return status;
    const struct emu_counters *known = emu_dpu_counters(engine);
    *counters = (struct pim_emu_counters){.cycles = known->cycles,
                                          .instructions = known->instructions,
                                          .dma_reads = known->dma_reads,
                                          .dma_read_bytes = known->dma_read_bytes,
                                          .dma_writes = known->dma_writes,
                                          .dma_write_bytes = known->dma_write_bytes,
                                          .dma_cycles = known->dma_cycles,
                                          .heap_bytes = known->heap_bytes};
    host_release(&scope);
    host_leave(&scope);
    return DPU_OK;
}

dpu_error_t pim_emu_get_fault(struct dpu_set_t dpu, const char **name, const char **message) {
    struct scope scope;
    struct emu_dpu *engine;
    if (name == NULL || message == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "pim_emu_get_fault: name or message is NULL");
    const dpu_error_t status = enter_dpu(dpu, &scope, &engine);
    if (status != DPU_OK) return status;
    *name = *message = "";
    if (emu_dpu_state(engine) == EMU_FAULTED) *name = emu_fault_name(emu_dpu_fault(engine, message));
    host_release(&scope);
    host_leave(&scope);
    return DPU_OK;
}

dpu_error_t pim_emu_get_machine(struct dpu_set_t set, const char **name) {
    struct scope scope;
    if (name == NULL) return host_refuse(DPU_ERR_INTERNAL, "pim_emu_get_machine: name is NULL");
    const dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    *name = scope.machine->name;
    host_leave(&scope);
    return DPU_OK;
}

static bool find_fact(const struct emu_machine *machine, const char *name, double *value) {
    const struct {
        const char *name;
        double value;
    } facts[] = {
#define FACT(field) {#field, (double)machine->field}
        FACT(ranks), FACT(dpus_per_rank), FACT(max_tasklets), FACT(pipeline_reissue),
        FACT(mram_bytes), FACT(wram_bytes), FACT(iram_instructions), FACT(dma_max_bytes),
        FACT(dma_min_bytes), FACT(dma_alignment_bytes), FACT(clock_hz), FACT(dma_read_alpha),
        FACT(dma_write_alpha), FACT(dma_cycles_per_byte), FACT(random_read_bandwidth),
        FACT(to_dpu_bandwidth), FACT(from_dpu_bandwidth), FACT(to_rank_bandwidth),
        FACT(from_rank_bandwidth), FACT(broadcast_bandwidth),
#undef FACT
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; ++i) {
        if (strcmp(facts[i].name, name) != 0) continue;
        *value = facts[i].value;
        return true;
    }
    return false;
}

dpu_error_t pim_emu_get_machine_fact(struct dpu_set_t set, const char *name, double *value) {
    struct scope scope;
    if (name == NULL || value == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "pim_emu_get_machine_fact: name or value is NULL");
    dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    if (!find_fact(scope.machine, name, value))
        status = host_refuse(DPU_ERR_UNKNOWN_SYMBOL, "machines have no constant \"%s\"", name);
    host_leave(&scope);
    return status;
}
