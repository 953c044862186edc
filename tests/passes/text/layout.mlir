// a transpose moves behind an elementwise op
// PASSES: layout
// CHECK: %[[A:.*]] = core.abs %x : (tensor<2x3xf32>)
// CHECK-NEXT: core.transpose %[[A]] {permutation = [1, 0]}
func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %p = core.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %q = core.abs %p : (tensor<3x2xf32>) -> tensor<3x2xf32>
  core.return %q : (tensor<3x2xf32>) -> ()
}
// -----
// and meets its inverse
// PASSES: layout,simplify
// CHECK-NOT: core.transpose
// CHECK: core.abs %x
// CHECK-NOT: core.transpose
// CHECK: core.return
func @main(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %p = core.transpose %x {permutation = [0, 2, 3, 1]} : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
  %q = core.abs %p : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %r = core.transpose %q {permutation = [0, 3, 1, 2]} : (tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32>
  core.return %r : (tensor<1x8x4x4xf32>) -> ()
}
