/* The host interface: sets of DPUs, their programs, transfers and launches.
 *
 * Sets are values: copy them, take ranks and single DPUs of them. Every function checks its
 * arguments and returns one of dpu_error.h; a set that was freed is DPU_ERR_INVALID_DPU_SET.
 */
#ifndef DPU_H
#define DPU_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <dpu_error.h>
#include <dpu_fifo.h>
#include <dpu_log.h>
#include <dpu_macro_utils.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Run `on_error` after a line on stderr where the statement does not return DPU_OK. */
#define DPU_CHECK(statement, on_error)                                                            \
    do {                                                                                          \
        const dpu_error_t dpu_check_status = (statement);                                         \
        if (dpu_check_status != DPU_OK) {                                                         \
            char *dpu_check_text = dpu_error_to_string(dpu_check_status);                         \
            fprintf(stderr, "%s:%d(%s): DPU Error (%s)\n", __FILE__, __LINE__, __func__,          \
                    dpu_check_text);                                                              \
            free(dpu_check_text);                                                                 \
            on_error;                                                                             \
        }                                                                                         \
    } while (0)
#define DPU_ASSERT(statement) DPU_CHECK(statement, exit(EXIT_FAILURE))

/* --- Sets --- */
#define DPU_ALLOCATE_ALL (UINT_MAX)

/* `profile`: "key=value,...", or NULL. Keys of the vendor are accepted, most without effect; with
 * one: machine (a name), dispatchOnAllRanks, sgXferEnable, sgXferMaxBlocksPerDpu. The environment's
 * UPMEM_PROFILE_BASE and UPMEM_PROFILE are read before it. A rank belongs to one set at a time. */
dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set);
/* Only of a set as it was allocated. Waits for what is queued. */
dpu_error_t dpu_free(struct dpu_set_t dpu_set);
dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks);
dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus);

struct dpu_set_rank_iterator_t {
    struct dpu_set_t set;
    uint32_t count;
    bool has_next;
    struct dpu_set_t next;
};
struct dpu_set_rank_iterator_t dpu_set_rank_iterator_from(const struct dpu_set_t *set);
void dpu_set_rank_iterator_next(struct dpu_set_rank_iterator_t *iterator);

struct dpu_set_dpu_iterator_t {
    struct dpu_set_t set;
    uint32_t count, rank, dpu;
    bool has_next;
    struct dpu_set_t next;
};
struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(const struct dpu_set_t *set);
void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator);

/* DPU_FOREACH(set, dpu) or (set, dpu, index); DPU_RANK_FOREACH likewise. */
#define DPU_FOREACH(...)                                                                          \
    PIM_EMU_FOURTH(__VA_ARGS__, PIM_EMU_EACH_INDEXED, PIM_EMU_EACH, )(dpu, __VA_ARGS__)
#define DPU_RANK_FOREACH(...)                                                                     \
    PIM_EMU_FOURTH(__VA_ARGS__, PIM_EMU_EACH_INDEXED, PIM_EMU_EACH, )(rank, __VA_ARGS__)
#define PIM_EMU_EACH(kind, set, one)                                                              \
    for (struct dpu_set_##kind##_iterator_t PIM_EMU_ITERATOR(kind) =                              \
             dpu_set_##kind##_iterator_from(&(set));                                              \
         one = PIM_EMU_ITERATOR(kind).next, PIM_EMU_ITERATOR(kind).has_next;                      \
         dpu_set_##kind##_iterator_next(&PIM_EMU_ITERATOR(kind)))
#define PIM_EMU_EACH_INDEXED(kind, set, one, index)                                               \
    for (struct dpu_set_##kind##_iterator_t PIM_EMU_ITERATOR(kind) =                              \
             dpu_set_##kind##_iterator_from(&(set));                                              \
         index = PIM_EMU_ITERATOR(kind).count, one = PIM_EMU_ITERATOR(kind).next,                 \
             PIM_EMU_ITERATOR(kind).has_next;                                                     \
         dpu_set_##kind##_iterator_next(&PIM_EMU_ITERATOR(kind)))

/* --- Programs --- */
/* `program` may be NULL; what it gets lives as long as a DPU holds the program. */
dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path,
                     struct dpu_program_t **program);
dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program);
dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin,
                                 struct dpu_program_t **program);
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name,
                           struct dpu_symbol_t *symbol);

/* DPU_INCBIN(name, "path"), outside functions: put the file into this program and define
 * `struct dpu_incbin_t name`. */
