"""Control laws and estimators for an embedded processor, written as C99 that needs nothing but a compiler.

controller.py    a control law as a function that is called once a tick
export.py        `export` writes a control law as files of C99 and reports their cost in operations and memory
stack.py         worst-case stack of an exported law, from the compiler's report
text.py          header, source and test of a controller, as text in C99
"""
