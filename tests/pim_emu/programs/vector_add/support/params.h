/* The command line of the host program. */
#ifndef PARAMS_H
#define PARAMS_H

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

struct params {
    unsigned int nr_dpus;
    unsigned int elements; /* of each vector */
    unsigned int repetitions;
};

static inline struct params input_params(int argc, char **argv) {
    struct params p = {.nr_dpus = NR_DPUS, .elements = 50021, .repetitions = 1};
    int opt;
    while ((opt = getopt(argc, argv, "hd:i:e:")) != -1) {
        switch (opt) {
        case 'd': p.nr_dpus = (unsigned int)atoi(optarg); break;
        case 'i': p.elements = (unsigned int)atoi(optarg); break;
        case 'e': p.repetitions = (unsigned int)atoi(optarg); break;
        default:
            fprintf(stderr, "usage: %s [-d DPUs] [-i elements] [-e repetitions]\n", argv[0]);
            exit(opt == 'h' ? 0 : 2);
        }
    }
    return p;
}

#endif
