// A ternary CAM in registers, and AMPER's procedure on it.
//
// Searches give match lines; `merge` adds a search's lines to those there are, so that the groups
// of AMPER make one set; `gather` reads the matches out into the buffer of candidates (the CSP),
// one a clock; `draw` turns a random word into a candidate. Results are those of all requests
// before, done one by one. Three stages: compare or write, merge and count in blocks, respond. One
// request may be accepted in every clock, but a gather holds the second stage until it is done.
module tcam #(
    parameter int unsigned ENTRIES = 256,
    parameter int unsigned WIDTH = 16,  // bits of a key
    parameter int unsigned BLOCK = 32,  // match lines that are counted and read out together
    localparam int unsigned ROW = ENTRIES > 1 ? $clog2(ENTRIES) : 1,
    localparam int unsigned COUNT = $clog2(ENTRIES + 1)
) (
    input logic clock,
    input logic reset,

    input logic request_valid,
    output logic request_ready,
    input logic [2:0] request_operation,
    input logic [ROW-1:0] request_row,  // of write
    input logic [WIDTH-1:0] request_key,  // of write, search and merge
    input logic [WIDTH-1:0] request_dont_care,  // of search and merge: 1 matches anything
    input logic request_stored,  // of write: the row's valid bit
    input logic [31:0] request_random,  // of draw

    output logic response_valid,
    input logic response_ready,
    output logic [COUNT-1:0] response_count,  // of draw, candidates; else match lines that are set
    output logic [ROW-1:0] response_row,  // of draw; 0 where there is no candidate
    output logic [ENTRIES-1:0] response_lines
);
  localparam logic [2:0] WRITE = 3'd0;
  localparam logic [2:0] SEARCH = 3'd1;
  localparam logic [2:0] MERGE = 3'd2;
  localparam logic [2:0] GATHER = 3'd3;
  localparam logic [2:0] DRAW = 3'd4;  // those above change nothing

  localparam int unsigned BLOCKS = (ENTRIES + BLOCK - 1) / BLOCK;
  localparam int unsigned LINES = BLOCKS * BLOCK;

  generate
    if (ENTRIES < 2) $error("ENTRIES must be at least 2, got %0d", ENTRIES);
    if (WIDTH < 1 || WIDTH > 64) $error("WIDTH must be 1 to 64, got %0d", WIDTH);
    if (BLOCK < 2 || BLOCK != 2 ** $clog2(BLOCK))
      $error("BLOCK must be a power of two from 2, got %0d", BLOCK);
  endgenerate

  logic respond, advance, gathered;
  logic [2:0] operation, found_operation;
  logic valid, found_valid, gathering;
  assign gathering = found_valid && found_operation == GATHER;
  assign respond = !response_valid || response_ready;
  assign advance = respond && (!gathering || gathered);
  assign request_ready = advance && !reset;

  // First stage: the keys are compared, or one is written.
  logic [ROW-1:0] row;
  logic [WIDTH-1:0] key, dont_care;
  logic stored;
  logic [31:0] random;
  logic [WIDTH-1:0] keys[ENTRIES];
  logic [ENTRIES-1:0] used, matched;

  always_comb begin
    for (int unsigned i = 0; i < ENTRIES; i++)
      matched[i] = used[i] && ((keys[i] ^ key) & ~dont_care) == '0;
  end

  always_ff @(posedge clock) begin
    if (advance) begin
      operation <= request_operation;
      row <= request_row;
      key <= request_key;
      dont_care <= request_dont_care;
      stored <= request_stored;
      random <= request_random;
      found_operation <= operation;
      if (valid && operation == WRITE && 32'(row) < ENTRIES) keys[row] <= key;
    end
    if (reset) begin
      valid <= 1'b0;
      found_valid <= 1'b0;
      used <= '0;
    end else if (advance) begin
      valid <= request_valid;
      found_valid <= valid;
      if (valid && operation == WRITE && 32'(row) < ENTRIES) used[row] <= stored;
    end
  end

  // Second stage: lines are merged, and read out.
  logic [ENTRIES-1:0] found;
  logic [LINES-1:0] lines, new_lines;
  logic [COUNT-1:0] candidates;
  logic [ROW-1:0] rank;
  logic [COUNT-1:0] drawn_from;
  always_ff @(posedge clock) begin
    if (advance) begin
      found <= matched;
      // The high word of the product is a number below the candidates.
      rank <= ROW'(((32 + COUNT)'(random) * (32 + COUNT)'(candidates)) >> 32);
      drawn_from <= candidates;
    end
  end

  always_comb begin
    new_lines = lines;
    if (found_operation == SEARCH) new_lines = LINES'(found);
    if (found_operation == MERGE) new_lines = lines | LINES'(found);
  end

  logic write_candidate;
  logic [ROW-1:0] candidate, drawn;
  match_readout #(
      .BLOCKS(BLOCKS),
      .BLOCK (BLOCK),
      .ROW   (ROW),
      .COUNT (COUNT)
  ) readout (
      .clock,
      .reset,
      .start(gathering),
      .lines,
      .taken(advance),
      .done(gathered),
      .write(write_candidate),
      .index(candidate),
      .count(candidates)
  );

  row_memory #(
      .ROWS (ENTRIES),
      .WIDTH(ROW)
  ) candidate_buffer (
      .clock,
      .advance,
      .read_address(rank),
      .read_row(drawn),
      .write(write_candidate),
      .write_address(ROW'(candidates)),
      .write_row(candidate)
  );

  // Third stage: the blocks' counts are added up.
  localparam int unsigned PART = $clog2(BLOCK + 1);
  logic [BLOCKS*PART-1:0] counts, new_counts;
  logic is_draw;
  logic [COUNT-1:0] response_candidates, set_lines;
  always_comb begin
    for (int unsigned b = 0; b < BLOCKS; b++)
      new_counts[b*PART+:PART] = PART'($countones(new_lines[b*BLOCK+:BLOCK]));
  end

  always_ff @(posedge clock) begin
    if (reset) begin
      response_valid <= 1'b0;
      lines <= '0;
      counts <= '0;
    end else if (respond) begin
      response_valid <= found_valid && advance;
      if (found_valid) begin
        lines <= new_lines;
        counts <= new_counts;
      end
    end
    if (advance) begin
      is_draw <= found_operation == DRAW;
      response_candidates <= drawn_from;
    end
  end

  always_comb begin
    set_lines = '0;
    for (int unsigned b = 0; b < BLOCKS; b++) set_lines = set_lines + COUNT'(counts[b*PART+:PART]);
  end
  assign response_count = is_draw ? response_candidates : set_lines;
  assign response_row = is_draw && response_candidates != '0 ? drawn : '0;
  assign response_lines = lines[ENTRIES-1:0];
endmodule
