/* Starting and polling ranks and DPUs by their handles. */
#ifndef DPU_RUNNER_H
#define DPU_RUNNER_H

#include <stdbool.h>

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As dpu_launch, asynchronous; refused while the rank has anything to do. */
dpu_error_t dpu_boot_dpu(struct dpu_t *dpu);
dpu_error_t dpu_boot_rank(struct dpu_rank_t *rank);
dpu_error_t dpu_status_dpu(struct dpu_t *dpu, bool *done, bool *fault);
dpu_error_t dpu_status_rank(struct dpu_rank_t *rank, bool *done, bool *fault);
dpu_error_t dpu_poll_dpu(struct dpu_t *dpu, bool *dpu_is_running, bool *dpu_is_in_fault);

#ifdef __cplusplus
}
#endif
#endif
