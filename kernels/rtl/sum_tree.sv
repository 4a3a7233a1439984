// A K-ary sum tree for prioritised replay, one pipeline stage for each level.
//
// All operations walk from the root to a leaf and meet every level in the order in which they were
// accepted. So the result of each is that of all operations before it, done one by one, however
// closely they follow, and one may be accepted in every clock. A write knows its difference before
// it starts, from a second copy of the leaves in front of the tree; in fixed point, adding it to
// the sums on the path is the same as summing their children anew. Sums widen by log2 K bits a
// level and cannot overflow.
module sum_tree #(
    parameter int unsigned K = 16,  // children of a node, a power of two
    parameter int unsigned DEPTH = 3,  // levels below the root; K ** DEPTH leaves
    parameter int unsigned WIDTH = 16,  // bits of a leaf's value, unsigned
    localparam int unsigned LOG_K = K > 1 ? $clog2(K) : 1,
    localparam int unsigned INDEX = DEPTH * LOG_K,
    localparam int unsigned TOTAL = WIDTH + INDEX
) (
    input logic clock,
    input logic reset,

    input logic request_valid,
    output logic request_ready,  // not while reset clears the memories, K ** (DEPTH - 1) clocks
    input logic [1:0] request_operation,
    input logic [INDEX-1:0] request_index,  // of update and read
    input logic [WIDTH-1:0] request_value,  // of update and insert
    input logic [TOTAL-1:0] request_prefix,  // of sample

    output logic response_valid,
    input logic response_ready,
    output logic [INDEX-1:0] response_index,
    output logic [WIDTH-1:0] response_value,  // the leaf's before the operation
    output logic response_hit,  // of sample: the prefix is below the total; else index, value are 0
    output logic [TOTAL-1:0] response_total  // after the operation
);
  localparam logic [1:0] SAMPLE = 2'd0;  // the leaf whose cumulated values reach over the prefix
  localparam logic [1:0] UPDATE = 2'd1;
  localparam logic [1:0] INSERT = 2'd2;  // an update of the next slot, around the end
  // 3 is a read: it changes nothing.

  localparam int unsigned LEAF_ROWS = K ** (DEPTH - 1);
  localparam int unsigned ADDRESS = DEPTH > 1 ? INDEX - LOG_K : 1;
  localparam int unsigned DELTA = WIDTH + 1;
  localparam int unsigned PASSED = TOTAL + 1;

  generate
    if (K < 2 || K != 2 ** LOG_K) $error("K must be a power of two from 2, got %0d", K);
    if (DEPTH < 1) $error("DEPTH must be at least 1, got %0d", DEPTH);
    if (WIDTH < 1 || WIDTH > 32) $error("WIDTH must be 1 to 32, got %0d", WIDTH);
    if (INDEX > 24) $error("DEPTH * log2(K) must be at most 24, got %0d", INDEX);
  endgenerate

  logic advance;  // the whole pipeline waits for its last response to be taken
  assign advance = !response_valid || response_ready;

  logic clearing;
  logic [ADDRESS-1:0] clear_row;
  always_ff @(posedge clock) begin
    if (reset) begin
      clearing <= 1'b1;
      clear_row <= '0;
    end else if (clearing) begin
      clearing <= clear_row != ADDRESS'(LEAF_ROWS - 1);
      clear_row <= clear_row + 1'b1;
    end
  end

  // In front of the tree: the difference that a write makes, and the total.
  logic accepted;
  logic [INDEX-1:0] next_slot, wanted;
  assign request_ready = advance && !clearing && !reset;
  assign accepted = request_valid && request_ready;
  assign wanted = request_operation == INSERT ? next_slot : request_index;

  logic front_valid, front_walk;
  logic [INDEX-1:0] front_index;
  logic [WIDTH-1:0] front_value;
  logic [TOTAL-1:0] front_prefix, total, new_total;
  logic front_change;
  always_ff @(posedge clock) begin
    if (advance) begin
      front_walk <= request_operation == SAMPLE;
      front_change <= request_operation == UPDATE || request_operation == INSERT;
      front_index <= wanted;
      front_value <= request_value;
      front_prefix <= request_prefix;
    end
    if (reset) begin
      front_valid <= 1'b0;
      next_slot <= '0;
      total <= '0;
    end else if (advance) begin
      front_valid <= accepted;
      if (accepted && request_operation == INSERT) next_slot <= next_slot + 1'b1;
      if (front_valid) total <= new_total;
    end
  end

  logic [K*WIDTH-1:0] leaves, changed_leaves;
  logic [ADDRESS-1:0] wanted_row, leaf_row;
  logic [LOG_K-1:0] lane;
  logic [WIDTH-1:0] leaf;
  logic signed [DELTA-1:0] front_delta;
  generate
    if (DEPTH == 1) begin : g_one_row
      assign wanted_row = '0;
      assign leaf_row = '0;
    end else begin : g_rows
      assign wanted_row = wanted[INDEX-1:LOG_K];
      assign leaf_row = front_index[INDEX-1:LOG_K];
    end
  endgenerate
  assign lane = front_index[LOG_K-1:0];
  assign front_delta = front_change ? signed'({1'b0, front_value} - {1'b0, leaf}) : '0;
  assign new_total = total + TOTAL'(front_delta);
  always_comb begin
    leaf = '0;
    changed_leaves = leaves;
    for (int unsigned c = 0; c < K; c++) begin
      if (lane == LOG_K'(c)) begin
        leaf = leaves[c*WIDTH+:WIDTH];
        changed_leaves[c*WIDTH+:WIDTH] = front_value;
      end
    end
  end

  row_memory #(
      .ROWS (LEAF_ROWS),
      .WIDTH(K * WIDTH)
  ) leaf_copy (
      .clock,
      .advance,
      .read_address(wanted_row),
      .read_row(leaves),
      .write(clearing || (advance && front_valid && front_change)),
      .write_address(clearing ? clear_row : leaf_row),
      .write_row(clearing ? '0 : changed_leaves)
  );

  // The levels. What goes into level i is `stage[i]`, what comes out of the last is the response.
  // verilator lint_off UNUSEDSIGNAL
  // The last rest and difference have no level to go to, and only the last child is a leaf.
  for (genvar i = 0; i <= DEPTH; i++) begin : stage
    localparam int unsigned REST = TOTAL - i * LOG_K;
    logic valid, walk;
    logic [INDEX-1:0] index;
    logic [REST-1:0] rest;
    logic signed [DELTA-1:0] delta;
    logic [PASSED-1:0] passed;
    logic [REST-1:0] child;
  end
  // verilator lint_on UNUSEDSIGNAL
  assign stage[0].valid = front_valid;
  assign stage[0].walk = front_walk;
  assign stage[0].index = front_walk ? '0 : front_index;
  assign stage[0].rest = front_prefix;
  assign stage[0].delta = front_delta;
  assign stage[0].passed = {front_walk && front_prefix < new_total, new_total};
  assign stage[0].child = total;

  for (genvar i = 0; i < DEPTH; i++) begin : level
    localparam int unsigned ROW_BITS = i > 0 ? i * LOG_K : 1;
    sum_tree_level #(
        .K(K),
        .LEVEL(i),
        .INDEX(INDEX),
        .WIDTH(TOTAL - (i + 1) * LOG_K),
        .DELTA(DELTA),
        .PASSED(PASSED)
    ) below (
        .clock,
        .reset,
        .advance,
        .clear(clearing),
        // Levels with fewer rows are cleared several times over.
        .clear_row(ROW_BITS'(clear_row)),
        .valid_in(stage[i].valid),
        .walk_in(stage[i].walk),
        .index_in(stage[i].index),
        .rest_in(stage[i].rest),
        .delta_in(stage[i].delta),
        .passed_in(stage[i].passed),
        .valid_out(stage[i+1].valid),
        .walk_out(stage[i+1].walk),
        .index_out(stage[i+1].index),
        .rest_out(stage[i+1].rest),
        .delta_out(stage[i+1].delta),
        .passed_out(stage[i+1].passed),
        .child_out(stage[i+1].child)
    );
  end

  logic nowhere;
  assign nowhere = stage[DEPTH].walk && !stage[DEPTH].passed[TOTAL];
  always_ff @(posedge clock) begin
    if (reset) response_valid <= 1'b0;
    else if (advance) response_valid <= stage[DEPTH].valid;
    if (advance) begin
      response_index <= nowhere ? '0 : stage[DEPTH].index;
      response_value <= nowhere ? '0 : stage[DEPTH].child;
      {response_hit, response_total} <= stage[DEPTH].passed;
    end
  end
endmodule
