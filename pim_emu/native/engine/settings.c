/* Settings from the environment, and complaints on stderr. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_WORKERS 256u

static struct emu_settings settings;

/* A text for each thread. Not a thread-local array: a library that is loaded at run time has little
 * room for those. */
#define COMPLAINT_BYTES 1024u
static pthread_key_t complaints;

static void make_key(void) {
    pthread_key_create(&complaints, free);
}

/* The calling thread's text, or NULL where there is no memory. */
static char *own_complaint(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    char *text = pthread_getspecific(complaints);
    if (text == NULL && (text = calloc(1, COMPLAINT_BYTES)) != NULL)
        pthread_setspecific(complaints, text);
    return text;
}

void emu_complain(const char *format, ...) {
    char *complaint = own_complaint();
    if (complaint == NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint, COMPLAINT_BYTES, format, arguments);
    va_end(arguments);
    if (emu_settings()->quiet) return;
    fprintf(stderr, "pim_emu: %s\n", complaint); /* one call: lines of threads do not mix */
}

void emu_take_complaint(char *text, size_t bytes) {
    char *complaint = own_complaint();
    snprintf(text, bytes, "%s", complaint != NULL ? complaint : "");
    if (complaint != NULL) complaint[0] = '\0';
}

static uint32_t cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return (uint32_t)CPU_COUNT(&set);
}

/* A number of the environment; the default where it is absent, or out of [low, high]. */
static double number(const char *name, double absent, double low, double high) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return absent;
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    if (errno == 0 && *end == '\0' && value >= low && value <= high) return value;
    fprintf(stderr, "pim_emu: %s must be a number from %g to %g, got \"%s\": %g is used\n", name, low,
            high, text, absent);
    return absent;
}

/* Whether the second of two words is chosen; the first is the default. */
static bool choice(const char *name, const char *usual, const char *other) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0' || strcmp(text, usual) == 0) return false;
    if (strcmp(text, other) == 0) return true;
    fprintf(stderr, "pim_emu: %s must be \"%s\" or \"%s\", got \"%s\": \"%s\" is used\n", name,
            usual, other, text, usual);
    return false;
}

static void read_environment(void) {
    settings.checks = number("PIM_EMU_CHECKS", 1, 0, 1) != 0;
    settings.seed = (uint64_t)number("PIM_EMU_SEED", 0, 0, 9007199254740992.0);
    settings.workers = (uint32_t)number("PIM_EMU_WORKERS", cores(), 1, MOST_WORKERS);
    settings.timeout_seconds = number("PIM_EMU_TIMEOUT", 60, 0, 1e9);
    settings.quiet = number("PIM_EMU_QUIET", 0, 0, 1) != 0;
    settings.strict_dma = choice("PIM_EMU_DMA", "hardware", "strict");
    settings.schedule = choice("PIM_EMU_SCHEDULE", "time", "random") ? EMU_AT_RANDOM : EMU_IN_TIME;
}

struct emu_settings *emu_settings(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &settings;
}
