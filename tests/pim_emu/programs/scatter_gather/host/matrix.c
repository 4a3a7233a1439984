#include "matrix.h"

#include <stdlib.h>

struct matrix make_matrix(uint32_t nr_rows) {
    struct matrix matrix = {
        .nr_rows = nr_rows,
        .lengths = malloc(nr_rows * sizeof(*matrix.lengths)),
        .rows = malloc(nr_rows * sizeof(*matrix.rows)),
    };
    srand(23);
    for (uint32_t r = 0; r < nr_rows; r++) {
        /* Mostly short, some long. */
        const uint32_t most = rand() % 16 == 0 ? 400 : 30;
        matrix.lengths[r] = 2 + 2 * ((uint32_t)rand() % most);
        matrix.rows[r] = malloc(matrix.lengths[r] * sizeof(uint32_t));
        for (uint32_t i = 0; i < matrix.lengths[r]; i++)
            matrix.rows[r][i] = (uint32_t)rand();
    }
    return matrix;
}

struct matrix make_empty_copy(const struct matrix *matrix) {
    struct matrix copy = {
        .nr_rows = matrix->nr_rows,
        .lengths = malloc(matrix->nr_rows * sizeof(*copy.lengths)),
        .rows = malloc(matrix->nr_rows * sizeof(*copy.rows)),
    };
    for (uint32_t r = 0; r < copy.nr_rows; r++) {
        copy.lengths[r] = matrix->lengths[r];
        copy.rows[r] = calloc(copy.lengths[r], sizeof(uint32_t));
    }
    return copy;
}

void free_matrix(struct matrix *matrix) {
    for (uint32_t r = 0; r < matrix->nr_rows; r++)
        free(matrix->rows[r]);
    free(matrix->rows);
    free(matrix->lengths);
}

uint64_t scale_matrix(struct matrix *matrix, uint32_t scale) {
    uint64_t sum = 0;
    for (uint32_t r = 0; r < matrix->nr_rows; r++)
        for (uint32_t i = 0; i < matrix->lengths[r]; i++) {
            matrix->rows[r][i] = matrix->rows[r][i] * scale + i;
            sum += matrix->rows[r][i];
        }
    return sum;
}
