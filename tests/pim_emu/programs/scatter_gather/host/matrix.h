/* A ragged matrix, each row in memory of its own. */
#ifndef MATRIX_H
#define MATRIX_H

#include <stdint.h>

struct matrix {
    uint32_t nr_rows;
    uint32_t *lengths;
    uint32_t **rows;
};

struct matrix make_matrix(uint32_t nr_rows);
struct matrix make_empty_copy(const struct matrix *matrix); /* the same lengths */
void free_matrix(struct matrix *matrix);

/* What the DPUs do to the rows; returns the sum of all elements. */
uint64_t scale_matrix(struct matrix *matrix, uint32_t scale);

#endif
