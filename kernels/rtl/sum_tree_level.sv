// One level of a sum tree: a stage of two clocks with a memory of its own.
//
// First clock: read the row of K children. Second: a sample picks the child that its rest falls
// in; a write adds its difference to the child on its path. An operation after it reads what it
// wrote, because `row_memory` forwards.
module sum_tree_level #(
    parameter int unsigned K = 16,
    parameter int unsigned LEVEL = 0,  // 0 is below the root
    parameter int unsigned INDEX = 12,  // bits of a leaf's index
    parameter int unsigned WIDTH = 16,  // bits of a child
    parameter int unsigned DELTA = 17,  // bits of a difference, signed
    parameter int unsigned PASSED = 1,  // bits that only pass through
    localparam int unsigned LOG_K = K > 1 ? $clog2(K) : 1,
    localparam int unsigned NODE = WIDTH + LOG_K,
    localparam int unsigned ROWS = K ** LEVEL,
    localparam int unsigned ADDRESS = LEVEL > 0 ? LEVEL * LOG_K : 1
) (
    input logic clock,
    input logic reset,
    input logic advance,
    input logic clear,
    input logic [ADDRESS-1:0] clear_row,

    input logic valid_in,
    input logic walk_in,  // a sample; otherwise `index` is known and `delta` is added
    input logic [INDEX-1:0] index_in,  // of a sample, the digits above this level
    input logic [NODE-1:0] rest_in,
    input logic signed [DELTA-1:0] delta_in,
    input logic [PASSED-1:0] passed_in,

    output logic valid_out,
    output logic walk_out,
    output logic [INDEX-1:0] index_out,
    output logic [WIDTH-1:0] rest_out,
    output logic signed [DELTA-1:0] delta_out,
    output logic [PASSED-1:0] passed_out,
    output logic [WIDTH-1:0] child_out  // the child's value before the operation
);
  localparam int unsigned DIGIT = INDEX - (LEVEL + 1) * LOG_K;  // where this level's digit starts

  logic read_valid, read_walk, valid, walk;
  logic [INDEX-1:0] read_index, index;
  logic [NODE-1:0] read_rest, rest;
  logic signed [DELTA-1:0] read_delta, delta;
  logic [PASSED-1:0] read_passed, passed;

  always_ff @(posedge clock) begin
    if (advance) begin
      read_walk <= walk_in;
      read_index <= index_in;
      read_rest <= rest_in;
      read_delta <= delta_in;
      read_passed <= passed_in;
      walk <= read_walk;
      index <= read_index;
      rest <= read_rest;
      delta <= read_delta;
      passed <= read_passed;
    end
    if (reset) begin
      read_valid <= 1'b0;
      valid <= 1'b0;
    end else if (advance) begin
      read_valid <= valid_in;
      valid <= read_valid;
    end
  end

  logic [K*WIDTH-1:0] row, changed_row;
  logic [ADDRESS-1:0] read_address, address;

  generate
    if (LEVEL == 0) begin : g_one_row
      assign read_address = '0;
      assign address = '0;
    end else begin : g_rows
      assign read_address = read_index[INDEX-1-:ADDRESS];
      assign address = index[INDEX-1-:ADDRESS];
    end
  endgenerate

  row_memory #(
      .ROWS (ROWS),
      .WIDTH(K * WIDTH)
  ) memory (
      .clock,
      .advance,
      .read_address,
      .read_row(row),
      .write(clear || (advance && valid && !walk)),
      .write_address(clear ? clear_row : address),
      .write_row(clear ? '0 : changed_row)
  );

  // Sums of the first children, log2 K adders deep. In place: from the last, each still finds the
  // sums of the step before.
  logic [K*NODE-1:0] sums;
  always_comb begin
    for (int unsigned c = 0; c < K; c++) sums[c*NODE+:NODE] = NODE'(row[c*WIDTH+:WIDTH]);
    for (int unsigned step = 1; step < K; step = 2 * step) begin
      for (int unsigned c = K - 1; c >= step; c--)
        sums[c*NODE+:NODE] = sums[c*NODE+:NODE] + sums[(c-step)*NODE+:NODE];
    end
  end

  // Sums never fall, so the last that is not above the rest ends where the child begins.
  logic [LOG_K-1:0] found, child;
  logic [NODE-1:0] skipped;
  always_comb begin
    found = '0;
    skipped = '0;
    for (int unsigned c = 0; c < K; c++) begin
      if (sums[c*NODE+:NODE] <= rest) begin
        found = LOG_K'(c + 1);
        skipped = sums[c*NODE+:NODE];
      end
    end
  end

  assign child = walk ? found : index[DIGIT+:LOG_K];
  // Loops, because an index that varies would be multiplied by the width.
  logic [WIDTH-1:0] child_value, new_value;
  always_comb begin
    child_value = '0;
    for (int unsigned c = 0; c < K; c++)
      if (child == LOG_K'(c)) child_value = row[c*WIDTH+:WIDTH];
  end
  assign new_value = child_value + WIDTH'(delta);
  always_comb begin
    changed_row = row;
    for (int unsigned c = 0; c < K; c++)
      if (child == LOG_K'(c)) changed_row[c*WIDTH+:WIDTH] = new_value;
  end

  always_comb begin
    index_out = index;
    index_out[DIGIT+:LOG_K] = child;
  end
  assign valid_out = valid;
  assign walk_out = walk;
  assign rest_out = WIDTH'(rest - skipped);
  assign delta_out = delta;
  assign passed_out = passed;
  assign child_out = child_value;
endmodule
