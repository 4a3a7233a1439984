/* Sum of random 64-bit integers by many DPUs. */
#include <dpu.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/common.h"

int main(int argc, char **argv) {
    unsigned int wanted = NR_DPUS, elements = 40013;
    int opt;
    while ((opt = getopt(argc, argv, "d:i:")) != -1) {
        if (opt == 'd') wanted = (unsigned int)atoi(optarg);
        else if (opt == 'i') elements = (unsigned int)atoi(optarg);
        else return 2;
    }

    struct dpu_set_t set, dpu;
    uint32_t nr_of_dpus, i;
    DPU_ASSERT(dpu_alloc(wanted, "backend=simulator", &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_of_dpus));

    const unsigned int per_dpu = (elements + nr_of_dpus - 1) / nr_of_dpus;
    T *input = calloc((size_t)per_dpu * nr_of_dpus, sizeof(T)); /* zeros at the end add nothing */
    T expected = 0;
    uint64_t state = 88172645463325252u;
    for (unsigned int j = 0; j < elements; j++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        input[j] = state;
        expected += state;
    }

    const dpu_arguments_t arguments = {.size = per_dpu * (uint32_t)sizeof(T), .padding = 0};
    DPU_ASSERT(dpu_copy_to(set, "DPU_INPUT_ARGUMENTS", 0, &arguments, sizeof(arguments)));
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &input[(size_t)i * per_dpu]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                             per_dpu * sizeof(T), DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

    dpu_results_t *results = malloc(nr_of_dpus * NR_TASKLETS * sizeof(*results));
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &results[i * NR_TASKLETS]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "DPU_RESULTS", 0,
                             NR_TASKLETS * sizeof(*results), DPU_XFER_DEFAULT));

    T total = 0;
    uint64_t slowest = 0;
    for (i = 0; i < nr_of_dpus; i++) {
        total += results[i * NR_TASKLETS].total;
        for (unsigned int t = 0; t < NR_TASKLETS; t++)
            if (results[i * NR_TASKLETS + t].cycles > slowest)
                slowest = results[i * NR_TASKLETS + t].cycles;
    }
    printf("%u elements, %u DPUs, %d tasklets\n", elements, nr_of_dpus, NR_TASKLETS);
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);
    printf("sum %lu, expected %lu: %s\n", (unsigned long)total, (unsigned long)expected,
           total == expected ? "OK" : "ERROR");

    free(results);
    free(input);
    DPU_ASSERT(dpu_free(set));
    return total == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
