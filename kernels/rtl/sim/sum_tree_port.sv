// The sum tree behind ports that have the same width for all parameters, for the driver.
module port #(
    parameter int unsigned K = 16,
    parameter int unsigned DEPTH = 3,
    parameter int unsigned WIDTH = 16
) (
    input logic clock,
    input logic reset,
    input logic request_valid,
    output logic request_ready,
    input logic [7:0] operation,
    input logic [63:0] a,  // prefix or index
    input logic [63:0] b,  // value
    input logic [63:0] c,  // not used
    output logic response_valid,
    input logic response_ready,
    output logic [63:0] x,  // index
    output logic [63:0] y,  // value, and in bit 63 whether a sample hit
    output logic [63:0] z,  // total
    input logic [15:0] select,  // not used
    output logic [31:0] word
);
  localparam int unsigned INDEX = DEPTH * $clog2(K);
  logic [INDEX-1:0] index;
  logic [WIDTH-1:0] value;
  logic [WIDTH+INDEX-1:0] total;
  logic hit;

  sum_tree #(
      .K(K),
      .DEPTH(DEPTH),
      .WIDTH(WIDTH)
  ) dut (
      .clock,
      .reset,
      .request_valid,
      .request_ready,
      .request_operation(2'(operation)),
      .request_index(INDEX'(a)),
      .request_value(WIDTH'(b)),
      .request_prefix((WIDTH + INDEX)'(a)),
      .response_valid,
      .response_ready,
      .response_index(index),
      .response_value(value),
      .response_hit(hit),
      .response_total(total)
  );
  assign x = 64'(index);
  assign y = {hit, 63'(value)};
  assign z = 64'(total);
  assign word = '0;
endmodule
