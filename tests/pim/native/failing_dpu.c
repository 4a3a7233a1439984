// Goes between a host program and libdpu, and makes calls of one function fail: preloaded into a
// process, or linked into a program. FAILING_DPU_LIBRARY names the libdpu.so to go on to.
#include <dlfcn.h>
#include <dpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_dpu.h"

static struct {
  char function[32];
  uint64_t first, last, calls;
  int status;
} failing;

void failing_dpu(const char *function, uint32_t first, uint32_t count, int status) {
  snprintf(failing.function, sizeof failing.function, "%s", function);
  failing.first = first;
  failing.last = (uint64_t)first + count - 1;
  failing.calls = 0;
  failing.status = status;
}

// Whether this call fails.
static bool fails(const char *function) {
  if (strcmp(function, failing.function) != 0) return false;
  ++failing.calls;
  return failing.first <= failing.calls && failing.calls <= failing.last;
}

static void *real(const char *function) {
  static void *library;
  if (!library) library = dlopen(getenv("FAILING_DPU_LIBRARY"), RTLD_NOW);
  void *found = library ? dlsym(library, function) : NULL;
  if (!found) {
    fprintf(stderr, "failing_dpu: %s\n", dlerror());
    abort();
  }
  return found;
}

#define PASS(name, parameters, arguments)                     \
  dpu_error_t name parameters {                               \
    if (fails(#name)) return (dpu_error_t)failing.status;     \
    return ((dpu_error_t(*) parameters)real(#name))arguments; \
  }

typedef struct dpu_set_t set_t;
PASS(dpu_alloc, (uint32_t count, const char *profile, set_t *set), (count, profile, set))
PASS(dpu_get_nr_dpus, (set_t set, uint32_t *count), (set, count))
PASS(dpu_load, (set_t set, const char *path, struct dpu_program_t **program), (set, path, program))
PASS(dpu_get_symbol, (struct dpu_program_t * program, const char *name, struct dpu_symbol_t *symbol),
     (program, name, symbol))
PASS(dpu_broadcast_to, (set_t set, const char *name, uint32_t offset, const void *from,
                        size_t length, dpu_xfer_flags_t flags),
     (set, name, offset, from, length, flags))
PASS(dpu_prepare_xfer, (set_t set, void *buffer), (set, buffer))
PASS(dpu_push_xfer, (set_t set, dpu_xfer_t xfer, const char *name, uint32_t offset, size_t length,
                     dpu_xfer_flags_t flags),
     (set, xfer, name, offset, length, flags))
PASS(dpu_launch, (set_t set, dpu_launch_policy_t policy), (set, policy))
PASS(dpu_sync, (set_t set), (set))
