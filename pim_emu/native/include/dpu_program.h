/* Loaded programs. */
#ifndef DPU_PROGRAM_H
#define DPU_PROGRAM_H

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lives as long as a DPU holds the program. */
struct dpu_program_t {
    uint8_t nr_threads_enabled;
    char *program_path; /* NULL: loaded from memory */
};

/* NULL: the DPU holds none. */
struct dpu_program_t *dpu_get_program(struct dpu_t *dpu);
/* The program of all DPUs of the set. */
dpu_error_t dpu_get_common_program(struct dpu_set_t *dpu_set, struct dpu_program_t **program);

#ifdef __cplusplus
}
#endif
#endif
