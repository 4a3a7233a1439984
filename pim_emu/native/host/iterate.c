/* Iterators behind DPU_FOREACH and its kin. A set that is not valid has no elements. */
#include "host.h"

static bool is_rank(const struct dpu_set_t *set, uint32_t index) {
    if (set->list.ranks == NULL || index >= set->list.nr_ranks) return false;
    pthread_mutex_lock(&host_lock);
    const bool valid = host_rank_of(set->list.ranks[index]) != NULL;
    pthread_mutex_unlock(&host_lock);
    return valid;
}

static bool is_dpu(const struct dpu_set_t *set) {
    uint32_t dpu;
    pthread_mutex_lock(&host_lock);
    const struct rank *rank = host_dpu_of(set->dpu, &dpu);
    const bool valid = rank != NULL && dpu < rank->nr_dpus;
    pthread_mutex_unlock(&host_lock);
    return valid;
}

static void enter_rank(struct dpu_set_rank_iterator_t *iterator) {
    iterator->has_next = is_rank(&iterator->set, iterator->count);
    if (iterator->has_next) iterator->next.list.ranks = iterator->set.list.ranks + iterator->count;
}

struct dpu_set_rank_iterator_t dpu_set_rank_iterator_from(const struct dpu_set_t *set) {
    struct dpu_set_rank_iterator_t iterator = {.set = *set, .next = *set};
    if (set->kind == DPU_SET_DPU) iterator.has_next = is_dpu(set);
    if (set->kind == DPU_SET_RANKS) {
        iterator.next.list.nr_ranks = 1;
        enter_rank(&iterator);
    }
    return iterator;
}

void dpu_set_rank_iterator_next(struct dpu_set_rank_iterator_t *iterator) {
    ++iterator->count;
    if (iterator->set.kind == DPU_SET_RANKS)
        enter_rank(iterator);
    else
        iterator->has_next = false;
}

/* The DPU at iterator->dpu of the rank at iterator->rank, or the first of the next rank. */
static void enter_dpu(struct dpu_set_dpu_iterator_t *iterator) {
    const struct dpu_set_t *set = &iterator->set;
    iterator->has_next = false;
    if (set->list.ranks == NULL) return;
    pthread_mutex_lock(&host_lock);
    for (; iterator->rank < set->list.nr_ranks; ++iterator->rank, iterator->dpu = 0) {
        const struct rank *rank = host_rank_of(set->list.ranks[iterator->rank]);
        if (rank == NULL) break;
        if (iterator->dpu >= rank->nr_dpus) continue;
        iterator->next.dpu = host_dpu_handle(rank, iterator->dpu);
        iterator->has_next = true;
        break;
    }
    pthread_mutex_unlock(&host_lock);
}

struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(const struct dpu_set_t *set) {
    struct dpu_set_dpu_iterator_t iterator = {.set = *set, .next = *set};
    if (set->kind == DPU_SET_DPU) iterator.has_next = is_dpu(set);
    if (set->kind == DPU_SET_RANKS) {
        iterator.next = (struct dpu_set_t){.kind = DPU_SET_DPU};
        enter_dpu(&iterator);
    }
    return iterator;
}

void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator) {
    ++iterator->count;
    ++iterator->dpu;
    if (iterator->set.kind == DPU_SET_RANKS)
        enter_dpu(iterator);
    else
        iterator->has_next = false;
}

static void enter_member(struct dpu_iterator_t *iterator) {
    pthread_mutex_lock(&host_lock);
    const struct rank *rank = host_rank_of(iterator->rank);
    iterator->has_next = rank != NULL && iterator->count < rank->nr_dpus;
    if (iterator->has_next) iterator->next = host_dpu_handle(rank, iterator->count);
    pthread_mutex_unlock(&host_lock);
}

struct dpu_iterator_t dpu_iterator_from(struct dpu_rank_t *rank) {
    struct dpu_iterator_t iterator = {.rank = rank};
    enter_member(&iterator);
    return iterator;
}

void dpu_iterator_next(struct dpu_iterator_t *iterator) {
    ++iterator->count;
    enter_member(iterator);
}
