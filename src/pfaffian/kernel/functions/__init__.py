"""Elementary functions from IEEE operations only: one text that NumPy runs and C compiles, to the same bits.

angle_reduction.py    exact reduction of a huge angle modulo pi/2
arithmetic.py         two uses of an elementary function: on NumPy arrays, and as C text
elementary.py         the table of all elementary functions, and the trigonometric ones
exact.py              sums and products with their rounding errors, and polynomials
transcendental.py     exponential, logarithm, power, inverse trigonometric and hyperbolic functions
"""
