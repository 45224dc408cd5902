"""C text -> loaded library: the compiler, the store of compiled objects, and the trial of each new object."""
