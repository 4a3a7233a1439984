// For libFuzzer: an input is the blocks of a snapshot or of a log, whose checksums are put right,
// so that what lies behind them is reached; `raw` inputs are files as they are.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "frames.hpp"
#include "generations.hpp"
#include "snapshot_format.hpp"

using namespace frames;

static std::string path = [] {
  char folder[] = "/tmp/replay-fuzz-XXXXXX";
  if (!mkdtemp(folder)) abort();
  return std::string(folder) + "/snapshot";
}();

static void write(const std::string &name, bool raw, uint64_t magic, const uint8_t *data,
                  size_t size) {
  FILE *file = fopen(name.c_str(), "wb");
  if (!file) abort();
  if (raw) {
    fwrite(data, 1, size, file);
    fclose(file);
    return;
  }
  fclose(file);
  BlockFile blocks;
  std::string why;
  const int opened = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  if (blocks.begin(opened, name, magic, 0, &why) != Status::ok) abort();
  // A block is a kind, a length of two bytes and its payload.
  while (size > 3) {
    const size_t bytes = std::min<size_t>(size - 3, data[1] | data[2] << 8);
    Block block{data[0] % 8U, std::vector<std::byte>(block_head_bytes)};
    put_bytes(&block.bytes, data + 3, bytes);
    blocks.add(&block, &why);
    data += 3 + bytes, size -= 3 + bytes;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const bool raw = data[0] & 1, is_log = data[0] & 2;
  const std::string name = is_log ? segment_of(path, 0) : path;
  write(name, raw, is_log ? log_format::magic : snapshot::magic, data + 1, size - 1);
  {
    Settings wanted = settings();
    wanted.snapshot_path = path;
    Talk talk(wanted);
    std::vector<std::string> notes;
    std::string why;
    if (talk.handler.recover(&notes, &why) == Status::ok) {
      talk.hello(), talk.open(16);
      talk.send(push({1, 2, 3, 4})), talk.send(sample(1, 8));
    }
  }
  for (const std::string &each : {path, segment_of(path, 0)}) {
    ::unlink(each.c_str());
    ::unlink((each + ".damaged").c_str());
  }
  return 0;
}
