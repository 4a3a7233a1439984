/* A ring of cells over many DPUs. After every few sweeps the DPUs' halos are renewed. */
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "ring.h"

static const uint32_t sweeps_of_round[] = {5, HALO, 1, 4};
#define ROUNDS (sizeof(sweeps_of_round) / sizeof(*sweeps_of_round))

static struct dpu_set_t set;

/* Move some cells of every DPU; DPU i's are at `cells + i * stride`. */
static void transfer(dpu_xfer_t direction, uint32_t grid, uint32_t first, cell_t *cells,
                     uint32_t stride, uint32_t n) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set, dpu, i) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &cells[i * stride]));
    }
    DPU_ASSERT(dpu_push_xfer(set, direction, "grids",
                             (grid * MAX_CELLS + first) * (uint32_t)sizeof(cell_t),
                             n * sizeof(cell_t), DPU_XFER_DEFAULT));
}

/* Give each DPU its neighbours' outermost cells. `edges` has room for two halos of each DPU. */
static void exchange_halos(uint32_t grid, uint32_t share, uint32_t nr_of_dpus, cell_t *edges) {
    cell_t *left = edges, *right = edges + nr_of_dpus * HALO;
    transfer(DPU_XFER_FROM_DPU, grid, HALO, left, HALO, HALO);
    transfer(DPU_XFER_FROM_DPU, grid, share, right, HALO, HALO);

    cell_t *halos = malloc(nr_of_dpus * HALO * sizeof(*halos));
    for (uint32_t i = 0; i < nr_of_dpus; i++)
        memcpy(&halos[i * HALO], &right[(i + nr_of_dpus - 1) % nr_of_dpus * HALO],
               HALO * sizeof(*halos));
    transfer(DPU_XFER_TO_DPU, grid, 0, halos, HALO, HALO);
    for (uint32_t i = 0; i < nr_of_dpus; i++)
        memcpy(&halos[i * HALO], &left[(i + 1) % nr_of_dpus * HALO], HALO * sizeof(*halos));
    transfer(DPU_XFER_TO_DPU, grid, HALO + share, halos, HALO, HALO);
    free(halos);
}

int main(int argc, char **argv) {
    uint32_t wanted = NR_DPUS, total = 20000;
    int opt;
    while ((opt = getopt(argc, argv, "d:i:")) != -1) {
        switch (opt) {
        case 'd': wanted = (uint32_t)atoi(optarg); break;
        case 'i': total = (uint32_t)atoi(optarg); break;
        default: return EXIT_FAILURE;
        }
    }

    uint32_t nr_of_dpus;
    struct dpu_set_t dpu;
    DPU_ASSERT(dpu_alloc(wanted, NULL, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_of_dpus));

    uint32_t share = (total + nr_of_dpus - 1) / nr_of_dpus;
    share = (share < HALO ? HALO : share + PAIR - 1) / PAIR * PAIR;
    total = share * nr_of_dpus;
    cell_t *ring = malloc(total * sizeof(*ring));
    cell_t *result = malloc(total * sizeof(*result));
    cell_t *edges = malloc(2 * nr_of_dpus * HALO * sizeof(*edges));
    srand(11);
    for (uint32_t i = 0; i < total; i++)
        ring[i] = (cell_t)rand() % 1000000;

    transfer(DPU_XFER_TO_DPU, 0, HALO, ring, share, share);
    dpu_arguments_t arguments = {.cells = HALO + share + HALO, .source = 0};
    uint64_t cycles = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        exchange_halos(arguments.source, share, nr_of_dpus, edges);
        arguments.sweeps = sweeps_of_round[round];
        DPU_ASSERT(dpu_broadcast_to(set, "DPU_INPUT_ARGUMENTS", 0, &arguments, sizeof(arguments),
                                    DPU_XFER_DEFAULT));
        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
        arguments.source ^= arguments.sweeps & 1;

        uint64_t slowest = 0;
        DPU_FOREACH(set, dpu) {
            uint64_t its;
            DPU_ASSERT(dpu_copy_from(dpu, "DPU_CYCLES", 0, &its, sizeof(its)));
            slowest = its > slowest ? its : slowest;
        }
        cycles += slowest;
        sweep_host(ring, total, arguments.sweeps);
    }
    transfer(DPU_XFER_FROM_DPU, arguments.source, HALO, result, share, share);

    printf("%u cells over %u DPUs\n", total, nr_of_dpus);
    printf("DPU cycles (slowest, all rounds): %lu\n", (unsigned long)cycles);
    const int wrong = memcmp(ring, result, total * sizeof(*ring)) != 0;
    printf("%s\n", wrong ? "ERROR" : "OK");

    free(edges);
    free(result);
    free(ring);
    DPU_ASSERT(dpu_free(set));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
