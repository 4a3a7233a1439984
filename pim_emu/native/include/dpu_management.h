/* Ranks and DPUs by their handles. */
#ifndef DPU_MANAGEMENT_H
#define DPU_MANAGEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <dpu_description.h>
#include <dpu_error.h>
#include <dpu_macro_utils.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A rank of its own: dpu_alloc_ranks(1, ...) and dpu_free by the rank's handle. */
dpu_error_t dpu_get_rank_of_type(const char *profile, struct dpu_rank_t **rank);
dpu_error_t dpu_free_rank(struct dpu_rank_t *rank);

/* NULL: there is none. A DPU that its set left out exists and is disabled. */
struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id);
bool dpu_is_enabled(struct dpu_t *dpu);
struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu);
dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu);
dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu);
dpu_id_t dpu_get_id(struct dpu_t *dpu); /* rank << 16 | slice << 8 | member */
dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank);
int dpu_get_rank_numa_node(struct dpu_rank_t *rank);
/* The machine that dpu_alloc would give for a profile, for dpu_free_description. */
dpu_error_t dpu_get_profile_description(const char *profile, dpu_description_t *description);
dpu_description_t dpu_get_description(struct dpu_rank_t *rank); /* NULL: the handle is stale */

struct dpu_set_t dpu_set_from_rank(struct dpu_rank_t **rank);
struct dpu_set_t dpu_set_from_dpu(struct dpu_t *dpu);
struct dpu_rank_t *dpu_rank_from_set(struct dpu_set_t set); /* NULL: not a single rank */
struct dpu_t *dpu_from_set(struct dpu_set_t set);           /* NULL: not a single DPU */

/* STRUCT_DPU_FOREACH(rank, dpu) or (rank, dpu, index): the handles of a rank's enabled DPUs. */
struct dpu_iterator_t {
    struct dpu_rank_t *rank;
    uint32_t count;
    bool has_next;
    struct dpu_t *next;
};
struct dpu_iterator_t dpu_iterator_from(struct dpu_rank_t *rank);
void dpu_iterator_next(struct dpu_iterator_t *iterator);

#define STRUCT_DPU_FOREACH(...)                                                                   \
    PIM_EMU_FOURTH(__VA_ARGS__, PIM_EMU_DPU_OF_RANK_INDEXED, PIM_EMU_DPU_OF_RANK, )(__VA_ARGS__)
#define PIM_EMU_DPU_OF_RANK(rank, dpu)                                                            \
    for (struct dpu_iterator_t PIM_EMU_ITERATOR(handle) = dpu_iterator_from(rank);                \
         dpu = PIM_EMU_ITERATOR(handle).next, PIM_EMU_ITERATOR(handle).has_next;                  \
         dpu_iterator_next(&PIM_EMU_ITERATOR(handle)))
#define PIM_EMU_DPU_OF_RANK_INDEXED(rank, dpu, index)                                             \
    for (struct dpu_iterator_t PIM_EMU_ITERATOR(handle) = dpu_iterator_from(rank);                \
         index = PIM_EMU_ITERATOR(handle).count, dpu = PIM_EMU_ITERATOR(handle).next,             \
             PIM_EMU_ITERATOR(handle).has_next;                                                   \
         dpu_iterator_next(&PIM_EMU_ITERATOR(handle)))

#ifdef __cplusplus
}
#endif
#endif
