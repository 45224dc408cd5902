"""MJCF, the files of MuJoCo.

mjcf.py             reading MJCF files as mechanisms, by way of MuJoCo's own compiler
mjcf_actuator.py    actuators of a compiled MJCF model
mjcf_force.py       springs, friction, tendons and couplings of a compiled MJCF model
mjcf_model.py       the compiled model of an MJCF text
mjcf_part.py        bodies, joints, shapes and closures of a compiled MJCF model
mjcf_path.py        lengths of a compiled MJCF model: tendons through sites, over pulleys and round shapes, and slider-cranks
mjcf_range.py       ranges of a compiled MJCF model that limit a sum of forces (actuatorfrcrange)
mjcf_text.py        the text of an MJCF file prepared for MuJoCo's compiler
"""
