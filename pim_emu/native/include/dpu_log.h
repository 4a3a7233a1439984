/* What a DPU printed in its last launch. */
#ifndef DPU_LOG_H
#define DPU_LOG_H

#include <stdio.h>

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DPU_LOG_FORMAT_HEADER ("=== DPU#0x%x ===\n")

/* The text of one DPU, after a line that names it. */
dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);
/* The text alone. */
dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
