// a sum of constants
// PASSES: fold
// CHECK: core.constant {value = dense<[4.0, 6.0]> : tensor<2xf32>}
// CHECK-NOT: core.add
// CHECK: core.return
func @main() -> tensor<2xf32> {
  %a = core.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = core.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %c = core.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  core.return %c : (tensor<2xf32>) -> ()
}
// -----
// what follows from a folded op folds as well; integers beyond 2**53 stay exact
// PASSES: fold
// CHECK: core.constant {value = dense<false> : tensor<i1>}
// CHECK-NEXT: core.return
func @main() -> tensor<i1> {
  %a = core.constant {value = dense<18446744073709551615> : tensor<ui64>} : () -> tensor<ui64>
  %b = core.constant {value = dense<1> : tensor<ui64>} : () -> tensor<ui64>
  %c = core.sub %a, %b : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
  %d = core.ge %c, %a : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
  core.return %d : (tensor<i1>) -> ()
}
// -----
// NaN is not greater than or equal to itself
// PASSES: fold
// CHECK: dense<false> : tensor<i1>
func @main() -> tensor<i1> {
  %a = core.constant {value = dense<0x7FC00000> : tensor<f32>} : () -> tensor<f32>
  %d = core.ge %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  core.return %d : (tensor<i1>) -> ()
}
// -----
// a division by zero stays: the run has to report it
// PASSES: fold
// CHECK: core.div
func @main() -> tensor<i32> {
  %a = core.constant {value = dense<7> : tensor<i32>} : () -> tensor<i32>
  %b = core.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %c = core.div %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
  core.return %c : (tensor<i32>) -> ()
}
// -----
// functions that machines round differently are left to the machine
// PASSES: fold
// CHECK: core.exp
func @main() -> tensor<f32> {
  %a = core.constant {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
  %b = core.exp %a : (tensor<f32>) -> tensor<f32>
  core.return %b : (tensor<f32>) -> ()
}
// -----
// a transposed constant is written down in its new order
// PASSES: fold{moves=true}
// CHECK: core.constant {value = dense<{{.*}}1.0, 3.0{{.*}}2.0, 4.0{{.*}}> : tensor<2x2xf32>}
// CHECK-NOT: core.transpose
func @main() -> tensor<2x2xf32> {
  %a = core.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %b = core.transpose %a {permutation = [1, 0]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  core.return %b : (tensor<2x2xf32>) -> ()
}
// -----
// a transposed argument stays
// PASSES: fold{moves=true}
// CHECK: core.transpose %x
func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %b = core.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  core.return %b : (tensor<3x2xf32>) -> ()
}
// -----
// moves are all that it folds then
// PASSES: fold{moves=true}
// CHECK: core.add
func @main() -> tensor<f32> {
  %a = core.constant {value = dense<1.5> : tensor<f32>} : () -> tensor<f32>
  %b = core.add %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  core.return %b : (tensor<f32>) -> ()
}
