// A memory of rows with one port to read and one to write, as RAM blocks have.
//
// A read that meets a write of its row gives the new row. RAM blocks differ in that case, so it is
// settled here, by a register and a comparison: the pipelines need it where one operation follows
// another at once.
module row_memory #(
    parameter int unsigned ROWS = 16,
    parameter int unsigned WIDTH = 32,
    localparam int unsigned ADDRESS = ROWS > 1 ? $clog2(ROWS) : 1
) (
    input logic clock,
    input logic advance,  // the row that is read changes only then
    input logic [ADDRESS-1:0] read_address,
    output logic [WIDTH-1:0] read_row,
    input logic write,
    input logic [ADDRESS-1:0] write_address,
    input logic [WIDTH-1:0] write_row
);
  logic [WIDTH-1:0] rows[ROWS];
  logic [WIDTH-1:0] stored_row, new_row;
  logic meets;

  always_ff @(posedge clock) begin
    if (write) rows[write_address] <= write_row;
    if (advance) begin
      stored_row <= rows[read_address];
      new_row <= write_row;
      meets <= write && write_address == read_address;
    end
  end

  assign read_row = meets ? new_row : stored_row;
endmodule
