/* Rows of different lengths, scattered over the DPUs of several ranks and gathered again.
 *
 * Row r goes to DPU r modulo their number. All is queued; ranks do not wait for each other. */
#include <dpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "matrix.h"

#define DPU_BINARY "./bin/dpu_code"

/* What the rows of a DPU look like to the transfers. */
struct scatter {
    const struct matrix *matrix;
    uint32_t nr_dpus;
};

static bool get_row(struct sg_block_info *out, uint32_t dpu_index, uint32_t block_index,
                    void *args) {
    const struct scatter *scatter = args;
    const uint32_t r = dpu_index + block_index * scatter->nr_dpus;
    if (r >= scatter->matrix->nr_rows)
        return false;
    out->addr = (uint8_t *)scatter->matrix->rows[r];
    out->length = scatter->matrix->lengths[r] * (uint32_t)sizeof(uint32_t);
    return true;
}

struct results {
    uint64_t (*sums)[MAX_ROWS]; /* of each DPU */
    uint64_t *cycles;
    arguments_t *arguments;
    uint32_t *first_dpu, *rank_rows; /* of each rank */
    uint64_t *total;                 /* by each rank */
    atomic_uint finished;
};

/* Called for each rank when its results have arrived. */
static dpu_error_t add_up(struct dpu_set_t rank, uint32_t rank_index, void *args) {
    struct results *results = args;
    uint32_t nr_dpus;
    DPU_ASSERT(dpu_get_nr_dpus(rank, &nr_dpus));
    for (uint32_t i = 0; i < nr_dpus; i++) {
        const uint32_t d = results->first_dpu[rank_index] + i;
        for (uint32_t r = 0; r < results->arguments[d].nr_rows; r++)
            results->total[rank_index] += results->sums[d][r];
    }
    atomic_fetch_add(&results->finished, 1);
    return DPU_OK;
}

/* Called once, after all ranks. */
static dpu_error_t report(struct dpu_set_t set, uint32_t unused, void *args) {
    struct results *results = args;
    uint32_t nr_ranks;
    (void)unused;
    DPU_ASSERT(dpu_get_nr_ranks(set, &nr_ranks));
    printf("%u of %u ranks have finished\n", atomic_load(&results->finished), nr_ranks);
    return DPU_OK;
}

