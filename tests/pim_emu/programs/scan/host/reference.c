#include "reference.h"

void make_input(T *input, size_t elements) {
    uint32_t state = 12345;
    for (size_t i = 0; i < elements; i++) {
        state = state * 1664525u + 1013904223u;
        input[i] = (int32_t)state;
    }
}

void scan_host(T *output, const T *input, size_t elements) {
    T sum = 0;
    for (size_t i = 0; i < elements; i++) {
        sum += input[i];
        output[i] = sum;
    }
}
