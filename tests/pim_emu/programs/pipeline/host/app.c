/* Checksums of blocks by many DPUs, twice over: the second time with other blocks. */
#include <dpu.h>
#include <dpu_log.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common.h"
#include "fletcher.h"

#ifndef DPU_BINARY
#define DPU_BINARY "bin/dpu_code"
#endif

DPU_INCBIN(dpu_binary, DPU_BINARY)

int main(int argc, char **argv) {
    uint32_t wanted = NR_DPUS, total = 300;
    int opt;
    while ((opt = getopt(argc, argv, "d:i:")) != -1) {
        if (opt == 'd')
            wanted = (uint32_t)atoi(optarg);
        else if (opt == 'i')
            total = (uint32_t)atoi(optarg);
        else
            return EXIT_FAILURE;
    }

    struct dpu_set_t set, dpu;
    uint32_t nr_dpus, i;
    DPU_ASSERT(dpu_alloc(wanted, NULL, &set));
    DPU_ASSERT(dpu_load_from_incbin(set, &dpu_binary, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));

    const uint32_t most = (total + nr_dpus - 1) / nr_dpus;
    uint8_t(*blocks)[BLOCK_SIZE] = malloc((size_t)nr_dpus * most * BLOCK_SIZE);
    checksum_t *sums = calloc((size_t)nr_dpus * most, sizeof(*sums));
    uint32_t *done = malloc(nr_dpus * NR_TASKLETS * sizeof(*done));
    uint64_t slowest = 0;
    uint32_t wrong = 0;
    srand(31);

    for (int launch = 0; launch < 2; launch++) {
        for (uint32_t block = 0; block < nr_dpus * most; block++)
            for (int byte = 0; byte < BLOCK_SIZE; byte++)
                blocks[block][byte] = (uint8_t)rand();
        dpu_arguments_t *arguments = calloc(nr_dpus, sizeof(*arguments));
        DPU_FOREACH(set, dpu, i) {
            arguments[i].nr_blocks = total / nr_dpus + (i < total % nr_dpus);
            arguments[i].output = most * BLOCK_SIZE;
            DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[i]));
        }
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0,
                                 sizeof(*arguments), DPU_XFER_DEFAULT));
        DPU_FOREACH(set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, blocks[i * most]));
        }
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0,
                                 most * BLOCK_SIZE, DPU_XFER_DEFAULT));

        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

        DPU_FOREACH(set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, &sums[i * most]));
        }
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                                 most * BLOCK_SIZE, most * sizeof(*sums), DPU_XFER_DEFAULT));
        DPU_FOREACH(set, dpu, i) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, &done[i * NR_TASKLETS]));
        }
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "DPU_BLOCKS", 0,
                                 NR_TASKLETS * sizeof(*done), DPU_XFER_DEFAULT));
        DPU_FOREACH(set, dpu, i) {
            uint64_t cycles;
            DPU_ASSERT(dpu_copy_from(dpu, "DPU_CYCLES", 0, &cycles, sizeof(cycles)));
            slowest = cycles > slowest ? cycles : slowest;
            if (i == nr_dpus - 1)
                DPU_ASSERT(dpu_log_read(dpu, stdout));

            uint32_t of_all = 0;
            for (uint32_t t = 0; t < NR_TASKLETS; t++)
                of_all += done[i * NR_TASKLETS + t];
            wrong += of_all != arguments[i].nr_blocks;
            for (uint32_t b = 0; b < arguments[i].nr_blocks; b++) {
                const checksum_t expected = checksum_host(blocks[i * most + b]);
                wrong += sums[i * most + b].a != expected.a || sums[i * most + b].b != expected.b;
            }
        }
        free(arguments);
    }

    printf("%u blocks, %u DPUs\n", total, nr_dpus);
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);
    printf("%s\n", wrong ? "ERROR" : "OK");

    free(done);
    free(sums);
    free(blocks);
    DPU_ASSERT(dpu_free(set));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
