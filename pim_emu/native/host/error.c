/* Errors in words. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "host.h"

static const char *describe(uint32_t code) {
    static const char *const texts[] = {
        [DPU_OK] = "no error",
        [DPU_ERR_INTERNAL] = "invalid argument or internal error",
        [DPU_ERR_SYSTEM] = "out of memory or threads",
        [DPU_ERR_DRIVER] = "error of the driver",
        [DPU_ERR_ALLOCATION] = "not enough DPUs to allocate",
        [DPU_ERR_INVALID_DPU_SET] = "the DPU set does not allow this, or was freed",
        [DPU_ERR_INVALID_THREAD_ID] = "no such hardware thread",
        [DPU_ERR_INVALID_NOTIFY_ID] = "no such notify bit",
        [DPU_ERR_INVALID_WRAM_ACCESS] = "WRAM access out of bounds or misaligned",
        [DPU_ERR_INVALID_IRAM_ACCESS] = "IRAM access out of bounds or misaligned",
        [DPU_ERR_INVALID_MRAM_ACCESS] = "MRAM access out of bounds or misaligned",
        [DPU_ERR_INVALID_SYMBOL_ACCESS] = "access beyond the end of the symbol",
        [DPU_ERR_MRAM_BUSY] = "MRAM belongs to a running DPU",
        [DPU_ERR_TRANSFER_ALREADY_SET] = "a transfer buffer was prepared twice",
        [DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER] = "parallel transfers are for WRAM only",
        [DPU_ERR_WRAM_FIFO_FULL] = "WRAM FIFO is full",
        [DPU_ERR_NO_PROGRAM_LOADED] = "no program is loaded",
        [DPU_ERR_DIFFERENT_DPU_PROGRAMS] = "DPUs of the set hold different programs",
        [DPU_ERR_CORRUPTED_MEMORY] = "memory is corrupted",
        [DPU_ERR_DPU_DISABLED] = "DPU is disabled",
        [DPU_ERR_DPU_ALREADY_RUNNING] = "DPU is running already",
        [DPU_ERR_INVALID_MEMORY_TRANSFER] = "no such memory transfer",
        [DPU_ERR_INVALID_LAUNCH_POLICY] = "no such launch policy",
        [DPU_ERR_DPU_FAULT] = "a DPU is in fault",
        [DPU_ERR_ELF_INVALID_FILE] = "not a DPU program",
        [DPU_ERR_ELF_NO_SUCH_FILE] = "program file not found",
        [DPU_ERR_ELF_NO_SUCH_SECTION] = "program section not found",
        [DPU_ERR_TIMEOUT] = "timeout",
        [DPU_ERR_INVALID_PROFILE] = "profile is invalid",
        [DPU_ERR_UNKNOWN_SYMBOL] = "symbol is not defined by the program",
        [DPU_ERR_LOG_FORMAT] = "log cannot be parsed",
        [DPU_ERR_LOG_CONTEXT_MISSING] = "program has no log",
        [DPU_ERR_LOG_BUFFER_TOO_SMALL] = "log was truncated",
        [DPU_ERR_VPD_INVALID_FILE] = "VPD file is invalid",
        [DPU_ERR_VPD_NO_REPAIR] = "no SRAM repairs",
        [DPU_ERR_NO_THREAD_PER_RANK] = "no threads for several ranks",
        [DPU_ERR_INVALID_BUFFER_SIZE] = "buffer has a wrong size",
        [DPU_ERR_NONBLOCKING_SYNC_CALLBACK] = "a synchronous callback cannot be non-blocking",
        [DPU_ERR_TOO_MANY_TASKLETS] = "program has too many tasklets",
        [DPU_ERR_SG_TOO_MANY_BLOCKS] = "too many blocks in a scattered transfer",
        [DPU_ERR_SG_LENGTH_MISMATCH] = "blocks of a scattered transfer do not add up to its length",
        [DPU_ERR_SG_NOT_ACTIVATED] = "scattered transfers were not enabled by the profile",
        [DPU_ERR_SG_NOT_MRAM_SYMBOL] = "scattered transfers are for MRAM only",
    };
    return code < sizeof texts / sizeof texts[0] ? texts[code] : "unknown error";
}

char *dpu_error_to_string(dpu_error_t status) {
    const uint32_t code = (uint32_t)status;
    if (!(code & (uint32_t)DPU_ERR_ASYNC_JOBS)) return strdup(describe(code));
    const uint32_t kind = (code & ~(uint32_t)DPU_ERR_ASYNC_JOBS) >> DPU_ERROR_ASYNC_JOB_TYPE_SHIFT;
    const uint32_t low = code & ((1u << DPU_ERROR_ASYNC_JOB_TYPE_SHIFT) - 1);
    char *text;
    if (asprintf(&text, "an asynchronous %s failed before: %s", host_job_name(kind),
                 describe(low)) < 0)
        return NULL;
    return text;
}
