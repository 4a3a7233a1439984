/* A failed assertion stops the DPU with a fault that quotes it. No guard: NDEBUG may change. */
#undef assert
#ifdef NDEBUG
#define assert(expression) ((void)0)
#else
#define assert(expression) ((expression) ? (void)0 : __emu_assertion_failed(#expression))
#endif

#ifndef static_assert
#define static_assert _Static_assert
__attribute__((noreturn)) void __emu_assertion_failed(const char *expression);
#endif
