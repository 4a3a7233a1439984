/* Runs one DPU program: run_dpu PROGRAM {to SYMBOL FILE | launch | from SYMBOL FILE BYTES}... */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void to(struct dpu_set_t set, const char *symbol, const char *path) {
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    DPU_ASSERT(dpu_broadcast_to(set, symbol, 0, bytes, count, DPU_XFER_DEFAULT));
}

static void from(struct dpu_set_t dpu, const char *symbol, const char *path, size_t count) {
    char *bytes = malloc(count);
    DPU_ASSERT(dpu_copy_from(dpu, symbol, 0, bytes, count));
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, count, file);
    fclose(file);
    free(bytes);
}

int main(int argc, char **argv) {
    struct dpu_set_t set, dpu;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, argv[1], NULL));
    int status = 0;
    DPU_FOREACH (set, dpu) {
        for (int i = 2; i < argc; ++i) {
            if (strcmp(argv[i], "to") == 0) {
                to(set, argv[i + 1], argv[i + 2]);
                i += 2;
            } else if (strcmp(argv[i], "from") == 0) {
                from(dpu, argv[i + 1], argv[i + 2], strtoul(argv[i + 3], NULL, 10));
                i += 3;
            } else if (dpu_launch(set, DPU_SYNCHRONOUS) != DPU_OK) {
                status = 3;
                break;
            }
        }
        DPU_ASSERT(dpu_log_read(dpu, stdout));
    }
    DPU_ASSERT(dpu_free(set));
    return status;
}