int main(int argc, char **argv) {
    uint32_t wanted = NR_DPUS, nr_rows = 900;
    int opt;
    while ((opt = getopt(argc, argv, "d:i:")) != -1) {
        if (opt == 'd')
            wanted = (uint32_t)atoi(optarg);
        else if (opt == 'i')
            nr_rows = (uint32_t)atoi(optarg);
        else
            return EXIT_FAILURE;
    }
    const uint32_t scale = 2654435761u;
    struct matrix input = make_matrix(nr_rows);
    struct matrix output = make_empty_copy(&input);

    struct dpu_set_t set, rank, dpu;
    uint32_t nr_dpus, nr_ranks, d, k;
    char profile[80];
    snprintf(profile, sizeof(profile), "sgXferEnable=true,sgXferMaxBlocksPerDpu=%u",
             nr_rows / wanted + 1);
    DPU_ASSERT(dpu_alloc(wanted, profile, &set));
    DPU_ASSERT(dpu_load(set, DPU_BINARY, NULL));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));
    DPU_ASSERT(dpu_get_nr_ranks(set, &nr_ranks));

    if (nr_rows / nr_dpus >= MAX_ROWS) {
        fprintf(stderr, "at most %d rows in a DPU\n", MAX_ROWS);
        return EXIT_FAILURE;
    }

    /* Where each row will be, and how much each DPU gets. */
    row_t(*rows)[MAX_ROWS] = calloc(nr_dpus, sizeof(*rows));
    struct results results = {
        .sums = calloc(nr_dpus, sizeof(*results.sums)),
        .cycles = calloc(nr_dpus, sizeof(*results.cycles)),
        .arguments = calloc(nr_dpus, sizeof(*results.arguments)),
        .first_dpu = calloc(nr_ranks, sizeof(*results.first_dpu)),
        .rank_rows = calloc(nr_ranks, sizeof(*results.rank_rows)),
        .total = calloc(nr_ranks, sizeof(*results.total)),
    };
    uint32_t *filled = calloc(nr_dpus, sizeof(*filled));
    uint32_t most = 0, least = UINT32_MAX;
    for (uint32_t r = 0; r < nr_rows; r++) {
        arguments_t *arguments = &results.arguments[r % nr_dpus];
        uint32_t *end = &filled[r % nr_dpus];
        rows[r % nr_dpus][arguments->nr_rows++] = (row_t){*end, input.lengths[r]};
        *end += input.lengths[r];
    }
    for (d = 0; d < nr_dpus; d++) {
        results.arguments[d].scale = scale;
        most = filled[d] > most ? filled[d] : most;
        least = filled[d] < least ? filled[d] : least;
    }
    printf("%u rows, %u DPUs in %u ranks, %u to %u elements in a DPU\n", nr_rows, nr_dpus, nr_ranks,
           least, most);

    struct scatter to = {&input, nr_dpus}, from = {&output, nr_dpus};
    get_block_t get_input = {.f = get_row, .args = &to, .args_size = sizeof(to)};
    get_block_t get_output = {.f = get_row, .args = &from, .args_size = sizeof(from)};
    const dpu_sg_xfer_flags_t sg_flags = DPU_SG_XFER_ASYNC | DPU_SG_XFER_DISABLE_LENGTH_CHECK;

    DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "elements", 0, most * sizeof(uint32_t),
                                &get_input, sg_flags));
    /* A rank is sent as many rows as its fullest DPU has. */
    uint32_t first_dpu = 0;
    DPU_RANK_FOREACH(set, rank, k) {
        uint32_t rank_rows = 1;
        results.first_dpu[k] = first_dpu;
        DPU_FOREACH(rank, dpu) {
            if (results.arguments[first_dpu].nr_rows > rank_rows)
                rank_rows = results.arguments[first_dpu].nr_rows;
            DPU_ASSERT(dpu_prepare_xfer(dpu, rows[first_dpu++]));
        }
        results.rank_rows[k] = rank_rows;
        DPU_ASSERT(dpu_push_xfer(rank, DPU_XFER_TO_DPU, "rows", 0, rank_rows * sizeof(row_t),
                                 DPU_XFER_ASYNC));
    }
    DPU_FOREACH(set, dpu, d) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &results.arguments[d]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "arguments", 0, sizeof(arguments_t),
                             DPU_XFER_ASYNC));

    DPU_ASSERT(dpu_launch(set, DPU_ASYNCHRONOUS));

    DPU_RANK_FOREACH(set, rank, k) {
        DPU_FOREACH(rank, dpu, d) {
            DPU_ASSERT(dpu_prepare_xfer(dpu, results.sums[results.first_dpu[k] + d]));
        }
        DPU_ASSERT(dpu_push_xfer(rank, DPU_XFER_FROM_DPU, "sums", 0,
                                 results.rank_rows[k] * sizeof(uint64_t), DPU_XFER_ASYNC));
    }
    DPU_ASSERT(dpu_callback(set, add_up, &results, DPU_CALLBACK_ASYNC));
    DPU_FOREACH(set, dpu, d) {
        DPU_ASSERT(dpu_prepare_xfer(dpu, &results.cycles[d]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "cycles", 0, sizeof(uint64_t),
                             DPU_XFER_ASYNC));
    DPU_ASSERT(dpu_push_sg_xfer(set, DPU_XFER_FROM_DPU, "elements", 0, most * sizeof(uint32_t),
                                &get_output, sg_flags));
    DPU_ASSERT(dpu_callback(set, report, &results, DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL));
    DPU_ASSERT(dpu_sync(set));

    uint64_t total = 0, slowest = 0;
    for (k = 0; k < nr_ranks; k++)
        total += results.total[k];
    for (d = 0; d < nr_dpus; d++)
        slowest = results.cycles[d] > slowest ? results.cycles[d] : slowest;
    printf("DPU cycles (slowest): %lu\n", (unsigned long)slowest);

    uint32_t wrong = total != scale_matrix(&input, scale);
    for (uint32_t r = 0; r < nr_rows; r++)
        wrong += memcmp(input.rows[r], output.rows[r], input.lengths[r] * sizeof(uint32_t)) != 0;
    wrong += atomic_load(&results.finished) != nr_ranks;
    printf("%s\n", wrong ? "ERROR" : "OK");

    DPU_ASSERT(dpu_free(set));
    free(filled);
    free(results.total);
    free(results.rank_rows);
    free(results.first_dpu);
    free(results.arguments);
    free(results.cycles);
    free(results.sums);
    free(rows);
    free_matrix(&output);
    free_matrix(&input);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
