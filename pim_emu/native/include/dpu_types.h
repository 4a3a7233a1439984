/* Types of the host interface. */
#ifndef DPU_TYPES_H
#define DPU_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dpu_target.h>

#define DPU_MAX_NR_CIS 8
#define DPU_MAX_NR_DPUS_PER_CI 8
#define DPU_MAX_NR_GROUPS 8
#define DPU_BOOT_THREAD 0

typedef uint16_t dpu_rank_id_t;
typedef uint32_t dpu_id_t;
typedef uint8_t dpu_slice_id_t;
typedef uint8_t dpu_member_id_t;
typedef uint8_t dpu_group_id_t;
typedef uint8_t dpu_thread_t;
typedef uint8_t dpu_notify_bit_id_t;
typedef uint8_t dpu_bitfield_t;
typedef uint8_t dpu_ci_bitfield_t;
typedef uint16_t iram_addr_t;
typedef uint32_t wram_addr_t; /* in words */
typedef uint32_t mram_addr_t;
typedef mram_addr_t dpu_mem_max_addr_t;
typedef uint16_t iram_size_t;
typedef uint32_t wram_size_t; /* in words */
typedef uint32_t mram_size_t;
typedef mram_size_t dpu_mem_max_size_t;
typedef uint64_t dpuinstruction_t;
typedef uint32_t dpuword_t;

#define DPU_API_DEPRECATED __attribute__((deprecated))

/* A symbol of every program: the MRAM from the end of its variables to the end. */
#define DPU_MRAM_HEAP_POINTER_NAME "__sys_used_mram_end"

/* Handles: never to be dereferenced. */
struct dpu_rank_t;
struct dpu_t;
struct dpu_program_t;

typedef enum _dpu_set_kind_t {
    DPU_SET_RANKS,
    DPU_SET_DPU
} dpu_set_kind_t;

struct dpu_set_t {
    dpu_set_kind_t kind;
    union {
        struct {
            uint32_t nr_ranks;
            struct dpu_rank_t **ranks;
        } list;
        struct dpu_t *dpu;
    };
};

/* MRAM is at 0x08000000, IRAM at 0x80000000, WRAM at 0. */
struct dpu_symbol_t {
    dpu_mem_max_addr_t address;
    dpu_mem_max_size_t size;
};

/* A program within the host program: see DPU_INCBIN. */
struct dpu_incbin_t {
    uint8_t *buffer;
    size_t size;
    const char *path;
};

#endif
