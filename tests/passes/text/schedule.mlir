// a group becomes a kernel that the program launches
// PASSES: fuse,schedule
// CHECK: func @main()
// CHECK-SAME: inputs = [{name = "x", dtype = f32, shape = #sdx.dims<"n">}]
// CHECK: %[[X:.*]] = loop.input {number = 0, dtype = f32}
// CHECK: %[[Y:.*]] = loop.output {number = 0, dtype = f32, size = #sdx.dim<"4*n">, late = false}
// CHECK: loop.launch %[[X]], %[[Y]]
// CHECK-SAME: kernel = "[[K:k_[0-9a-f]+]]"
// CHECK: func @[[K]](
// CHECK: loop.load
// CHECK-SAME: vector<8xf32>
// CHECK-NEXT: loop.floor
// CHECK: loop.store
func @main(%x: tensor<?xf32, #sdx.dims<"n">>) -> tensor<?xf32, #sdx.dims<"n">> {
  %a = core.floor %x : (tensor<?xf32, #sdx.dims<"n">>) -> tensor<?xf32, #sdx.dims<"n">>
  core.return %a : (tensor<?xf32, #sdx.dims<"n">>) -> ()
}
// -----
// equal groups share a kernel
// PASSES: fuse,schedule
// CHECK: loop.launch
// CHECK-SAME: kernel = "[[K:k_[0-9a-f]+]]"
// CHECK: loop.launch
// CHECK-SAME: kernel = "[[K]]"
// CHECK: func @k_
// CHECK-NOT: func @k_
func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = core.floor %x : (tensor<8xf32>) -> tensor<8xf32>
  %b = core.floor %y : (tensor<8xf32>) -> tensor<8xf32>
  core.return %a, %b : (tensor<8xf32>, tensor<8xf32>) -> ()
}
// -----
// a constant lies among the weights; bool comes out of a comparison
// PASSES: fuse,schedule
// CHECK: weights = [{offset = 0, value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}]
// CHECK: loop.weights {offset = 0, dtype = f32}
// CHECK: loop.ge
// CHECK: loop.store {{.*}}vector<{{[0-9]+}}xi1>
func @main(%x: tensor<4xf32>) -> tensor<4xi1> {
  %w = core.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %a = core.ge %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  core.return %a : (tensor<4xi1>) -> ()
}
