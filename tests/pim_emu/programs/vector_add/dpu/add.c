#include "add.h"

void vector_addition(T *b, const T *a, unsigned int elements) {
    for (unsigned int i = 0; i < elements; i++) {
        b[i] += a[i];
    }
}
