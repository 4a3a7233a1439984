/* Inclusive prefix sums over many DPUs (scan, scan, add). */
#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "reference.h"

static void send_arguments(struct dpu_set_t set, dpu_arguments_t *arguments) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0, sizeof(*arguments),
                             DPU_XFER_DEFAULT));
}

static void get_results(struct dpu_set_t set, dpu_results_t (*results)[NR_TASKLETS]) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, results[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "DPU_RESULTS", 0, sizeof(*results),
                             DPU_XFER_DEFAULT));
}

int main(int argc, char **argv) {
    unsigned int wanted = NR_DPUS;
    size_t elements = 40000;
    int opt;
    while ((opt = getopt(argc, argv, "d:i:")) != -1) {
        if (opt == 'd')
            wanted = (unsigned int)atoi(optarg);
        else if (opt == 'i')
            elements = (size_t)atol(optarg);
        else
            return 2;
    }

    struct dpu_set_t dpu_set, dpu;
    uint32_t nr_of_dpus, i;
    DPU_ASSERT(dpu_alloc(wanted, NULL, &dpu_set));
    DPU_ASSERT(dpu_load(dpu_set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(dpu_set, &nr_of_dpus));

    /* Rounded up so that all tasklets have as many blocks; zeros fill the end. */
    const size_t round = (size_t)NR_TASKLETS * REGS;
    const size_t per_dpu = ((elements + nr_of_dpus - 1) / nr_of_dpus + round - 1) / round * round;
    T *input = calloc(per_dpu * nr_of_dpus, sizeof(T));
    T *output = calloc(per_dpu * nr_of_dpus, sizeof(T));
    T *expected = calloc(per_dpu * nr_of_dpus, sizeof(T));
    make_input(input, elements);
    scan_host(expected, input, elements);

    dpu_arguments_t *arguments = calloc(nr_of_dpus, sizeof(*arguments));
    dpu_results_t(*results)[NR_TASKLETS] = calloc(nr_of_dpus, sizeof(*results));
    for (i = 0; i < nr_of_dpus; i++)
        arguments[i].size = (uint32_t)(per_dpu * sizeof(T));

    /* Scan in each DPU. */
    send_arguments(dpu_set, arguments);
    DPU_FOREACH(dpu_set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, input + per_dpu * i));
    }
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                             per_dpu * sizeof(T), DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));

    /* Scan of their totals, here. */
    get_results(dpu_set, results);
    T base = 0;
    for (i = 0; i < nr_of_dpus; i++) {
        arguments[i].kernel = kernel_add;
        arguments[i].base = base;
        base += results[i][0].total;
    }

    /* Add. */
    send_arguments(dpu_set, arguments);
    DPU_ASSERT(dpu_launch(dpu_set, DPU_SYNCHRONOUS));
    get_results(dpu_set, results);
    DPU_FOREACH(dpu_set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, output + per_dpu * i));
    }
    DPU_ASSERT(dpu_push_xfer(dpu_set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                             per_dpu * sizeof(T), DPU_XFER_DEFAULT));

    uint64_t slowest = 0;
    for (i = 0; i < nr_of_dpus; i++)
        for (unsigned int t = 0; t < NR_TASKLETS; t++)
            if (results[i][t].cycles > slowest)
                slowest = results[i][t].cycles;
    printf("NR_DPUS %u NR_TASKLETS %d elements %zu\n", nr_of_dpus, NR_TASKLETS, elements);
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);

    int differ = 0;
    for (size_t j = 0; j < elements; j++) {
        if (output[j] != expected[j] && differ++ < 3)
            printf("%zu: %ld, expected %ld\n", j, (long)output[j], (long)expected[j]);
    }
    printf("%s\n", differ ? "ERROR" : "OK");

    free(results);
    free(arguments);
    free(expected);
    free(output);
    free(input);
    DPU_ASSERT(dpu_free(dpu_set));
    return differ != 0;
}
