/* fuzz FIRST COUNT OPERATIONS THREADS PROGRAM1 PROGRAM2: sequences of operations, one for each seed
 * from FIRST on. With THREADS above 1, so many go on at a time, each with sets of its own. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"

static const struct {
    void (*run)(struct fuzz *);
    uint32_t weight;
} operations[] = {
    {do_alloc, 8},  {do_free, 2},    {do_load, 9},     {do_queries, 4}, {do_iterate, 3},
    {do_copy, 24},  {do_prepare, 8}, {do_push, 14},    {do_scatter, 8}, {do_launch, 16},
    {do_sync, 4},   {do_status, 4},  {do_log, 3},      {do_callback, 5}, {do_direct, 3},
};

#define MOST_THREADS 16u

static struct fuzz *running[MOST_THREADS];

/* Sanitizers end by a signal where they are told to: see test_fuzz.py. */
static void say_seeds(int number) {
    for (uint32_t i = 0; i < MOST_THREADS; ++i)
        if (running[i] != NULL)
            fprintf(stderr, "fuzz: signal %d, seed %llu, operation %u\n", number,
                    (unsigned long long)running[i]->seed, running[i]->operation);
    _exit(3);
}

static uint8_t *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *contents = malloc(*bytes);
    if (fread(contents, 1, *bytes, file) != *bytes) exit(2);
    fclose(file);
    return contents;
}

static void run_one(struct fuzz *fuzz) {
    uint32_t total = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
        total += operations[i].weight;
    uint32_t chosen = draw(fuzz, total), which = 0;
    while (chosen >= operations[which].weight) chosen -= operations[which++].weight;
    operations[which].run(fuzz);
}

static void run_seed(struct fuzz *fuzz, uint64_t seed, uint32_t count) {
    fuzz->seed = fuzz->random = seed;
    fuzz->nr_stale = 0; /* the slots may be used by another seed's sets, never the handles */
    for (fuzz->operation = 0; fuzz->operation < count; ++fuzz->operation) run_one(fuzz);
    for (uint32_t i = 0; i < SETS; ++i)
        if (fuzz->sets[i].live) free_set(fuzz, &fuzz->sets[i]);
}

static uint64_t first, seeds;
static uint32_t count, threads;
static char **programs;

static void *work(void *argument) {
    const uint64_t thread = (uintptr_t)argument;
    struct fuzz *fuzz = running[thread] = calloc(1, sizeof *fuzz);
    for (int i = 1; i <= 2; ++i) {
        fuzz->paths[i] = programs[i - 1];
        fuzz->files[i] = read_file(fuzz->paths[i], &fuzz->file_bytes[i]);
    }
    for (uint64_t seed = thread; seed < seeds; seed += threads) {
        alarm(30);
        run_seed(fuzz, first + seed, count);
    }
    for (int i = 1; i <= 2; ++i) free(fuzz->files[i]);
    running[thread] = NULL;
    free(fuzz);
    return NULL;
}

int main(int nr_arguments, char **arguments) {
    if (nr_arguments != 7) {
        fprintf(stderr, "usage: fuzz FIRST COUNT OPERATIONS THREADS PROGRAM1 PROGRAM2\n");
        return 2;
    }
    first = strtoull(arguments[1], NULL, 10);
    seeds = strtoull(arguments[2], NULL, 10);
    count = (uint32_t)strtoul(arguments[3], NULL, 10);
    threads = (uint32_t)strtoul(arguments[4], NULL, 10);
    programs = arguments + 5;
    if (threads < 1 || threads > MOST_THREADS) return 2;
    signal(SIGALRM, say_seeds);
    signal(SIGABRT, say_seeds);
    pthread_t *all = calloc(threads, sizeof *all);
    for (uintptr_t i = 0; i < threads; ++i)
        if (pthread_create(&all[i], NULL, work, (void *)i) != 0) return 2;
    for (uint32_t i = 0; i < threads; ++i) pthread_join(all[i], NULL);
    free(all);
    printf("%llu operations\n", (unsigned long long)seeds * count);
    return 0;
}
