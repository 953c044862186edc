// a chain of elementwise ops is one group
// PASSES: fuse
// CHECK: core.fused %x {kind = "map"} ({
// CHECK: core.floor
// CHECK: core.abs
// CHECK: core.yield
// CHECK-NOT: core.fused
// CHECK: core.return
func @main(%x: tensor<?x3xf32, #sdx.dims<"n", 3>>) -> tensor<?x3xf32, #sdx.dims<"n", 3>> {
  %a = core.floor %x : (tensor<?x3xf32, #sdx.dims<"n", 3>>) -> tensor<?x3xf32, #sdx.dims<"n", 3>>
  %b = core.abs %a : (tensor<?x3xf32, #sdx.dims<"n", 3>>) -> tensor<?x3xf32, #sdx.dims<"n", 3>>
  core.return %b : (tensor<?x3xf32, #sdx.dims<"n", 3>>) -> ()
}
// -----
// a group has no more ops than it may have
// PASSES: fuse{max=2}
// CHECK: core.fused %x
// CHECK: core.floor
// CHECK: core.fused
// CHECK: core.abs
// CHECK: core.neg
func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = core.floor %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = core.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = core.neg %b : (tensor<8xf32>) -> tensor<8xf32>
  core.return %c : (tensor<8xf32>) -> ()
}
// -----
// what two groups need is computed once, by itself
// PASSES: fuse
// CHECK: %[[E:.*]] = core.fused %x
// CHECK: core.exp
// CHECK: core.fused %[[E]]
// CHECK: core.fused
func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %a = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = core.abs %a : (tensor<8xf32>) -> tensor<8xf32>
  %c = core.reduce %a {kind = "sum", axes = [0]} : (tensor<8xf32>) -> tensor<f32>
  core.return %b, %c : (tensor<8xf32>, tensor<f32>) -> ()
}
// -----
// a reduction takes in what it reads and what follows row by row
// PASSES: fuse
// LOCATIONS
// CHECK: core.fused %x {kind = "rows"} ({
// CHECK: core.abs
// CHECK: core.reduce
// CHECK: core.broadcast
// CHECK: core.sub
// CHECK: loc(fused["main|c:Sub(y)", "main|a:Abs(p)", "main|b:ReduceMax(q)"])
// CHECK-NEXT: core.return
func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = core.abs %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("main|a:Abs(p)")
  %q = core.reduce %p {kind = "max", axes = [1]} : (tensor<4x8xf32>) -> tensor<4xf32> loc("main|b:ReduceMax(q)")
  %r = core.reshape %q {shape = [4, 1]} : (tensor<4xf32>) -> tensor<4x1xf32> loc("main|b:ReduceMax(q)")
  %s = core.broadcast %r {shape = [4, 8]} : (tensor<4x1xf32>) -> tensor<4x8xf32> loc("main|c:Sub(y)")
  %y = core.sub %p, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> loc("main|c:Sub(y)")
  core.return %y : (tensor<4x8xf32>) -> ()
}
// -----
// a view needs no kernel
// PASSES: fuse
// CHECK-NOT: core.fused
// CHECK: core.reshape
func @main(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %y = core.reshape %x {shape = [32]} : (tensor<4x8xf32>) -> tensor<32xf32>
  core.return %y : (tensor<32xf32>) -> ()
}
// -----
// an empty tensor and one of rank 0
// PASSES: fuse
// CHECK: core.fused
// CHECK: core.fused
func @main(%x: tensor<0xf32>, %y: tensor<bf16>) -> (tensor<0xf32>, tensor<bf16>) {
  %a = core.floor %x : (tensor<0xf32>) -> tensor<0xf32>
  %b = core.floor %y : (tensor<bf16>) -> tensor<bf16>
  core.return %a, %b : (tensor<0xf32>, tensor<bf16>) -> ()
}
