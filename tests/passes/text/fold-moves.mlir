// a transposed constant is written down in its new order
// PASSES: fold-moves
// CHECK: core.constant {value = dense<{{.*}}1.0, 3.0{{.*}}2.0, 4.0{{.*}}> : tensor<2x2xf32>}
// CHECK-NOT: core.transpose
func @main() -> tensor<2x2xf32> {
  %a = core.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b = core.transpose %a {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  core.return %b : (tensor<2x2xf32>) -> ()
}
// -----
// a transposed argument stays
// PASSES: fold-moves
// CHECK: core.transpose %x
func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %b = core.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  core.return %b : (tensor<3x2xf32>) -> ()
}