#define DPU_INCBIN(name, file)                                                                    \
    __asm__(".pushsection .rodata.dpu_incbin,\"a\",@progbits\n"                                   \
            ".balign 16\n"                                                                        \
            ".Ldpu_incbin_" PIM_EMU_TEXT(name) ":\n"                                              \
            ".incbin \"" file "\"\n"                                                              \
            ".Ldpu_incbin_end_" PIM_EMU_TEXT(name) ":\n"                                          \
            ".Ldpu_incbin_path_" PIM_EMU_TEXT(name) ":\n"                                         \
            ".asciz \"" file "\"\n"                                                               \
            ".popsection\n"                                                                       \
            ".pushsection .data.dpu_incbin,\"aw\",@progbits\n"                                    \
            ".balign 8\n"                                                                         \
            ".globl " PIM_EMU_TEXT(name) "\n"                                                     \
            ".type " PIM_EMU_TEXT(name) ", @object\n"                                             \
            PIM_EMU_TEXT(name) ":\n"                                                              \
            ".quad .Ldpu_incbin_" PIM_EMU_TEXT(name) "\n"                                         \
            ".quad .Ldpu_incbin_end_" PIM_EMU_TEXT(name) " - .Ldpu_incbin_" PIM_EMU_TEXT(name)    \
            "\n"                                                                                  \
            ".quad .Ldpu_incbin_path_" PIM_EMU_TEXT(name) "\n"                                    \
            ".size " PIM_EMU_TEXT(name) ", 24\n"                                                  \
            ".popsection\n");                                                                     \
    extern struct dpu_incbin_t name;

/* --- Launches --- */
typedef enum _dpu_launch_policy_t {
    DPU_ASYNCHRONOUS,
    DPU_SYNCHRONOUS
} dpu_launch_policy_t;

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy);
/* `done`: the set's ranks have nothing queued or running. */
dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault);
/* Wait for what is queued; returns the first error of it, once. */
dpu_error_t dpu_sync(struct dpu_set_t dpu_set);

/* --- Transfers ---
 * Offset and length are multiples of 8 for MRAM and of 4 for WRAM, within the symbol. */
typedef enum _dpu_xfer_t {
    DPU_XFER_TO_DPU,
    DPU_XFER_FROM_DPU
} dpu_xfer_t;

typedef enum _dpu_xfer_flags_t {
    DPU_XFER_DEFAULT = 0,
    DPU_XFER_NO_RESET = 1 << 0, /* keep the prepared buffers */
    DPU_XFER_ASYNC = 1 << 1,    /* queue it; buffers must last until dpu_sync */
    DPU_XFER_PARALLEL = 1 << 2  /* WRAM only: do not wait for a running launch */
} dpu_xfer_flags_t;

/* The same data to each DPU. */
dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                        const void *src, size_t length);
dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                               uint32_t symbol_offset, const void *src, size_t length);
dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name,
                             uint32_t symbol_offset, const void *src, size_t length,
                             dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, const void *src, size_t length,
                                    dpu_xfer_flags_t flags);
/* From one DPU. */
dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name,
                          uint32_t symbol_offset, void *dst, size_t length);
dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, void *dst, size_t length);
/* A buffer of its own for each DPU; DPUs without one are left out. Preparing a DPU whose buffer no
 * transfer has used yet replaces the buffer and returns DPU_ERR_TRANSFER_ALREADY_SET. */
dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer);
dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                 struct dpu_symbol_t symbol, uint32_t symbol_offset, size_t length,
                                 dpu_xfer_flags_t flags);

/* Scatter and gather: blocks of host memory, one MRAM range of each DPU of a set of ranks. */
typedef enum _dpu_sg_xfer_flags_t {
    DPU_SG_XFER_DEFAULT = 0,
    DPU_SG_XFER_ASYNC = 1 << 1,
    DPU_SG_XFER_DISABLE_LENGTH_CHECK = 1 << 2 /* fewer bytes than `length`: to a DPU, zeros follow */
} dpu_sg_xfer_flags_t;

struct sg_block_info {
    uint8_t *addr;
    uint32_t length;
};
/* Give block `block_index` of the DPU at `dpu_index` of the allocated set; false: no more. */
typedef bool (*get_block_func_t)(struct sg_block_info *out, uint32_t dpu_index,
                                 uint32_t block_index, void *args);
typedef struct get_block_t {
    get_block_func_t f;
    void *args;
    size_t args_size; /* so many bytes of `args` are copied; 0: `args` itself is passed */
} get_block_t;

dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                             dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                    struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags);

/* Queues in WRAM, while DPUs run: dpu_fifo.h. Each DPU with a prepared buffer gets one element of it,
 * or fills it with its whole queue, which is empty then. Done when the call returns, with
 * DPU_XFER_ASYNC too. An input queue that stays full is DPU_ERR_WRAM_FIFO_FULL; DPUs with room have
 * got their element. */
dpu_error_t dpu_fifo_prepare_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                  void *buffer);
dpu_error_t dpu_fifo_push_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                               dpu_xfer_flags_t flags);

/* --- Callbacks --- */
typedef enum _dpu_callback_flags_t {
    DPU_CALLBACK_DEFAULT = 0,          /* for each rank; returns when all have returned */
    DPU_CALLBACK_ASYNC = 1 << 0,       /* queued; what follows on the rank waits for it */
    DPU_CALLBACK_NONBLOCKING = 1 << 1, /* with ASYNC: what follows does not wait */
    DPU_CALLBACK_SINGLE_CALL = 1 << 2, /* once, with the whole set, when all ranks have reached it */
    DPU_CALLBACK_PARALLEL = 1 << 3     /* do not wait for a running launch */
} dpu_callback_flags_t;

/* The callback gets the set (of one rank, unless it is called once), the rank's index in the set,
 * and `args`. */
dpu_error_t dpu_callback(struct dpu_set_t dpu_set,
                         dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *), void *args,
                         dpu_callback_flags_t flags);

#ifdef __cplusplus
}
#endif
#endif
