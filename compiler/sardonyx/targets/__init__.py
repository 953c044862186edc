"""Target machines: what they can do, and LLVM's machine for them."""
