"""Check the animation page, the 3D view and the site in a real browser: they open, play and fit, without errors.

python -m tools.browser                    # both, of examples/four_bar.yaml; pictures into out/browser
python -m tools.browser page motion.html   # a page that `pfaffian run NAME --animate motion.html` wrote
python -m tools.browser page hundred       # the page of 100 pendulums, with the time of a frame of its script
python -m tools.browser view four_bar      # the view of a machine of the zoo or a file
python -m tools.browser shots              # one picture each of SHOTS in the view, into docs/_static
python -m tools.browser site               # the site that `python -m tools.pages` built, on a screen and on a telephone

Needs Chromium or Chrome in the path and the package websockets, which comes with viser. CI does not run it; its tests examine
the scene itself.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

OPTIONS = ("--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--mute-audio",
           "--remote-debugging-port=0", "--window-size=1000,750", "--hide-scrollbars", "--no-first-run")  # fmt: skip
PATIENCE = 60.0
"""Time limit of every action in the browser [s]."""


class Page:
    """One page of a browser, over the DevTools protocol.   errors: errors reported by its console and its scripts."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.count, self.errors = socket, 0, list[str]()
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            self._note(message)
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        found = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = found["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        if message.get("method") == "Log.entryAdded" and found["entry"]["level"] == "error":
            self.errors.append(found["entry"]["text"])
        if message.get("method") == "Runtime.consoleAPICalled" and found["type"] == "error":
            self.errors.append(str([a.get("value", a.get("description")) for a in found["args"]]))

    def evaluate(self, script: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until a script returns a true value."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise RuntimeError(f"{script} stayed false")
            time.sleep(0.1)

    def picture(self, path: Path | None = None) -> np.ndarray:
        """(height, width, 3) picture of the page."""
        from PIL import Image

        data = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=int)


@contextmanager
def opened(url: str) -> Iterator[Page]:
    """A page in a new headless browser."""
    from websockets.sync.client import connect

    program = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
    if program is None:
        sys.exit("there is no chromium, chromium-browser or google-chrome in the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        child = subprocess.Popen([program, *OPTIONS, f"--user-data-dir={folder}", "about:blank"], stderr=subprocess.DEVNULL)
        try:
            port = _port(Path(folder, "DevToolsActivePort"))
            from urllib.request import urlopen

            targets = json.loads(urlopen(f"http://127.0.0.1:{port}/json").read())
            address = next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
            with connect(address, max_size=None) as socket:
                page = Page(socket)
                page.ask("Page.navigate", url=url)
                page.wait("document.readyState === 'complete'")
                yield page
        finally:
            child.terminate()
            child.wait()


def _port(file: Path) -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if file.exists() and file.read_text().count("\n"):
            return int(file.read_text().split("\n")[0])
        time.sleep(0.1)
    raise RuntimeError("the browser did not start")


def change(a: np.ndarray, b: np.ndarray) -> float:
    """Fraction of the pixels that differ."""
    return float((np.abs(a - b).max(axis=2) > 12).mean())


@contextmanager
def _bare(layer: str, click: Callable[[str], Any]) -> Iterator[None]:
    """Hide the shapes, which may cover joints and trails; the toggle of the shapes itself is tested with them."""
    if layer != "shapes":
        click("shapes")
    yield
    if layer != "shapes":
        click("shapes")


def look_at_page(file: Path, out: Path) -> list[str]:
    """List the faults of an animation page, print the time of a frame, and write pictures of the page into a folder."""
    wrong: list[str] = []
    with opened(file.resolve().as_uri()) as page:
        page.wait("state.playing && state.time > first")
        page.evaluate("play(false); state.time = first; draw()")
        start = page.picture(out / "page-start.png")
        page.evaluate("state.time = first + 0.37 * (last - first); draw()")
        middle = page.picture(out / "page-middle.png")
        wrong += [] if change(start, middle) > 0.001 else ["scrubbing changes nothing"]
        for layer in page.evaluate("state.visible"):
            with _bare(layer, lambda name: page.evaluate(f"document.getElementById('layer-{name}').click()")):
                before = page.picture()
                page.evaluate(f"document.getElementById('layer-{layer}').click()")
                after = page.picture(out / f"page-{layer}.png")
                wrong += [] if change(before, after) > 0 else [f"the switch of {layer} changes nothing"]
                page.evaluate(f"document.getElementById('layer-{layer}').click()")
        wrong += _faults_of_plots(page) + _faults_of_bar(page) + _faults_of_hints(page) + _faults_of_time(page)
        before = page.picture()
        for kind, x in (("mousePressed", 300), ("mouseMoved", 420), ("mouseReleased", 420)):
            page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=300, button="left", buttons=1, clickCount=1)
        wrong += [] if change(before, page.picture(out / "page-turned.png")) > 0.001 else ["the mouse turns nothing"]
        wrong += [f"the page requested {x}" for x in page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")]
        return wrong + _faults_of_files(page, out) + page.errors


MOST_SCRIPT = 5.0
"""Longest time that the script of a frame may take, without the drawing itself [ms]: the median of FRAMES frames."""

FRAMES = 20

_TIMED = """timed = part => {
  const began = performance.now();
  state.time = first + (last - first) * part;
  draw();
  const script = state.script;
  gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits until the frame is drawn
  return [script, performance.now() - began];
}"""
"""Script for a frame at a part of the motion: time of the page's own script, and time until it is drawn [ms]."""


def _faults_of_time(page: Page) -> list[str]:
    """Whether the script of a frame takes too long. What it asks WebGL to draw is drawn by another process, here without a
    graphics card; the time until that is done is printed beside it."""
    page.evaluate(_TIMED)
    times = [page.evaluate(f"timed({i / FRAMES})") for i in range(FRAMES)]
    script, whole = np.median(times, axis=0)
    print(f"{page.evaluate('count')} bodies: the script of a frame takes {script:.1f} ms, the longest of {FRAMES} "
          f"{max(t[0] for t in times):.1f} ms; with drawing, without a graphics card, {whole:.0f} ms")  # fmt: skip
    return [f"the script of a frame takes {script:.1f} ms"] if script > MOST_SCRIPT else []


def _click(page: Page, x: float, y: float) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


def _faults_of_bar(page: Page) -> list[str]:
    """Whether the time bar lies below the picture, and a click in it moves the machine to the time there."""
    left, right, y = page.evaluate("(b => [b.left, b.right, (b.top + b.bottom) / 2])(at('at').getBoundingClientRect())")
    page.evaluate("state.time = first; draw()")
    _click(page, 0.4 * left + 0.6 * right, y)
    part = page.evaluate("(state.time - first) / (last - first)")
    wrong = [] if 0.5 < part < 0.7 else [f"a click in the time bar moves the machine to {part:.2f} of the time"]
    covered = page.evaluate("canvas.getBoundingClientRect().bottom - at('bar').getBoundingClientRect().top")
    return wrong + ([f"the time bar covers {covered:.0f} pixels of the picture"] if covered > 1 else [])


def _faults_of_hints(page: Page) -> list[str]:
    """Whether the pointer over the mass centre of a body shows a name."""
    x, y = page.evaluate("draw(); project(centre(count - 1))")
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    seen = page.evaluate("[at('hint').style.display, at('hint').textContent]")
    return [] if seen[0] == "block" and seen[1] else [f"the pointer over a body at ({x:.0f}, {y:.0f}) shows no name"]


def _faults_of_files(page: Page, out: Path) -> list[str]:
    """Whether the buttons PNG and GIF save a picture of the canvas and a film; both are written into the folder."""
    from PIL import Image

    page.evaluate("saved = {}; save = (blob, suffix) => { const r = new FileReader(); "
                  "r.onload = () => { saved[suffix] = r.result.split(',')[1]; }; r.readAsDataURL(blob); }")  # fmt: skip
    width, height = page.evaluate("[canvas.width, canvas.height]")
    wrong: list[str] = []
    for kind in ("png", "gif"):
        page.evaluate(f"at('{kind}').click()")
        page.wait(f"saved['.{kind}'] !== undefined")
        data = base64.b64decode(page.evaluate(f"saved['.{kind}']"))
        (out / f"page-saved.{kind}").write_bytes(data)
        picture = Image.open(io.BytesIO(data))
        frames = getattr(picture, "n_frames", 1)
        first = np.asarray(picture.convert("RGB"), dtype=int)
        wrong += [] if len(np.unique(first.reshape(-1, 3), axis=0)) > 20 else [f"the {kind.upper()} is empty"]
        if kind == "png":
            wrong += [] if picture.size == (width, height) else [f"the PNG has {picture.size} pixels of {(width, height)}"]
        else:
            picture.seek(frames // 2)
            moved = frames > 1 and change(first, np.asarray(picture.convert("RGB"), dtype=int)) > 0.001
            wrong += [] if moved else ["nothing moves in the GIF"]
    return wrong


def _faults_of_plots(page: Page) -> list[str]:
    """Whether a click in the first plot, if there is one, moves the machine to the time there."""
    box = "(({left, right, top}) => [left, right, top])(p.getBoundingClientRect())"
    place = page.evaluate(f"(p => p && {box})(document.querySelector('#side canvas'))")
    if not place:
        return []
    page.evaluate("state.time = first; draw()")
    _click(page, 0.3 * place[0] + 0.7 * place[1], place[2] + 60)
    part = page.evaluate("(state.time - first) / (last - first)")
    return [] if 0.5 < part < 0.8 else [f"a click in a plot moves the machine to {part:.2f} of the time"]


CANVAS = (slice(None), slice(0, 660))
"""The part of a picture of the view that shows the scene, without its panel."""

CLOSE_NOTICES = "document.querySelectorAll('.mantine-Notification-closeButton').forEach(button => button.click())"
"""Closes what viser says over the scene, such as that pictures are drawn without a graphics card."""


def look_at_view(show: Callable[[], Any], out: Path) -> list[str]:
    """List the faults of the 3D view that `show` opens and returns, and write pictures of it into a folder."""
    view = show()
    wrong: list[str] = []

    def seen(page: Page, name: str) -> np.ndarray:
        time.sleep(1.0)
        return page.picture(out / f"view-{name}.png")[CANVAS]

    def click(layer: str) -> None:
        view.switches[layer].value = not view.switches[layer].value
        time.sleep(1.0)

    try:
        with opened(f"http://127.0.0.1:{view.port}") as page:
            page.wait("document.querySelector('canvas') !== null && document.body.innerText.includes('show')")
            view.play(False)
            time.sleep(4.0)
            page.evaluate(CLOSE_NOTICES)
            start = seen(page, "start")
            wrong += [] if len(np.unique(start.reshape(-1, 3), axis=0)) > 50 else ["the picture is empty"]
            first, last = view.run.time[[0, -1]]
            view.seek(first + 0.37 * (last - first))
            wrong += [] if change(start, seen(page, "middle")) > 0.001 else ["scrubbing changes nothing"]
            for layer in view.switches:
                with _bare(layer, click):
                    before = seen(page, "before")
                    click(layer)
                    wrong += [] if change(before, seen(page, layer)) > 0 else [f"the switch of {layer} changes nothing"]
                    click(layer)
            view.play(True)
            frames = [seen(page, "playing") for _ in range(3)]  # one of two instants may have the same phase of a fast machine
            wrong += [] if max(change(frames[0], x) for x in frames[1:]) > 0.001 else ["it does not play"]
            return wrong + page.errors
    finally:
        view.stop()


SHOTS = {"engine": 0.05, "jansen_leg": 1.0, "drones_with_bar": 0.6, "suspension": 0.1, "satellite": 2.0, "bennett": 0.7}
"""By machine of the zoo: time of its motion at which the documentation shows it [s]."""


def shot(name: str, at: float, file: Path) -> list[str]:
    """List the faults of the view of a machine of the zoo, and write a picture of it into a file."""
    import pfaffian as pf
    from pfaffian.viewer import zoo

    found = zoo.machine(name)
    result = zoo.motion(found, zoo.start(found.m, found.settings))
    view = pf.view(found.m, result, block=False)
    try:
        with opened(f"http://127.0.0.1:{view.port}") as page:
            page.wait("document.querySelector('canvas') !== null && document.body.innerText.includes('show')")
            view.play(False)
            view.seek(at)
            time.sleep(6.0)
            page.evaluate(CLOSE_NOTICES)
            time.sleep(1.0)
            seen = page.picture(file)
            empty = len(np.unique(seen.reshape(-1, 3), axis=0)) < 50
            return page.errors + (["the picture is empty"] if empty else [])
    finally:
        view.stop()


VIEWS = ((1280, "light"), (1280, "dark"), (390, "light"))
"""How the site is looked at: width of the window [pixels], of a small screen and a telephone, and colours."""

CONTRAST = 4.5
"""Least ratio of luminances of text and what is behind it, as the guidelines for accessible pages require (WCAG 2, AA)."""

_SITE = """(() => {
  const wide = x => x.scrollWidth > x.clientWidth + 1, name = x => x.textContent.trim().slice(0, 50);
  const rgb = x => { const n = x.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const behind = x => { for (; x; x = x.parentElement) { const c = rgb(getComputedStyle(x).backgroundColor);
                        if (c[3] > 0.5) return c; } return [255, 255, 255, 1]; };
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                     .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0) + 0.05;
  const ratio = x => { const [a, b] = [light(rgb(getComputedStyle(x).color)), light(behind(x))];
                       return Math.max(a, b) / Math.min(a, b); };
  const texts = [...document.querySelectorAll('article *')].filter(x => x.checkVisibility() &&
    [...x.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  const faint = texts.map(x => [ratio(x), name(x)]).sort((a, b) => a[0] - b[0])[0] || [99, ''];
  return [
    ...[...document.querySelectorAll('pre')].filter(wide).map(x => 'code is wider than its box: ' + name(x)),
    ...(wide(document.documentElement) ? ['the page is wider than the window'] : []),
    ...[...document.images].filter(x => x.complete && !x.naturalWidth).map(x => 'no picture ' + x.src),
    ...(faint[0] < CONTRAST ? ['contrast of ' + faint[0].toFixed(1) + ': ' + faint[1]] : []),
  ]; })()"""
"""Script that lists the faults of a page."""


def look_at_site(site: Path, out: Path) -> list[str]:
    """List the faults of the pages of the site, and write pictures of its first page into a folder."""
    if not (site / "index.html").exists():
        return ["the site is not built; run `python -m tools.pages`"]
    wrong: list[str] = []
    with opened("about:blank") as page:
        for width, colours in VIEWS:
            page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
            page.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
            for file in sorted(site.rglob("*.html")):
                page.ask("Page.navigate", url=file.resolve().as_uri())
                page.wait(f"document.readyState === 'complete' && location.href === {json.dumps(file.resolve().as_uri())}")
                found = page.evaluate(_SITE.replace("CONTRAST", str(CONTRAST)))
                wrong += [f"{file.relative_to(site)}, {width} {colours}: {x}" for x in found]
                if file == site / "index.html":
                    page.picture(out / f"site-{width}-{colours}.png")
        return wrong + page.errors


def hundred() -> tuple[Any, Any]:
    """A machine of a hundred pendulums of different lengths, all of which move, and its motion."""
    import pfaffian as pf

    lengths = np.linspace(0.5, 1.5, 100)
    bodies = [pf.body(f"pendulum {i}", 1.0, com=(0, 0, -l), inertia=0.01) for i, l in enumerate(lengths)]
    joints = [
        pf.joint(f"hinge {i}", "revolute", "world", b.name, axis=(0, 1, 0), placement=(0, 0.15 * i, 0))
        for i, b in enumerate(bodies)
    ]
    m = pf.mechanism("hundred pendulums", bodies, joints)
    return m, pf.run(m, np.full(m.nq, 0.8), duration=1.0, step=0.01, every=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", choices=("both", "page", "view", "shots", "site"), default="both")
    parser.add_argument("file", nargs="?", default="four_bar")
    parser.add_argument("--out", type=Path, default=Path("out/browser"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    import pfaffian as pf
    from pfaffian.formats.bundled import model_file

    wrong: list[str] = []
    if chosen.what == "shots":
        static = Path(__file__).resolve().parents[1] / "docs" / "_static"
        wrong += [f"{name}: {x}" for name, at in SHOTS.items() for x in shot(name, at, static / f"view-{name}.png")]
    elif chosen.what == "site":
        wrong += look_at_site(Path(__file__).resolve().parents[1] / "out" / "site", chosen.out)
    elif chosen.file == "hundred":
        page = chosen.out / "hundred.html"
        pf.animate(*hundred(), page, plot=("q", "energy"))
        wrong += look_at_page(page, chosen.out)
    elif chosen.file.endswith(".html"):
        wrong += look_at_page(Path(chosen.file), chosen.out)
    else:
        m, settings = pf.read(model_file(Path(chosen.file)))
        q, _, u, p = settings.arrays(m)
        start = pf.assemble(m, q, dict(settings.v), parameters=p, hold=settings.q)
        times = settings.times | {"duration": min(settings.duration, 2.0)}
        result = pf.run(m, start.q, start.v, u=u, parameters=p, **times)
        if chosen.what in ("both", "page"):
            file = chosen.out / "motion.html"
            pf.animate(m, result, file, parameters=p, plot="q")
            wrong += [f"page: {x}" for x in look_at_page(file, chosen.out)]
        if chosen.what in ("both", "view"):
            wrong += [f"view: {x}" for x in look_at_view(lambda: pf.view(m, result, parameters=p, block=False), chosen.out)]
    print("\n".join(wrong) or f"nothing is wrong; pictures in {chosen.out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
