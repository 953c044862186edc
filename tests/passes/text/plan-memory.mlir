// two tensors whose lives do not overlap share a place
// PASSES: fuse{max=1},schedule,plan-memory
// CHECK: chunks = [128]
// CHECK: loop.arena {chunk = 0, size = 128}
// CHECK: %a = loop.place {chunk = 0, offset = [[A:[0-9]+]], size = 64, dtype = f32}
// CHECK: %b = loop.place {chunk = 0, offset = {{[0-9]+}}, size = 64, dtype = f32}
// CHECK: %c = loop.place {chunk = 0, offset = [[A]], size = 64, dtype = f32}
// CHECK-NOT: loop.allocate
func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %a = core.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  %b = core.sin %a : (tensor<16xf32>) -> tensor<16xf32>
  %c = core.exp %b : (tensor<16xf32>) -> tensor<16xf32>
  %d = core.sin %c : (tensor<16xf32>) -> tensor<16xf32>
  core.return %d : (tensor<16xf32>) -> ()
}
// -----
// sizes with symbols
// PASSES: fuse{max=1},schedule,plan-memory
// CHECK: chunks = #sdx.dims<"64*floordiv(n+15, 16)">
// CHECK: loop.place {chunk = 0, offset = 0, size = #sdx.dim<"64*floordiv(n+15, 16)">, dtype = f32}
func @main(%x: tensor<?xf32, #sdx.dims<"n">>) -> tensor<?xf32, #sdx.dims<"n">> {
  %a = core.exp %x : (tensor<?xf32, #sdx.dims<"n">>) -> tensor<?xf32, #sdx.dims<"n">>
  %b = core.sin %a : (tensor<?xf32, #sdx.dims<"n">>) -> tensor<?xf32, #sdx.dims<"n">>
  core.return %b : (tensor<?xf32, #sdx.dims<"n">>) -> ()
}
// -----
// planned memory stays as it is
// PASSES: fuse,schedule,plan-memory,plan-memory
// CHECK: chunks = []
func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %a = core.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  core.return %a : (tensor<16xf32>) -> ()
}
