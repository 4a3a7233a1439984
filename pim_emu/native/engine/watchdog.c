/* A tasklet that calls no service keeps its worker for ever. One thread looks at the workers twice a
 * second and stops a DPU whose tasklet has called nothing for too long. */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define LOOKS_PER_SECOND 2

static struct emu_worker *watched;
static uint32_t watched_count;

bool emu_is_overdue(struct emu_run *run) {
    return atomic_load_explicit(&run->overdue, memory_order_relaxed) ==
           atomic_load_explicit(&run->heartbeat, memory_order_relaxed) + 1;
}

static void *watch(void *unused) {
    (void)unused;
    uint64_t seen[256] = {0};
    uint32_t still[256] = {0};
    for (;;) {
        usleep(1000000 / LOOKS_PER_SECOND);
        const double limit = emu_settings()->timeout_seconds;
        for (uint32_t i = 0; i < watched_count; ++i) {
            struct emu_worker *worker = &watched[i];
            pthread_mutex_lock(&worker->thread_lock);
            const uint64_t beats =
                atomic_load_explicit(&worker->run.heartbeat, memory_order_relaxed);
            if (!worker->busy || beats != seen[i] || limit <= 0) {
                seen[i] = beats;
                still[i] = 0;
            } else if (++still[i] >= limit * LOOKS_PER_SECOND) {
                atomic_store(&worker->run.overdue, beats + 1);
                pthread_kill(worker->thread, EMU_WATCHDOG_SIGNAL);
            }
            pthread_mutex_unlock(&worker->thread_lock);
        }
    }
    return NULL;
}

void emu_start_watchdog(struct emu_worker *workers, uint32_t count) {
    watched = workers;
    watched_count = count < 256 ? count : 256;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Without it, nothing is lost but the limit. */
    if (pthread_create(&thread, &attributes, watch, NULL) != 0)
        emu_complain("no thread for the watchdog: tasklets without end will not be stopped");
    pthread_attr_destroy(&attributes);
}
