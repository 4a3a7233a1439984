/* Selection over many DPUs, each of which returns as much as it found. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "select.h"

#define DPU_BINARY "./bin/dpu_code"

int main(int argc, char **argv) {
    unsigned int wanted = NR_DPUS;
    size_t count = 50000;
    for (int a = 1; a + 1 < argc; a += 2) {
        if (strcmp(argv[a], "-d") == 0)
            wanted = (unsigned int)strtoul(argv[a + 1], NULL, 10);
        if (strcmp(argv[a], "-i") == 0)
            count = strtoul(argv[a + 1], NULL, 10);
    }
    const int32_t threshold = 250;

    struct dpu_set_t set, dpu;
    uint32_t nr_of_dpus, i;
    DPU_ASSERT(dpu_alloc(wanted, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_of_dpus));

    const size_t per_dpu = (count + nr_of_dpus - 1) / nr_of_dpus;
    record_t *input = calloc(per_dpu * nr_of_dpus, sizeof(*input));
    record_t *output = calloc(per_dpu * nr_of_dpus, sizeof(*output));
    record_t *expected = calloc(count, sizeof(*expected));
    make_records(input, count);
    const size_t expected_count = select_host(expected, input, count, threshold);

    dpu_arguments_t *arguments = calloc(nr_of_dpus, sizeof(*arguments));
    DPU_FOREACH(set, dpu, i) {
        const size_t first = i * per_dpu;
        const size_t left = first < count ? count - first : 0;
        arguments[i].records = (uint32_t)(left < per_dpu ? left : per_dpu);
        arguments[i].output = (uint32_t)(per_dpu * sizeof(record_t));
        arguments[i].threshold = threshold;
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0, sizeof(*arguments),
                             DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &input[i * per_dpu]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                             per_dpu * sizeof(*input), DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

    size_t selected = 0, most = 0, least = per_dpu;
    uint64_t slowest = 0;
    DPU_FOREACH(set, dpu) {
        dpu_results_t results;
        DPU_ASSERT(dpu_copy_from(dpu, "DPU_RESULTS", 0, &results, sizeof(results)));
        if (results.selected != 0 && selected + results.selected <= per_dpu * nr_of_dpus)
            DPU_ASSERT(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME,
                                     (uint32_t)(per_dpu * sizeof(*input)), &output[selected],
                                     results.selected * sizeof(*output)));
        selected += results.selected;
        most = results.selected > most ? results.selected : most;
        least = results.selected < least ? results.selected : least;
        slowest = results.cycles > slowest ? results.cycles : slowest;
    }

    printf("%zu of %zu records selected, %zu to %zu in a DPU\n", selected, count, least, most);
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);
    const bool correct = selected == expected_count &&
                         memcmp(output, expected, selected * sizeof(*output)) == 0;
    printf("%s\n", correct ? "OK" : "ERROR");

    free(arguments);
    free(expected);
    free(output);
    free(input);
    DPU_ASSERT(dpu_free(set));
    return correct ? 0 : 1;
}
