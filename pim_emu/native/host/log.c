/* What DPUs printed. */
#include "host.h"

static dpu_error_t read_log(struct dpu_set_t set, FILE *stream, bool named) {
    struct scope scope;
    if (stream == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpu_log_read: stream is NULL");
    if (set.kind == DPU_SET_RANKS)
        return host_refuse(DPU_ERR_INVALID_DPU_SET, "dpu_log_read: the set is not one DPU");
    dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    struct rank *rank = scope.ranks[0];
    host_acquire(&scope, HOST_KEEP_ERROR); /* the log explains a fault: it must stay readable */
    if (rank->members[scope.only].program == NULL) {
        status = DPU_ERR_LOG_CONTEXT_MISSING;
    } else {
        size_t bytes;
        bool truncated;
        const char *text = emu_dpu_log(rank->members[scope.only].engine, &bytes, &truncated);
        if (named) fprintf(stream, DPU_LOG_FORMAT_HEADER, dpu_get_id(set.dpu));
        fwrite(text, 1, bytes, stream);
        if (truncated) status = DPU_ERR_LOG_BUFFER_TOO_SMALL;
    }
    host_release(&scope);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream) {
    return read_log(set, stream, true);
}

dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream) {
    return read_log(dpu_set_from_dpu(dpu), stream, false);
}
