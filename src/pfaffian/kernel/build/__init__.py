"""C text -> loaded library: the compiler, the store of compiled objects, and the trial of each new object.

compiled_passes.py    the passes in C: built once on a machine, then found in the store
decisions.py          inputs on both sides of a Program's decisions
exercise.py           inputs that exercise all of a kernel, with the interpreter's answers
interpreter.py        the interpreter in C: built once on a machine, then found in the store
library.py            C text -> loaded library: from the store, or else compiled, tested and published in the store
loop_trial.py         answers of the interpreter's own trial
nvrtc.py              CUDA C++ to machine code of a device, by NVIDIA's NVRTC, which works without a device
object_store.py       the store of compiled objects
prebuilt.py           compiled objects in a binary wheel
private_files.py      folders and files that only this user can write
processes.py          child processes: several at once, each in its own session, all killed at a time-out
processor.py          the processor of this machine, as the operating system describes it
toolchain.py          the C compiler: finding it, identifying it exactly, and running it
trial.py              the trial of a new object before any process may load it
waiting.py            progress messages while a caller waits for a kernel
"""
