// Tiles: each lane holds its replica's table, lanes beyond the replicas the last one's; tables come
// back as they were, and nothing beyond them is written.

#include "check.h"
#include "tile.h"
#include "values.h"

enum {
  MOST_ENTRIES = 2 * LANES + 3,
  GROUPS = 2,
  REPLICAS = GROUPS * LANES,
  GAP = 2,
  UNTOUCHED = 9
};

static arl_entry entry_of(int64_t replica, int64_t e) { return (arl_entry)(100 * replica + e + 1); }

static void check_tiles(int64_t real, int64_t entries) {
  const int64_t stride = entries + GAP;
  arl_entry tables[REPLICAS * (MOST_ENTRIES + GAP)], back[REPLICAS * (MOST_ENTRIES + GAP)];
  for (int64_t k = 0; k < REPLICAS * stride; ++k) {
    tables[k] = entry_of(k / stride, k % stride);
    back[k] = UNTOUCHED;
  }
  arl_value *tile = allocate_values(MOST_ENTRIES * GROUPS);
  arl_load_tile(tables, stride, real, entries, GROUPS, tile);
  for (int64_t e = 0; e < entries; ++e)
    for (int64_t lane = 0; lane < REPLICAS; ++lane) {
      arl_entry got;
      memcpy(&got, (const arl_entry *)tile + e * REPLICAS + lane, sizeof got);
      CHECK(got == entry_of(lane < real ? lane : real - 1, e), "lane %d, entry %d", (int)lane,
            (int)e);
    }
  arl_store_tile(tile, real, entries, GROUPS, back, stride);
  for (int64_t k = 0; k < REPLICAS * stride; ++k) {
    const int stored = k / stride < real && k % stride < entries;
    CHECK(back[k] == (stored ? tables[k] : UNTOUCHED), "place %d", (int)k);
  }
  free(tile);
}

int main(void) {
  for (int64_t real = 1; real <= REPLICAS; ++real)
    for (int64_t entries = 1; entries <= MOST_ENTRIES; ++entries) check_tiles(real, entries);
  return finish();
}
