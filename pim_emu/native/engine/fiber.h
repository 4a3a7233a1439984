/* What sanitizers must be told when the stack changes under them. Nothing in other builds. */
#ifndef EMU_FIBER_H
#define EMU_FIBER_H

#include "internal.h"

#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t bytes);
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom, size_t *bytes);

static __thread const void *emu_host_bottom;
static __thread size_t emu_host_bytes;

/* Before the switch to a tasklet, or to the host where it is NULL. */
static inline void emu_fiber_leave(const struct emu_tasklet *to) {
    if (to != NULL)
        __sanitizer_start_switch_fiber(NULL, to->stack_bottom,
                                       (size_t)(to->stack_top - to->stack_bottom));
    else
        __sanitizer_start_switch_fiber(NULL, emu_host_bottom, emu_host_bytes);
    if (to == NULL) emu_host_bottom = NULL;
}

/* After it. The first tasklet learns the host's stack: it comes from there. */
static inline void emu_fiber_enter(void) {
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
    if (emu_host_bottom != NULL) return;
    emu_host_bottom = bottom;
    emu_host_bytes = bytes;
}

/* A stack that was left for good is used afresh. */
void __asan_unpoison_memory_region(const volatile void *at, size_t bytes);
static inline void emu_fiber_renew(const struct emu_tasklet *tasklet) {
    __asan_unpoison_memory_region(tasklet->stack_bottom,
                                  (size_t)(tasklet->stack_top - tasklet->stack_bottom));
}
#elif defined(__SANITIZE_THREAD__)
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);

static inline void emu_fiber_leave(struct emu_tasklet *to) {
    static __thread void *host;
    if (host == NULL) host = __tsan_get_current_fiber(); /* the first switch leaves the host */
    if (to != NULL && to->fiber == NULL) to->fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(to != NULL ? to->fiber : host, 0);
}

static inline void emu_fiber_enter(void) {
}

static inline void emu_fiber_renew(const struct emu_tasklet *tasklet) {
    (void)tasklet;
}
#else
static inline void emu_fiber_leave(const struct emu_tasklet *to) {
    (void)to;
}

static inline void emu_fiber_enter(void) {
}

static inline void emu_fiber_renew(const struct emu_tasklet *tasklet) {
    (void)tasklet;
}
#endif

#endif
