/* Ranks and DPUs by their handles: what they are, and starting them. */
#include "host.h"

#include <dpu_runner.h>
#include <stdlib.h>

#define NOBODY UINT32_MAX /* what numbers of stale handles are */

struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id) {
    struct dpu_t *dpu = NULL;
    const uint32_t index = (uint32_t)slice_id * DPU_MAX_NR_DPUS_PER_CI + dpu_id;
    pthread_mutex_lock(&host_lock);
    const struct rank *found = host_rank_of(rank);
    if (found != NULL && dpu_id < DPU_MAX_NR_DPUS_PER_CI && index < found->machine->dpus_per_rank)
        dpu = host_dpu_handle(found, index);
    pthread_mutex_unlock(&host_lock);
    return dpu;
}

/* Of a valid handle: its rank and index. */
static bool look_up(const struct dpu_t *dpu, const struct rank **rank, uint32_t *index) {
    pthread_mutex_lock(&host_lock);
    *rank = host_dpu_of(dpu, index);
    pthread_mutex_unlock(&host_lock);
    return *rank != NULL;
}

bool dpu_is_enabled(struct dpu_t *dpu) {
    const struct rank *rank;
    uint32_t index;
    return look_up(dpu, &rank, &index) && index < rank->nr_dpus;
}

struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu) {
    const struct rank *rank;
    uint32_t index;
    return look_up(dpu, &rank, &index) ? host_rank_handle(rank) : NULL;
}

dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu) {
    const struct rank *rank;
    uint32_t index;
    return (dpu_slice_id_t)(look_up(dpu, &rank, &index) ? index / DPU_MAX_NR_DPUS_PER_CI : NOBODY);
}

dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu) {
    const struct rank *rank;
    uint32_t index;
    return (dpu_member_id_t)(look_up(dpu, &rank, &index) ? index % DPU_MAX_NR_DPUS_PER_CI : NOBODY);
}

dpu_id_t dpu_get_id(struct dpu_t *dpu) {
    const struct rank *rank;
    uint32_t index;
    if (!look_up(dpu, &rank, &index)) return NOBODY;
    return rank->index << 16 | index / DPU_MAX_NR_DPUS_PER_CI << 8 | index % DPU_MAX_NR_DPUS_PER_CI;
}

dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank) {
    pthread_mutex_lock(&host_lock);
    const struct rank *found = host_rank_of(rank);
    pthread_mutex_unlock(&host_lock);
    return found != NULL ? found->index : NOBODY;
}

int dpu_get_rank_numa_node(struct dpu_rank_t *rank) {
    return dpu_get_rank_id(rank) != NOBODY ? 0 : -1;
}

dpu_description_t dpu_get_description(struct dpu_rank_t *rank) {
    pthread_mutex_lock(&host_lock);
    struct rank *found = host_rank_of(rank);
    pthread_mutex_unlock(&host_lock);
    return found != NULL ? &found->description : NULL;
}

dpu_error_t dpu_get_profile_description(const char *profile, dpu_description_t *description) {
    struct profile parsed;
    if (description == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_get_profile_description: description is NULL");
    if (!host_parse_profile(profile, &parsed)) return DPU_ERR_INVALID_PROFILE;
    *description = calloc(1, sizeof **description);
    if (*description == NULL) return DPU_ERR_SYSTEM;
    host_describe(parsed.machine, *description);
    return DPU_OK;
}

void dpu_free_description(dpu_description_t description) {
    free(description);
}

struct dpu_set_t dpu_set_from_rank(struct dpu_rank_t **rank) {
    return (struct dpu_set_t){.kind = DPU_SET_RANKS, .list = {1, rank}};
}

struct dpu_set_t dpu_set_from_dpu(struct dpu_t *dpu) {
    return (struct dpu_set_t){.kind = DPU_SET_DPU, .dpu = dpu};
}

struct dpu_rank_t *dpu_rank_from_set(struct dpu_set_t set) {
    const bool one = set.kind == DPU_SET_RANKS && set.list.nr_ranks == 1 && set.list.ranks != NULL;
    return one ? set.list.ranks[0] : NULL;
}

struct dpu_t *dpu_from_set(struct dpu_set_t set) {
    return set.kind == DPU_SET_DPU ? set.dpu : NULL;
}

static dpu_error_t boot(struct dpu_set_t set) {
    struct scope scope;
    const dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    const bool idle = host_is_idle(scope.ranks[0]) || host_holds(scope.ranks[0]);
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return idle ? dpu_launch(set, DPU_ASYNCHRONOUS) : DPU_ERR_DPU_ALREADY_RUNNING;
}

dpu_error_t dpu_boot_dpu(struct dpu_t *dpu) {
    return boot(dpu_set_from_dpu(dpu));
}

dpu_error_t dpu_boot_rank(struct dpu_rank_t *rank) {
    return boot(dpu_set_from_rank(&rank));
}

dpu_error_t dpu_status_dpu(struct dpu_t *dpu, bool *done, bool *fault) {
    return dpu_status(dpu_set_from_dpu(dpu), done, fault);
}

dpu_error_t dpu_status_rank(struct dpu_rank_t *rank, bool *done, bool *fault) {
    return dpu_status(dpu_set_from_rank(&rank), done, fault);
}

dpu_error_t dpu_poll_dpu(struct dpu_t *dpu, bool *dpu_is_running, bool *dpu_is_in_fault) {
    const dpu_error_t status = dpu_status(dpu_set_from_dpu(dpu), dpu_is_running, dpu_is_in_fault);
    if (status == DPU_OK) *dpu_is_running = !*dpu_is_running;
    return status;
}
