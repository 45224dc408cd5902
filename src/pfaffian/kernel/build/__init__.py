"""Text -> loaded library: the compiler, the store of compiled objects, the trial before anyone uses one."""
