// nodes become typed core ops; broadcasts are explicit
// PASSES: lower
// LOCATIONS
// CHECK: %f = core.floor %x {{.*}} loc("main|Floor_0:Floor(f)")
// CHECK: core.broadcast %b {shape = #sdx.dims<"n", 3>} {{.*}} loc("main|ge:GreaterOrEqual(y)")
// CHECK: core.ge {{.*}} -> tensor<?x3xi1, #sdx.dims<"n", 3>> loc("main|ge:GreaterOrEqual(y)")
func @main(%x: tensor<?x3xf32, #sdx.dims<"n", 3>>, %b: tensor<3xf32>) -> !sdx.unknown attributes {inputs = ["x", "b"], outputs = ["y"], defaults = {}} {
  %f = onnx.Floor %x {sdx.opset = 20} : (tensor<?x3xf32, #sdx.dims<"n", 3>>) -> !sdx.unknown loc("main|Floor_0:Floor(f)")
  %y = onnx.GreaterOrEqual %f, %b {sdx.opset = 20} : (!sdx.unknown, tensor<3xf32>) -> !sdx.unknown loc("main|ge:GreaterOrEqual(y)")
  core.return %y : (!sdx.unknown) -> ()
}
// -----
// a type that the operator does not take
// PASSES: lower
// ERROR: node 'Floor_0' (Floor)
// ERROR: int32
func @main(%x: tensor<4xi32>) -> !sdx.unknown attributes {inputs = ["x"], outputs = ["f"], defaults = {}} {
  %f = onnx.Floor %x {sdx.opset = 20} : (tensor<4xi32>) -> !sdx.unknown loc("main|Floor_0:Floor(f)")
  core.return %f : (!sdx.unknown) -> ()
}
// -----
// shapes that do not broadcast
// PASSES: lower
// ERROR: node 'ge' (GreaterOrEqual)
// ERROR: [2, 3]
// ERROR: [4]
func @main(%x: tensor<2x3xf32>, %b: tensor<4xf32>) -> !sdx.unknown attributes {inputs = ["x", "b"], outputs = ["y"], defaults = {}} {
  %y = onnx.GreaterOrEqual %x, %b {sdx.opset = 16} : (tensor<2x3xf32>, tensor<4xf32>) -> !sdx.unknown loc("main|ge:GreaterOrEqual(y)")
  core.return %y : (!sdx.unknown) -> ()
}
// -----
// dims that may not fit together are checked by the run
// PASSES: lower
// CHECK: core.require {relation = "broadcast", left = #sdx.dim<"n">, right = #sdx.dim<"m">
// CHECK: core.ge {{.*}} -> tensor<?xi1, #sdx.dims<"bcast(m, n)">>
func @main(%x: tensor<?xf32, #sdx.dims<"n">>, %b: tensor<?xf32, #sdx.dims<"m">>) -> !sdx.unknown attributes {inputs = ["x", "b"], outputs = ["y"], defaults = {}} {
  %y = onnx.GreaterOrEqual %x, %b {sdx.opset = 16} : (tensor<?xf32, #sdx.dims<"n">>, tensor<?xf32, #sdx.dims<"m">>) -> !sdx.unknown loc("main|ge:GreaterOrEqual(y)")
  core.return %y : (!sdx.unknown) -> ()
}
// -----
// arithmetic on a shape becomes dims
// PASSES: lower
// CHECK-NOT: core.bind_dims
// CHECK: core.reshape %x {shape = #sdx.dims<"2*n">}
func @main(%x: tensor<?x2xf32, #sdx.dims<"n", 2>>) -> !sdx.unknown attributes {inputs = ["x"], outputs = ["y"], defaults = {}} {
  %s = onnx.Shape %x {sdx.opset = 20} : (tensor<?x2xf32, #sdx.dims<"n", 2>>) -> !sdx.unknown loc("main|s:Shape(s)")
  %p = onnx.ReduceProd %s {sdx.opset = 13} : (!sdx.unknown) -> !sdx.unknown loc("main|p:ReduceProd(p)")
  %y = onnx.Reshape %x, %p {sdx.opset = 20} : (tensor<?x2xf32, #sdx.dims<"n", 2>>, !sdx.unknown) -> !sdx.unknown loc("main|y:Reshape(y)")
  core.return %y : (!sdx.unknown) -> ()
}
