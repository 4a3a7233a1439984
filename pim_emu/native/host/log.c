/* What DPUs printed. */
#include "host.h"

#include <dpu_log_internals.h>
#include <stdarg.h>
#include <string.h>

static dpu_error_t print_to_stream(void *stream, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int written = vfprintf(stream, format, values);
    va_end(values);
    return written < 0 ? DPU_ERR_SYSTEM : DPU_OK;
}

static dpu_error_t read_log(struct dpu_set_t set, dpu_log_print_fct_t print, void *arg,
                            bool named) {
    struct scope scope;
    if (print == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpulog_read_for_dpu_: print is NULL");
    if (print == print_to_stream && arg == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_log_read: stream is NULL");
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
        if (named) status = print(arg, DPU_LOG_FORMAT_HEADER, dpu_get_id(set.dpu));
        for (size_t at = 0; at < bytes && status == DPU_OK; at += strlen(text + at) + 1) {
            status = print(arg, "%s", text + at);
            const bool has_nul = at + strlen(text + at) < bytes; /* which the program printed */
            if (has_nul && status == DPU_OK) status = print(arg, "%c", 0);
        }
        if (status == DPU_OK && truncated) status = DPU_ERR_LOG_BUFFER_TOO_SMALL;
    }
    host_release(&scope);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream) {
    return read_log(set, print_to_stream, stream, true);
}

dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream) {
    return read_log(dpu_set_from_dpu(dpu), print_to_stream, stream, false);
}

dpu_error_t dpulog_read_for_dpu_(struct dpu_t *dpu, dpu_log_print_fct_t print_fct, void *arg) {
    return read_log(dpu_set_from_dpu(dpu), print_fct, arg, false);
}
