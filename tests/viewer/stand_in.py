"""A stand-in for the server of the package viser, which records calls."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace


class Handle(SimpleNamespace):
    """The handle that a server returns for an object of the scene or a control of the panel."""

    def on_update(self, call):
        self.call = call

    def on_click(self, call):
        self.click = call

    def remove(self):
        self.removed = True


OPTIONS = {
    "add_frame": {"show_axes", "axes_length", "axes_radius", "visible"},
    "add_mesh_simple": {"color", "opacity", "flat_shading", "side", "cast_shadow", "receive_shadow", "visible"},
    "add_label": {"position", "visible"},
    "add_grid": {"cell_size", "section_size", "position", "wxyz", "visible"},
    "add_arrows": {"shaft_radius", "head_radius", "head_length", "visible"},
    "add_line_segments": {"thickness", "visible"},
}
"""Method of viser 1.1 -> those of its options that the view gives."""


class Scene:
    def __init__(self):
        self.made: dict[str, Handle] = {}

    def __getattr__(self, word):
        def make(name, *given, **options):
            assert name.startswith("/") and set(options) <= OPTIONS[word], word
            handle = Handle(kind=word, name=name, given=given, **({"visible": True} | options))
            if "points" not in options and given:
                handle.points = given[0]
            self.made[name] = handle
            return handle

        return make

    def set_up_direction(self, up):
        self.up = up


class Panel:
    def __init__(self):
        self.made: dict[str, Handle] = {}

    def configure_theme(self, **_):
        pass

    @contextmanager
    def add_folder(self, name, **_):
        yield

    def add_checkbox(self, name, value):
        assert isinstance(name, str) and isinstance(value, bool)
        return self.made.setdefault(name, Handle(value=value))

    def add_slider(self, name, low, high, step, initial_value):
        return self.made.setdefault(name, Handle(min=low, max=high, step=step, value=initial_value))

    def add_dropdown(self, name, choices, initial_value):
        assert isinstance(name, str) and initial_value in choices and len(set(choices)) == len(choices)
        return self.made.setdefault(name, Handle(choices=choices, value=initial_value))

    def add_markdown(self, content):
        return self.made.setdefault("message", Handle(content=content))


class Server:
    def __init__(self, host="", label="", verbose=True):
        self.host, self.scene, self.gui, self.stopped = host, Scene(), Panel(), False
        self.initial_camera, self.clients = SimpleNamespace(), {}

    def get_port(self):
        return 8123

    def get_clients(self):
        return self.clients

    def atomic(self):
        return nullcontext()

    def stop(self):
        self.stopped = True
