// code is made, and the module stays
// PASSES: fuse,schedule,plan-memory,codegen
// CHECK: loop.launch
func @main(%x: tensor<16xbf16>) -> tensor<16xbf16> {
  %a = core.floor %x : (tensor<16xbf16>) -> tensor<16xbf16>
  core.return %a : (tensor<16xbf16>) -> ()
}
// -----
// there is no code for a tensor op
// PASSES: codegen
// ERROR: lacks what a program needs
func @main(%x: tensor<16xbf16>) -> tensor<16xbf16> {
  %a = core.floor %x : (tensor<16xbf16>) -> tensor<16xbf16>
  core.return %a : (tensor<16xbf16>) -> ()
}
