"""One time step as an expression: integrators, the law, switches, inputs, signals; and the compiled loop of steps.

activation.py            constraints that become active or jump during a run
attempt.py               steps under error control as a step of the compiled loop
choice_of_pair.py        which pair makes the next step of a lane under error control
closed_loop.py           a simulation under its law at symbols, with the algebraic loop through measured reactions solved
draft.py                 a result before it is labelled
events.py                instants at which conditions or parameters change with the motion: where they are, what changes
faults.py                the faults that may stop a run, grouped by origin
first_states.py          starts from which no run can begin
inputs.py                inputs of a run, constant or as a time series; times and step counts
integrators.py           the integrators: one time step by each of them, and the terms of the equations that each needs
joint_loads.py           peak loads of all joints and closures as outputs and statistics
kinks.py                 kinks and jumps of forces, laws and rows, which are events under error control
labels.py                labels of a result: its Dataset
lane.py                  the lanes of the compiled loop under error control, and the samples of a law there
limits.py                how far a run exceeded limits of joints and inputs; saturation of inputs
method.py                what an integrator takes and returns
motion_statistics.py     statistics of the continuous motion of runs to an accuracy
pairs.py                 explicit Runge-Kutta pairs, with an estimate of the error of a step
reaction_output.py       reaction wrenches of joints and closures as outputs of a run
rebounds.py              velocities after impacts
recorded_signals.py      labels and sizes of the signals that a simulation records
run_arguments.py         scheme, law and outputs of a run as a caller gives them, checked
running_statistics.py    statistics of signals, accumulated without storing the signals
sampling.py              laws in discrete time within a run
signals.py               the signals that a run records
simulation.py            a system under a control law and a scheme
split.py                 a step of one length that is split at events
step.py                  one time step as CasADi functions
stiff_pair.py            the stiff pair: Radau IIA of order 5
switches.py              parameters that change during a run: modes that latch
tangent.py               changes of any state from changes of q and v, and back, for implicit steps
thresholds.py            the comparisons that decide conditions, and the numbers that are zero where they change
time_loop.py             the compiled steps of a run with their inputs
time_marks.py            instants at which the equations change abruptly with time
tracing.py               the functions of a simulation that the kernel compiles
turns.py                 parameters by which a run counts the turns of closures
"""
