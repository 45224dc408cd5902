// What the script of an animation page finds in place of a browser: the document, its canvases and WebGL remember what is asked of
// them. `seen` is what they were given, `ids` the elements by their names.
"use strict";
const pen = () => { // a 2D context: calls with what they were given
  const calls = [];
  return new Proxy({calls, measureText: t => ({width: 6 * t.length}), getImageData: (x, y, w, h) => ({data: seen.pixels(w, h)})}, {
    get: (of, name) => name in of ? of[name] : (...given) => { calls.push([name, ...given]); },
    set: (of, name, value) => { calls.push(["=" + name, value]); return true; },
  });
};
const uniforms = text => [...text.matchAll(/uniform\s+(?:highp\s+)?\w+\s+([\w, ]+);/g)].flatMap(m => m[1].split(/,\s*/));
const webgl = () => {
  let used = null;
  const of = {
    createShader: () => ({text: ""}), createProgram: () => ({text: ""}), shaderSource: (s, text) => { s.text = text; },
    attachShader: (p, s) => { p.text += s.text; }, getShaderParameter: () => true, getProgramParameter: p => uniforms(p.text).length,
    getActiveUniform: (p, i) => ({name: uniforms(p.text)[i]}), getUniformLocation: (p, name) => name,
    createTexture: () => ({}), createFramebuffer: () => ({}), createVertexArray: () => ({}), createBuffer: () => ({}),
    useProgram: p => { used = p; }, uniformMatrix4fv: (where, _, m) => { if (where === "camera") seen.cameras.push([...m]); },
    texSubImage2D: (...given) => { seen.places = [...given.at(-1)]; },
    drawArrays: (kind, from, count) => { seen.drawn.push(count); },
  };
  return new Proxy(of, {get: (x, name) => name in x ? x[name] : /^[A-Z0-9_]+$/.test(name) ? name : () => undefined});
};
const seen = {places: [], cameras: [], drawn: [], frames: [], keys: {}, saved: [], pixels: (w, h) => new Uint8ClampedArray(4 * w * h)};
const element = () => {
  const contexts = {}, made = {
    style: {}, classList: {add() {}}, children: [], clientWidth: 600, clientHeight: 450, width: 0, height: 0, value: "", textContent: "",
    append(...more) { this.children.push(...more); }, add(more) { this.children.push(more); }, addEventListener() {},
    setPointerCapture() {}, click() { seen.saved.push(this.download); }, toBlob(use) { use({picture: true}); },
    getContext: kind => contexts[kind] ||= kind === "2d" ? pen() : webgl(),
  };
  return made;
};
const ids = {};
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
Object.assign(globalThis, {
  document: {getElementById: id => ids[id] ||= element(), createElement: element, body: element(), activeElement: null},
  window: {devicePixelRatio: 1},
  performance: {now: () => Date.now()},
  atob: text => { // four letters are three bytes
    let bits = 0, held = 0, out = "";
    for (const c of text.replace(/=+$/, "")) {
      bits = bits << 6 & 0xffff | letters.indexOf(c), held += 6;
      if (held >= 8) held -= 8, out += String.fromCharCode(bits >> held & 255);
    }
    return out;
  },
  setTimeout: (f, ms) => { if (!ms) Promise.resolve().then(f); },
  Blob: class {
    constructor(parts) { this.bytes = parts.flatMap(p => [...p]); }
    async arrayBuffer() { return Uint8Array.from(this.bytes).buffer; }
  },
  URL: {createObjectURL: () => "", revokeObjectURL() {}},
  Option: function (text, value) { Object.assign(this, {text, value}); },
  requestAnimationFrame: f => { seen.frames.push(f); },
  addEventListener: (name, f) => { seen.keys[name] = f; },
});

// For the tests, beside the functions of the page.
const press = (place, x, y) => { for (const name of ["onpointerdown", "onpointerup"]) place[name]?.({...at2(x, y), pointerId: 1}); };
const drag = (place, x, y) => { place.onpointerdown({...at2(0, 0), pointerId: 1}); place.onpointermove({...at2(x, y), pointerId: 1, buttons: 1}); };
const at2 = (x, y) => ({clientX: x, clientY: y, offsetX: x, offsetY: y});
const calls = (place, name) => place.getContext("2d").calls.filter(c => c[0] === name).map(c => c.slice(1));
const shown = (x, c = seen.cameras.at(-1)) => { // where the shader's matrix puts a point on a page of 600 x 450
  const [u, v, , w] = [0, 1, 2, 3].map(i => c[i] * x[0] + c[4 + i] * x[1] + c[8 + i] * x[2] + c[12 + i]);
  return [300 * (1 + u / w), 225 * (1 - v / w)]; };
const plain = value => JSON.stringify(value, (_, v) => ArrayBuffer.isView(v) ? [...v] : v) ?? "null";
