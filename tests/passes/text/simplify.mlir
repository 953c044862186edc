// what nothing uses goes
// PASSES: simplify
// CHECK-LABEL: func @main
// CHECK-NOT: core.exp
// CHECK: core.return %x
func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  core.return %x : (tensor<4xf32>) -> ()
}
// -----
// equal ops become one, which names the nodes of both
// PASSES: simplify
// LOCATIONS
// CHECK: %[[A:.*]] = core.exp %x : {{.*}} loc(fused["main|a:Exp(p)", "main|b:Exp(q)"])
// CHECK-NOT: core.exp
// CHECK: core.add %[[A]], %[[A]]
func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = core.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("main|a:Exp(p)")
  %q = core.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("main|b:Exp(q)")
  %y = core.add %p, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  core.return %y : (tensor<4xf32>) -> ()
}
// -----
// ops that differ in an attribute stay apart
// PASSES: simplify
// CHECK: core.transpose %x {permutation = [1, 0, 2]}
// CHECK: core.transpose %x {permutation = [1, 2, 0]}
func @main(%x: tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %p = core.transpose %x {permutation = [1, 0, 2]} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %q = core.transpose %x {permutation = [1, 2, 0]} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  core.return %p, %q : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> ()
}
// -----
// a transpose that meets its inverse
// PASSES: simplify
// CHECK-NOT: core.transpose
// CHECK: core.return %x
func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %p = core.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %q = core.transpose %p {permutation = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  core.return %q : (tensor<2x3xf32>) -> ()
}
// -----
// two transposes become one
// PASSES: simplify
// CHECK: core.transpose %x {permutation = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: core.return
func @main(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %p = core.transpose %x {permutation = [1, 2, 0]} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %q = core.transpose %p {permutation = [1, 2, 0]} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  core.return %q : (tensor<4x2x3xf32>) -> ()
}
// -----
// reshapes of symbolic shapes
// PASSES: simplify
// CHECK-LABEL: func @main
// CHECK-NEXT: core.reshape %x
// CHECK-SAME: -> tensor<?xf32, #sdx.dims<"6*n">>
// CHECK-NEXT: core.return
func @main(%x: tensor<?x2x3xf32, #sdx.dims<"n", 2, 3>>) -> tensor<?xf32, #sdx.dims<"6*n">> {
  %p = core.reshape %x {shape = #sdx.dims<"2*n", 3>} : (tensor<?x2x3xf32, #sdx.dims<"n", 2, 3>>) -> tensor<?x3xf32, #sdx.dims<"2*n", 3>>
  %q = core.reshape %p {shape = #sdx.dims<"6*n">} : (tensor<?x3xf32, #sdx.dims<"2*n", 3>>) -> tensor<?xf32, #sdx.dims<"6*n">>
  core.return %q : (tensor<?xf32, #sdx.dims<"6*n">>) -> ()
}
// -----
// floor of floor, but not the negative of the negative
// PASSES: simplify
// CHECK: %[[F:.*]] = core.floor %x
// CHECK-NEXT: %[[N:.*]] = core.neg %[[F]]
// CHECK-NEXT: %{{.*}} = core.neg %[[N]]
func @main(%x: tensor<?xbf16, #sdx.dims<"n">>) -> tensor<?xbf16, #sdx.dims<"n">> {
  %0 = core.floor %x : (tensor<?xbf16, #sdx.dims<"n">>) -> tensor<?xbf16, #sdx.dims<"n">>
  %1 = core.floor %0 : (tensor<?xbf16, #sdx.dims<"n">>) -> tensor<?xbf16, #sdx.dims<"n">>
  %2 = core.neg %1 : (tensor<?xbf16, #sdx.dims<"n">>) -> tensor<?xbf16, #sdx.dims<"n">>
  %3 = core.neg %2 : (tensor<?xbf16, #sdx.dims<"n">>) -> tensor<?xbf16, #sdx.dims<"n">>
  core.return %3 : (tensor<?xbf16, #sdx.dims<"n">>) -> ()
}
// -----
// nothing to do
// PASSES: simplify
// CHECK: core.floor %x
func @main(%x: tensor<f64>) -> tensor<f64> {
  %0 = core.floor %x : (tensor<f64>) -> tensor<f64>
  core.return %0 : (tensor<f64>) -> ()
}
