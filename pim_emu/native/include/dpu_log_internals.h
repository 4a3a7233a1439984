/* The text of a DPU by a function of the caller's. */
#ifndef DPU_LOG_INTERNALS_H
#define DPU_LOG_INTERNALS_H

#include <dpu_error.h>
#include <dpu_log.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef dpu_error_t (*dpu_log_print_fct_t)(void *arg, const char *format, ...);

/* Call print_fct(arg, "%s", text) with what the DPU printed, unless that is nothing. */
dpu_error_t dpulog_read_for_dpu_(struct dpu_t *dpu, dpu_log_print_fct_t print_fct, void *arg);

#ifdef __cplusplus
}
#endif
#endif
