// Reads set match lines out in their order, one a clock, whatever lies between them.
//
// Blocks without a match are skipped: two priority encoders, one over blocks and one in a block.
// It takes the matches and three clocks: to start, to fetch the first block and to end.
module match_readout #(
    parameter int unsigned BLOCKS = 8,
    parameter int unsigned BLOCK = 32,
    parameter int unsigned ROW = 8,  // bits of a line's number
    parameter int unsigned COUNT = 9
) (
    input logic clock,
    input logic reset,

    input logic start,  // held until `done` has been taken; the lines must not change
    input logic [BLOCKS*BLOCK-1:0] lines,
    input logic taken,
    output logic done,

    output logic write,
    output logic [ROW-1:0] index,
    output logic [COUNT-1:0] count  // lines read out since the start, the place of the next one
);
  localparam int unsigned LOG_BLOCK = $clog2(BLOCK);
  localparam int unsigned NUMBER = BLOCKS > 1 ? $clog2(BLOCKS) : 1;

  logic [BLOCKS-1:0] occupied, left;
  always_comb begin
    for (int unsigned b = 0; b < BLOCKS; b++) occupied[b] = |lines[b*BLOCK+:BLOCK];
  end

  logic busy, last;
  logic [NUMBER-1:0] next_block, block;
  logic [BLOCK-1:0] word, rest;
  logic [LOG_BLOCK-1:0] lowest;
  always_comb begin
    next_block = '0;
    for (int unsigned b = BLOCKS; b > 0; b--) if (left[b-1]) next_block = NUMBER'(b - 1);
    lowest = '0;
    for (int unsigned i = BLOCK; i > 0; i--) if (word[i-1]) lowest = LOG_BLOCK'(i - 1);
  end

  assign rest = word & (word - 1'b1);
  assign last = rest == '0;
  assign write = busy && word != '0;
  assign index = ROW'({block, lowest});
  assign done = busy && word == '0 && left == '0;

  always_ff @(posedge clock) begin
    if (reset) begin
      busy <= 1'b0;
      count <= '0;
      word <= '0;
      left <= '0;
    end else if (!busy) begin
      busy <= start;
      if (start) begin
        left <= occupied;
        count <= '0;
      end
    end else if (done) begin
      busy <= !taken;
    end else begin
      if (write) count <= count + 1'b1;
      word <= rest;
      // The next block is fetched while the last match of this one goes out.
      if (last && left != '0) begin
        word <= lines[next_block*BLOCK+:BLOCK];
        block <= next_block;
        left[next_block] <= 1'b0;
      end
    end
  end
endmodule
