"""From loop IR to native code: LLVM IR text, vector math, conversions."""
