// a value that is not defined
// PASSES: simplify
// ERROR: %nothing
func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = core.add %x, %nothing : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  core.return %0 : (tensor<4xf32>) -> ()
}
// -----
// a result of another type than the rule gives
// PASSES: simplify
// ERROR: the module does not verify
// ERROR: results are tensor<5xf32>; the rule gives tensor<4xf32>
// ERROR: >   %0 = core.floor %x
func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = core.floor %x : (tensor<4xf32>) -> tensor<5xf32>
  core.return %0 : (tensor<5xf32>) -> ()
}
// -----
// operands whose shapes differ
// PASSES: simplify
// ERROR: core.add
// ERROR: 4
// ERROR: 5
func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  %0 = core.add %x, %y : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  core.return %0 : (tensor<4xf32>) -> ()
}
// -----
// an attribute too few, and one too many
// PASSES: simplify
// ERROR: attributes missing ['permutation'], unknown ['axes']
func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.transpose %x {axes = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  core.return %0 : (tensor<4x4xf32>) -> ()
}
// -----
// no terminator
// PASSES: simplify
// ERROR: no terminator, but the last op
func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = core.floor %x : (tensor<4xf32>) -> tensor<4xf32>
}
// -----
// text that is no IR
// PASSES: simplify
// ERROR: line 5, column 19: expected attributes, regions or
func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = core.floor x : (tensor<4xf32>) -> tensor<4xf32>
  core.return %0 : (tensor<4xf32>) -> ()
}
// -----
// no function main
// PASSES: simplify
// ERROR: has no function @main; its functions: @f
func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  core.return %x : (tensor<4xf32>) -> ()
}
