/* Vector addition over many DPUs: C = A + B. */
#include <dpu.h>
#include <dpu_log.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/common.h"
#include "../support/params.h"

#ifndef DPU_BINARY
#define DPU_BINARY "./bin/dpu_code"
#endif

static void read_input(T *A, T *B, unsigned int elements) {
    srand(1);
    for (unsigned int i = 0; i < elements; i++) {
        A[i] = (T)(rand() % 100000 - 50000);
        B[i] = (T)(rand() % 100000 - 50000);
    }
}

static void vector_addition_host(T *C, const T *A, const T *B, unsigned int elements) {
    for (unsigned int i = 0; i < elements; i++) {
        C[i] = A[i] + B[i];
    }
}

int main(int argc, char **argv) {
    struct params p = input_params(argc, argv);
    struct dpu_set_t dpu_set, dpu;
    uint32_t nr_of_dpus, i;

    DPU_ASSERT(dpu_alloc(p.nr_dpus, NULL, &dpu_set));
    DPU_ASSERT(dpu_load(dpu_set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(dpu_set, &nr_of_dpus));
    printf("Allocated %u DPU(s)\tNR_TASKLETS %d\tBL %d\n", nr_of_dpus, NR_TASKLETS, BL);

    /* Shares are a multiple of 8 bytes; the last DPU has less, possibly nothing. */
    const unsigned int per_dpu = roundup(divceil(p.elements, nr_of_dpus), 8 / sizeof(T));
    const size_t padded = (size_t)per_dpu * nr_of_dpus;
    T *A = calloc(padded, sizeof(T));
    T *B = calloc(padded, sizeof(T));
    T *C = calloc(padded, sizeof(T));
    T *C2 = calloc(padded, sizeof(T));
    read_input(A, B, p.elements);
    vector_addition_host(C, A, B, p.elements);

    uint64_t slowest = 0;
    for (unsigned int rep = 0; rep < p.repetitions; rep++) {
        dpu_arguments_t input_arguments[nr_of_dpus];
        for (i = 0; i < nr_of_dpus; i++) {
            const size_t first = (size_t)i * per_dpu;
            const size_t left = first < p.elements ? p.elements - first : 0;
            const size_t mine = left < per_dpu ? left : per_dpu;
            input_arguments[i].size = (uint32_t)roundup(mine * sizeof(T), 8);
            input_arguments[i].transfer_size = per_dpu * (uint32_t)sizeof(T);
            input_arguments[i].kernel = kernel_add;
        }

        DPU_FOREACH(dpu_set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, &input_arguments[i]));
        }
        DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0,
                                 sizeof(input_arguments[0]), DPU_XFER_DEFAULT));
        DPU_FOREACH(dpu_set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, A + (size_t)per_dpu * i));
        }
        DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                                 per_dpu * sizeof(T), DPU_XFER_DEFAULT));
        DPU_FOREACH(dpu_set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, B + (size_t)per_dpu * i));
        }
        DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                                 per_dpu * sizeof(T), per_dpu * sizeof(T), DPU_XFER_DEFAULT));

        DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));
#if PRINT
        DPU_FOREACH(dpu_set, dpu) {
            DPU_ASSERT(dpu_log_read(dpu, stdout));
        }
#endif

        DPU_FOREACH(dpu_set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, C2 + (size_t)per_dpu * i));
        }
        DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                                 per_dpu * sizeof(T), per_dpu * sizeof(T), DPU_XFER_DEFAULT));
        DPU_FOREACH(dpu_set, dpu) {
            uint64_t cycles[NR_TASKLETS];
            DPU_ASSERT(dpu_copy_from(dpu, "DPU_CYCLES", 0, cycles, sizeof(cycles)));
            for (unsigned int t = 0; t < NR_TASKLETS; t++) {
                slowest = cycles[t] > slowest ? cycles[t] : slowest;
            }
        }
    }
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);

    const bool status = memcmp(C, C2, p.elements * sizeof(T)) == 0;
    printf(status ? "[OK] Outputs are equal\n" : "[ERROR] Outputs differ!\n");

    free(A);
    free(B);
    free(C);
    free(C2);
    DPU_ASSERT(dpu_free(dpu_set));
    return status ? 0 : -1;
}
