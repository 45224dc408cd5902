"""C text -> loaded library: the compiler, the store of compiled objects, the trial before one is used."""
