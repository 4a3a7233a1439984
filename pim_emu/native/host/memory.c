/* Memories of DPUs by address. */
#include "host.h"

#include <dpu_memory.h>

/* All of a memory, as a symbol; the transfer itself finds the bounds. */
static const struct dpu_symbol_t all_mram = {HOST_MRAM_AT, UINT32_MAX};
static const struct dpu_symbol_t all_wram = {0, UINT32_MAX};

static bool is_busy(struct dpu_t *dpu) {
    bool done = true, fault;
    return dpu_status(dpu_set_from_dpu(dpu), &done, &fault) == DPU_OK && !done;
}

/* An offset that would change the kind of memory is out of bounds of any. */
static bool is_far(uint64_t offset) {
    return offset >= HOST_MRAM_AT;
}

dpu_error_t dpu_copy_to_mram(struct dpu_t *dpu, mram_addr_t mram_byte_offset,
                             const uint8_t *source, mram_size_t nb_of_bytes) {
    if (is_busy(dpu)) return DPU_ERR_MRAM_BUSY;
    if (is_far(mram_byte_offset)) return DPU_ERR_INVALID_MRAM_ACCESS;
    return dpu_copy_to_symbol(dpu_set_from_dpu(dpu), all_mram, mram_byte_offset, source,
                              nb_of_bytes);
}

dpu_error_t dpu_copy_from_mram(struct dpu_t *dpu, uint8_t *destination,
                               mram_addr_t mram_byte_offset, mram_size_t nb_of_bytes) {
    if (is_busy(dpu)) return DPU_ERR_MRAM_BUSY;
    if (is_far(mram_byte_offset)) return DPU_ERR_INVALID_MRAM_ACCESS;
    return dpu_copy_from_symbol(dpu_set_from_dpu(dpu), all_mram, mram_byte_offset, destination,
                                nb_of_bytes);
}

dpu_error_t dpu_copy_to_wram_for_dpu(struct dpu_t *dpu, wram_addr_t wram_word_offset,
                                     const dpuword_t *source, wram_size_t nb_of_words) {
    const uint64_t offset = (uint64_t)wram_word_offset * sizeof *source;
    if (is_far(offset)) return DPU_ERR_INVALID_WRAM_ACCESS;
    return dpu_copy_to_symbol(dpu_set_from_dpu(dpu), all_wram, (uint32_t)offset, source,
                              nb_of_words * sizeof *source);
}

dpu_error_t dpu_copy_from_wram_for_dpu(struct dpu_t *dpu, dpuword_t *destination,
                                       wram_addr_t wram_word_offset, wram_size_t nb_of_words) {
    const uint64_t offset = (uint64_t)wram_word_offset * sizeof *destination;
    if (is_far(offset)) return DPU_ERR_INVALID_WRAM_ACCESS;
    return dpu_copy_from_symbol(dpu_set_from_dpu(dpu), all_wram, (uint32_t)offset, destination,
                                nb_of_words * sizeof *destination);
}

dpu_error_t dpu_copy_to_wram_for_rank(struct dpu_rank_t *rank, wram_addr_t wram_word_offset,
                                      const dpuword_t *source, wram_size_t nb_of_words) {
    const uint64_t offset = (uint64_t)wram_word_offset * sizeof *source;
    if (is_far(offset)) return DPU_ERR_INVALID_WRAM_ACCESS;
    return dpu_copy_to_symbol(dpu_set_from_rank(&rank), all_wram, (uint32_t)offset, source,
                              nb_of_words * sizeof *source);
}
