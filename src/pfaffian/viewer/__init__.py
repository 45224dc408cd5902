"""Output for people: tables, summaries, figures, 3D views, studies and their claims.

animate.py      the motion of a run as a film, a GIF or a page that plays in a browser
beside.py       plots that an animation page shows beside the motion
browser.py      a 3D view of a machine or its motion in a browser, seen from any side and moved by its joints
build.py        make the scene of a mechanism from its states
camera.py       where a picture is taken from
chart.py        a matplotlib Figure that a notebook displays in the library's style
collada.py      plain COLLADA files as solids
contacts.py     where a machine touches its surroundings: planes, feet, obstacles, what rolls
curves.py       lines over time: medians and bands, thinned without losing a peak
describe.py     describe a mechanism in tables
doctor.py       the packages and tools of this computer, and a test of each backend
drawing.py      the common style of all figures
entries.py      entries of signals with their names and units, as plots show them
equations.py    the equations of motion in letters
figures.py      the overview of a result in one figure
fit_report.py   a fit to measured motion as one HTML page
fittings.py     the parts of a scene other than bodies
formulas.py     short forms of formulas, and their LaTeX
linear_equations.py  the equations linearised at a state, in letters
lines.py        lines along paths, and what they go round, as parts of a scene
latex.py        the kinematics of an open chain as LaTeX
laws.py         find a control law named on the command line
legend.py       the scale of arrows in pictures
logs.py         results as files of other viewers and tools: MCAP, .rrd, CSV, Parquet
manual.py       the pages of the manual that come with the package
maps.py         maps of a quantity over two coordinates or goals of a mechanism
meshes.py       meshes from files, as solids with few enough triangles
names.py        names of bodies written into pictures
notebook.py     machines and results as HTML for notebooks, with a picture and the main facts
page.py         a scene as one HTML file that plays anywhere
picture.h       pictures with shadows, in C
picture.py      pictures of triangles as pixels, with shadows and occlusion
player.html     the script of a page
plots.py        plots of chosen signals of a result, over time or over another signal
rams.py         tubes and rods that slide in each other, drawn as one part
render.py       frames of a scene as pixels
run_study.py    studies: modules that reproduce a figure or table of a paper and check claims about it
scene.py        what a picture contains, whichever program draws it
sketch.py       pictures of bodies without shapes
solids.py       triangles of solids in closed form: boxes, spheres, cylinders, capsules and cones
spectra.py      root locus and Campbell diagram
still.py        one picture of a whole motion
strokes.py      curves over a stroke: suspensions, linkages, loads of pins
summary.py      a run in a few lines of text
sweeps.py       figures of sweeps: parallel axes, a heat map of cells, or a scatter of points
zoo.py          the zoo: the machines that come with the package
"""
