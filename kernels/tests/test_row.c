// A transition read from either record is the same row.

#include <stddef.h>
#include <string.h>

#include "check.h"
#include "row.h"

enum { CODES = 32768, ROUNDS = 20000 };

_Static_assert(sizeof(arl_wide_row) == 16 && sizeof(arl_record) == 8, "sizes of docs/datasets.md");
_Static_assert(offsetof(arl_record, next_row) == 2 && offsetof(arl_record, reward) == 4 &&
                   offsetof(arl_record, next_action) == 6 && offsetof(arl_record, flags) == 7,
               "places of docs/datasets.md");

static uint32_t bits_of(arl_entry entry) {
  uint32_t bits;
  memcpy(&bits, &entry, sizeof bits);
  return bits;
}

static void test_transition(const arl_entry *codebook, uint64_t bits, uint8_t next_action,
                            uint8_t flags) {
  const uint16_t state_action = (uint16_t)bits, next_row = (uint16_t)(bits >> 16);
  const int16_t code = (int16_t)(bits >> 32 & 0x7FFF);
  const bool bootstraps = !(flags & 1);
  // The bytes of docs/datasets.md, and the words of accel_rl/tabular/rows.py.
  const uint8_t bytes[8] = {state_action & 255, state_action >> 8, next_row & 255, next_row >> 8,
                            code & 255,         code >> 8,         next_action,    flags};
  const uint32_t words[4] = {state_action, next_row, bits_of(codebook[code]),
                             next_action | (uint32_t)bootstraps << 16 | 1u << 17};
  arl_record record;
  arl_wide_row wide;
  memcpy(&record, bytes, sizeof record);
  memcpy(&wide, words, sizeof wide);
  const arl_row rows[] = {arl_read_record(&record, codebook), arl_read_wide(&wide)};
  for (int k = 0; k < 2; ++k) {
    const arl_row *row = rows + k;
    CHECK(row->entry == state_action && row->next_entry == next_row, "form %d: entries %u and %u",
          k, row->entry, row->next_entry);
    CHECK(bits_of(row->reward) == words[2], "form %d: reward of code %d", k, code);
    CHECK(row->next_action == next_action && row->bootstrap == bootstraps,
          "form %d: next action %u, bootstrap %u, flags %u", k, row->next_action, row->bootstrap,
          flags);
    CHECK(row->greedy == 0 && row->second == 0, "form %d: something is drawn already", k);
  }
}

// What only the wide row holds: indices of more than 16 bits, and actions of more than 8.
static void test_large(uint32_t entry, uint32_t next_entry, uint32_t next_action) {
  const arl_wide_row wide = {entry, next_entry, 0, next_action | 1u << ARL_BOOTSTRAP_BIT};
  const arl_row row = arl_read_wide(&wide);
  CHECK(row.entry == entry && row.next_entry == next_entry && row.next_action == next_action &&
            row.bootstrap == 1,
        "%u, %u, %u", row.entry, row.next_entry, row.next_action);
}

int main(void) {
  uint64_t state = 0xB0A7ull;
  arl_entry *codebook = must_allocate(CODES * sizeof *codebook);
  for (int code = 0; code < CODES; ++code) codebook[code] = (arl_entry)(code - CODES / 2) * 3;
  for (int flags = 0; flags < 256; ++flags)
    test_transition(codebook, random_bits(&state), (uint8_t)(255 - flags), (uint8_t)flags);
  test_transition(codebook, 0, 0, 0);
  test_transition(codebook, UINT64_MAX, 255, 255);
  for (int round = 0; round < ROUNDS; ++round) {
    const uint64_t bits = random_bits(&state);
    test_transition(codebook, bits, (uint8_t)(bits >> 48), (uint8_t)(bits >> 56));
    test_large((uint32_t)bits >> 1, (uint32_t)(bits >> 33), (uint32_t)(bits >> 40) & 0xFFFF);
  }
  free(codebook);
  return finish();
}
