// The TCAM behind ports that have the same width for all parameters, for the driver.
module port #(
    parameter int unsigned ENTRIES = 256,
    parameter int unsigned WIDTH = 16,
    parameter int unsigned BLOCK = 32
) (
    input logic clock,
    input logic reset,
    input logic request_valid,
    output logic request_ready,
    input logic [7:0] operation,
    input logic [63:0] a,  // key
    input logic [63:0] b,  // bits that match anything, or a random word
    input logic [63:0] c,  // row, and in bit 63 its valid bit
    output logic response_valid,
    input logic response_ready,
    output logic [63:0] x,  // count
    output logic [63:0] y,  // row
    output logic [63:0] z,  // 0
    input logic [15:0] select,
    output logic [31:0] word  // 32 match lines
);
  localparam int unsigned ROW = $clog2(ENTRIES);
  localparam int unsigned WORDS = (ENTRIES + 31) / 32;
  logic [$clog2(ENTRIES + 1)-1:0] count;
  logic [ROW-1:0] row;
  logic [ENTRIES-1:0] lines;
  logic [WORDS-1:0][31:0] words;

  tcam #(
      .ENTRIES(ENTRIES),
      .WIDTH  (WIDTH),
      .BLOCK  (BLOCK)
  ) dut (
      .clock,
      .reset,
      .request_valid,
      .request_ready,
      .request_operation(3'(operation)),
      .request_row(ROW'(c)),
      .request_key(WIDTH'(a)),
      .request_dont_care(WIDTH'(b)),
      .request_stored(c[63]),
      .request_random(32'(b)),
      .response_valid,
      .response_ready,
      .response_count(count),
      .response_row(row),
      .response_lines(lines)
  );
  assign x = 64'(count);
  assign y = 64'(row);
  assign z = '0;
  assign words = (32 * WORDS)'(lines);
  assign word = 32'(select) < WORDS ? words[select] : '0;
endmodule
