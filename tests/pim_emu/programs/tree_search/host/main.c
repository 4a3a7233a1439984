/* The same tree in every DPU; each answers queries of its own. */
#include <dpu.h>
#include <dpu_log.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

/* Binary search in the sorted entries. */
static uint32_t search_host(const tree_t *tree, uint32_t key) {
    uint32_t low = 0, high = tree->nr_entries;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (tree->entries[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tree->nr_entries && tree->entries[low].key == key ? tree->entries[low].tag
                                                                   : NOT_FOUND;
}

int main(int argc, char **argv) {
    uint32_t nr_dpus = NR_DPUS, total = 6000;
    static const struct option options[] = {
        {"dpus", required_argument, NULL, 'd'},
        {"queries", required_argument, NULL, 'i'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "d:i:", options, NULL)) != -1) {
        if (option == 'd')
            nr_dpus = (uint32_t)atoi(optarg);
        else if (option == 'i')
            total = (uint32_t)atoi(optarg);
        else
            return EXIT_FAILURE;
    }

    srand(3);
    tree_t *tree = build_tree(3001);
    /* The last DPUs have one query less than the first. */
    const uint32_t most = (total + nr_dpus - 1) / nr_dpus;
    const size_t bytes = (most * sizeof(uint32_t) + 7) / 8 * 8;
    const size_t stride = bytes / sizeof(uint32_t);
    uint32_t *queries = calloc(nr_dpus, bytes);
    uint32_t *answers = calloc(nr_dpus, bytes);
    tree_arguments_t *arguments = calloc(nr_dpus, sizeof(*arguments));
    for (uint32_t d = 0; d < nr_dpus; d++) {
        arguments[d].root = tree->root;
        arguments[d].nr_queries = total / nr_dpus + (d < total % nr_dpus);
        for (uint32_t q = 0; q < arguments[d].nr_queries; q++)
            queries[d * stride + q] = (uint32_t)rand() % 16000;
    }

    struct dpu_set_t set, dpu;
    struct dpu_program_t *program;
    struct dpu_symbol_t answers_symbol;
    uint32_t d;
    DPU_ASSERT(dpu_alloc(nr_dpus, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, &program));
    DPU_ASSERT(dpu_get_symbol(program, "answers", &answers_symbol));

    DPU_ASSERT(dpu_copy_to(set, "nodes", 0, tree->nodes, tree->nr_nodes * sizeof(node_t)));
    DPU_ASSERT(dpu_broadcast_to(set, "entries", 0, tree->entries,
                                (tree->nr_entries * sizeof(entry_t) + 7) / 8 * 8,
                                DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, d) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[d]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "ARGUMENTS", 0, sizeof(*arguments),
                             DPU_XFER_DEFAULT));
    DPU_FOREACH(set, dpu, d) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &queries[d * stride]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "queries", 0, bytes, DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

    DPU_FOREACH(set, dpu, d) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &answers[d * stride]));
    }
    DPU_ASSERT(dpu_push_xfer_symbol(set, DPU_XFER_FROM_DPU, answers_symbol, 0, bytes,
                                    DPU_XFER_DEFAULT));
    uint64_t slowest = 0;
    DPU_FOREACH(set, dpu, d) {
        uint64_t cycles;
        DPU_ASSERT(dpu_copy_from(dpu, "CYCLES", 0, &cycles, sizeof(cycles)));
        slowest = cycles > slowest ? cycles : slowest;
        if (d == 0)
            DPU_ASSERT(dpu_log_read(dpu, stdout));
    }

    uint32_t wrong = 0, found = 0;
    for (d = 0; d < nr_dpus; d++)
        for (uint32_t q = 0; q < arguments[d].nr_queries; q++) {
            const uint32_t expected = search_host(tree, queries[d * stride + q]);
            wrong += answers[d * stride + q] != expected;
            found += expected != NOT_FOUND;
        }
    printf("%u of %u keys in the tree\n", found, total);
    printf("DPU cycles (slowest): %llu\n", (unsigned long long)slowest);
    printf("%s: %u wrong answers\n", wrong ? "ERROR" : "OK", wrong);

    DPU_ASSERT(dpu_free(set));
    free(arguments);
    free(answers);
    free(queries);
    free(tree);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
