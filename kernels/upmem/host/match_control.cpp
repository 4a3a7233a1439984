// Associative searches for Python, by ctypes. Functions that can fail return 0, or the number of an
// error, as accel_rl_upmem_error() knows it.

#include "device.hpp"
#include "matcher.hpp"

#define ARL_EXPORT extern "C" __attribute__((visibility("default")))

using namespace accel_rl::upmem;

// As accel_rl/pim/upmem/matcher.py declares it.
struct arl_upmem_keys {
  const char *path, *profile;
  uint32_t dpus, bytes, groups;
  int32_t asynchronous, count_instructions;
};

namespace {

template <typename Work>
uint64_t guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const Error &error) {
    return Device::instance().keep(error);
  } catch (const std::exception &error) {  // such as of memory
    return Device::instance().keep(Error(Kind::failed, error.what()));
  }
}

}  // namespace

// Whether this is the size of the struct, as it is not if either side has changed alone.
ARL_EXPORT int32_t accel_rl_upmem_match_agrees(size_t keys) {
  return keys == sizeof(arl_upmem_keys);
}

ARL_EXPORT uint64_t accel_rl_upmem_match_open(const arl_upmem_keys *from, Matcher **made) {
  return guarded([&] {
    const Keys keys = {from->path, from->bytes, from->groups};
    const Mode mode = from->asynchronous ? Mode::asynchronous : Mode::synchronous;
    *made = new Matcher(keys, from->dpus, from->profile, mode, from->count_instructions != 0);
  });
}

ARL_EXPORT uint64_t accel_rl_upmem_match_load(Matcher *matcher, const void *keys,
                                              const uint64_t *valid) {
  return guarded([&] { matcher->load(keys, valid); });
}

ARL_EXPORT uint64_t accel_rl_upmem_match_update(Matcher *matcher, const uint32_t *slots,
                                                const uint32_t *keys, const uint8_t *valid,
                                                size_t count) {
  return guarded([&] { matcher->update(slots, keys, valid, count); });
}

ARL_EXPORT uint64_t accel_rl_upmem_match_search(Matcher *matcher, int32_t work,
                                                const arl_match_query *queries, uint32_t count,
                                                uint32_t *counts, uint64_t *lines) {
  return guarded(
      [&] { matcher->search(static_cast<arl_match_work>(work), queries, count, counts, lines); });
}

ARL_EXPORT void accel_rl_upmem_match_report(Matcher *matcher, Report *report) {
  *report = matcher->report();
}

// Frees the DPUs.
ARL_EXPORT void accel_rl_upmem_match_close(Matcher *matcher) { delete matcher; }
