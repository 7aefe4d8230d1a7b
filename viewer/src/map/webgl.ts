// The map on the screen: strokes and marks by WebGL, names on a canvas above them.

import * as twgl from "twgl.js";
import { isolated } from "../data/units";
import { css, type Rgb, type Theme } from "./colours";
import type { Layout } from "../layout/layout";
import { rowsWidth, type Camera } from "./camera";
import type { Cables } from "./cables";
import { Ground } from "./ground";
import { obstacles, placed } from "./labels";
import {
  PLAIN_FRAGMENT,
  PLAIN_VERTEX,
  SIGN_FRAGMENT,
  SIGN_VERTEX,
  STROKE_FRAGMENT,
  STROKE_VERTEX,
} from "./shaders";
import { LOOKS, radiusOf, thickness } from "./shapes";
import type { Background, Label, Mark, Scene, Strokes } from "./scene";

/** Widest stroke, in pixels. */
const WIDEST = 16;
/** Pixels along all strokes of a background that are drawn: a renderer in software needs 20 ms for them. */
const MOST_PIXELS = 700_000;

/** Pieces of cables and hosts of a fabric whose ground is painted once, and not in each frame. */
const MANY = 6000;

interface Painted {
  info: twgl.BufferInfo;
  array: twgl.VertexArrayInfo;
}

interface PaintedStrokes extends Painted {
  /** What the buffers hold, and how many strokes they have room for. */
  cables: Cables;
  room: number;
}

/** What a frame is painted with: size in pixels, pixels of a unit, and those of a CSS pixel. */
interface View {
  u_centre: [number, number];
  u_scale: number;
  u_ratio: number;
  u_size: [number, number];
  u_thick: number;
}

const STROKES = ["cables", "branches", "chosen"] as const;
const MARKS = ["hosts", "switches", "senders", "victims", "signs"] as const;
/** Drawn while a large map moves slowly: a software renderer takes 8 us for a stroke and 3 us for a mark. */
const MOST_STROKES = 1000;
const MOST_MARKS = 2000;
/** Frames of the same scene after which it is taken for one that will be moved again. */
const SAME = 2;
/** Room for strokes, times what is needed, where those of other instants will be more. */
const SPARE = 1.5;

export class Painter {
  private readonly gl: WebGL2RenderingContext;
  private readonly strokes: twgl.ProgramInfo;
  private readonly plain: twgl.ProgramInfo;
  private readonly signs: twgl.ProgramInfo;
  private readonly ground: Ground;
  /** A picture of everything, for a map that moves over one instant. */
  private readonly whole: Ground;
  /** The scene that was drawn last, and how many frames in a row. */
  private drawn: { scene: Scene | null; frames: number } = { scene: null, frames: 0 };
  private readonly strokeBuffers = new Map<string, PaintedStrokes>();
  private readonly markBuffers = new Map<string, Painted>();
  private scene: Scene | null = null;

  /** Null if the browser has no WebGL. */
  static on(canvas: HTMLCanvasElement): Painter | null {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false });
    return gl && new Painter(gl);
  }

  private constructor(gl: WebGL2RenderingContext) {
    this.gl = gl;
    this.strokes = twgl.createProgramInfo(gl, [STROKE_VERTEX, STROKE_FRAGMENT]);
    this.plain = twgl.createProgramInfo(gl, [PLAIN_VERTEX, PLAIN_FRAGMENT]);
    this.signs = twgl.createProgramInfo(gl, [SIGN_VERTEX, SIGN_FRAGMENT]);
    this.ground = new Ground(gl);
    this.whole = new Ground(gl);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  destroy(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  load(scene: Scene): void {
    for (const name of STROKES)
      if (this.scene?.[name] !== scene[name]) this.loadStrokes(name, scene[name]);
    for (const name of MARKS)
      if (this.scene?.[name] !== scene[name]) this.loadMarks(name, scene[name]);
    this.scene = scene;
  }

  /** `room` is that of hosts in map units, `ratio` pixels of a CSS pixel; `isHurried` moves the ground's picture. */
  draw(camera: Camera, room: number, theme: Theme, ratio: number, isHurried: boolean): void {
    const { gl, scene } = this;
    if (!scene) return;
    const { width, height } = gl.canvas;
    const isLarge = scene.cables.cables.length + scene.hosts.length > MANY;
    const view = viewOf(camera, room, ratio, width, height);
    const frames = this.drawn.scene === scene ? this.drawn.frames + 1 : 0;
    this.drawn = { scene, frames };
    if (!isLarge) {
      this.clear(theme, view);
      this.drawAll(view, theme, false);
      return;
    }
    if (isHurried && frames >= SAME) {
      this.whole.paint([scene, theme], camera, ratio, isHurried, (wide, high) => {
        const all = viewOf(camera, room, ratio, wide, high);
        this.clear(theme, all);
        this.drawAll(all, theme, true);
      });
      return;
    }
    const key = [scene.cables, scene.hosts, theme, isHurried];
    this.ground.paint(key, camera, ratio, isHurried, (wide, high) => {
      const all = viewOf(camera, room, ratio, wide, high);
      this.clear(theme, all);
      this.drawStrokes("cables", all);
      this.drawMarks("hosts", all, theme);
      // While the map moves, branches are drawn over switches: those need not be drawn again.
      if (isHurried) this.drawMarks("switches", all, theme);
    });
    this.drawStrokes("branches", view, isHurried ? MOST_STROKES : Infinity);
    if (!isHurried) this.drawMarks("switches", view, theme);
    this.drawStrokes("chosen", view);
    const most = isHurried ? MOST_MARKS : Infinity;
    this.drawMarks("senders", view, theme, most);
    this.drawMarks("victims", view, theme, most);
    this.drawMarks("signs", view, theme);
  }

  private drawAll(view: View, theme: Theme, isLarge: boolean): void {
    this.drawStrokes("cables", view);
    if (isLarge) this.drawMarks("hosts", view, theme);
    this.drawStrokes("branches", view);
    if (!isLarge) this.drawMarks("hosts", view, theme);
    this.drawMarks("switches", view, theme);
    this.drawStrokes("chosen", view);
    for (const name of ["senders", "victims", "signs"] as const) this.drawMarks(name, view, theme);
  }

  private clear(theme: Theme, { u_size }: View): void {
    const { gl } = this;
    gl.viewport(0, 0, ...u_size);
    gl.clearColor(...shares(theme.page), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  /** Draw strokes: the first part of a background, else the last ones up to `most`. */
  private drawStrokes(name: (typeof STROKES)[number], view: View, most = Infinity): void {
    const painted = this.strokeBuffers.get(name);
    if (!painted?.cables.length) return;
    const { opacity, background } = this.scene![name];
    const part = background ? drawnPart(background, view) : 1;
    this.gl.useProgram(this.strokes.program);
    twgl.setBuffersAndAttributes(this.gl, this.strokes, painted.array);
    twgl.setUniforms(this.strokes, { ...view, u_opacity: Math.min(1, opacity / part ** 0.25) });
    const strokes = Math.min(most, Math.ceil(part * painted.cables.length));
    const first = background ? 0 : painted.cables.length - strokes;
    const offset = 6 * first * Uint32Array.BYTES_PER_ELEMENT;
    twgl.drawBufferInfo(this.gl, painted.array, this.gl.TRIANGLES, 6 * strokes, offset);
  }

  private drawMarks(name: (typeof MARKS)[number], view: View, theme: Theme, most = Infinity): void {
    const painted = this.markBuffers.get(name);
    if (!painted?.info.numElements) return;
    const program = this.programOf(name);
    this.gl.useProgram(program.program);
    twgl.setBuffersAndAttributes(this.gl, program, painted.array);
    twgl.setUniforms(program, { ...view, u_page: shares(theme.page) });
    this.gl.drawArrays(this.gl.POINTS, 0, Math.min(most, painted.info.numElements));
  }

  private programOf(name: (typeof MARKS)[number]): twgl.ProgramInfo {
    return name === "signs" ? this.signs : this.plain;
  }

  /** Buffers are made again only where strokes need more room: those of the next instant are about as many. */
  private loadStrokes(name: string, { cables, looks }: Strokes): void {
    const { gl } = this;
    const before = this.strokeBuffers.get(name);
    const { length } = cables;
    const ends = before?.cables === cables ? null : fourTimes(cables.ends, 4);
    const bytes = new Uint8Array(fourTimes(looks, 1).buffer);
    if (before && length <= before.room) {
      const { a_ends, a_look } = before.info.attribs!;
      if (ends) twgl.setAttribInfoBufferFromArray(gl, a_ends, ends);
      twgl.setAttribInfoBufferFromArray(gl, a_look, bytes);
      before.cables = cables;
      return;
    }
    this.free(name);
    const room = Math.ceil(before ? SPARE * length : length);
    const info = twgl.createBufferInfoFromArrays(gl, {
      a_ends: { data: ends ?? fourTimes(cables.ends, 4), numComponents: 4 },
      a_corner: {
        data: repeated([0, -1, 0, 1, 1, -1, 1, 1], room),
        numComponents: 2,
        normalize: false,
      },
      a_look: { data: bytes, numComponents: 4, normalize: true },
      indices: { data: quads(room) },
    });
    const array = twgl.createVertexArrayInfo(gl, this.strokes, info);
    this.strokeBuffers.set(name, { info, array, cables, room });
  }

  private loadMarks(name: (typeof MARKS)[number], marks: readonly Mark[]): void {
    const { gl } = this;
    const length = marks.length;
    const [places, radii] = [new Float32Array(2 * length), new Float32Array(3 * length)];
    const words = new Uint32Array(length);
    for (let at = 0; at < length; at++) {
      const { x, y, colour, look, room } = marks[at];
      places[2 * at] = x;
      places[2 * at + 1] = y;
      radii[3 * at] = look.share * room;
      radii[3 * at + 1] = look.least;
      radii[3 * at + 2] = look.most;
      words[at] = packed(colour, look.kind);
    }
    const looks = new Uint8Array(words.buffer);
    const before = this.markBuffers.get(name);
    if (before) {
      const { a_place, a_radius, a_look } = before.info.attribs!;
      twgl.setAttribInfoBufferFromArray(gl, a_place, places);
      twgl.setAttribInfoBufferFromArray(gl, a_radius, radii);
      twgl.setAttribInfoBufferFromArray(gl, a_look, looks);
      before.info.numElements = length;
      return;
    }
    const info = twgl.createBufferInfoFromArrays(gl, {
      a_place: { data: places, numComponents: 2 },
      a_radius: { data: radii, numComponents: 3 },
      a_look: { data: looks, numComponents: 4, normalize: true },
    });
    info.numElements = length;
    const array = twgl.createVertexArrayInfo(gl, this.programOf(name), info);
    this.markBuffers.set(name, { info, array });
  }

  private free(name: string): void {
    const painted = this.strokeBuffers.get(name);
    if (!painted) return;
    const { info, array } = painted;
    this.gl.bindVertexArray(null);
    this.gl.deleteVertexArray(array.vertexArrayObject!);
    for (const attribute of Object.values(info.attribs ?? {}))
      this.gl.deleteBuffer(attribute.buffer);
    if (info.indices) this.gl.deleteBuffer(info.indices);
    this.strokeBuffers.delete(name);
  }
}

const shares = (colour: Rgb) => colour.map((part) => part / 255) as Rgb;

function viewOf(camera: Camera, room: number, ratio: number, width: number, height: number): View {
  const scale = 2 ** camera.zoom;
  return {
    u_centre: [camera.x, camera.y],
    u_scale: scale * ratio,
    u_ratio: ratio,
    u_size: [width, height],
    u_thick: ratio * thickness(scale, room * scale),
  };
}

/** The part of a background that is drawn: what covers the screen many times over is not seen. */
function drawnPart({ length, area }: Background, { u_size, u_scale }: View): number {
  const seen = Math.min(1, (u_size[0] * u_size[1]) / (area * u_scale ** 2));
  return Math.min(1, MOST_PIXELS / (length * u_scale * seen));
}

/** Red, green, blue and width of a stroke in 32 bits, the first in the lowest. */
export function strokeLook(colour: readonly number[], width: number): number {
  return packed(colour, Math.round((255 * Math.min(WIDEST, width)) / WIDEST));
}

function packed([r, g, b]: readonly number[], last: number): number {
  return (Math.round(r) | (Math.round(g) << 8) | (Math.round(b) << 16) | (last << 24)) >>> 0;
}

/** Width in pixels of a look that `strokeLook` made. */
export function lookWidth(look: number): number {
  return ((look >>> 24) * WIDEST) / 255;
}

/** Values of so many numbers, each four times. */
function fourTimes<T extends Float32Array | Uint32Array>(values: T, width: number): T {
  const copies = new (values.constructor as new (length: number) => T)(4 * values.length);
  for (let at = 0, to = 0; at < values.length; at += width)
    for (let copy = 0; copy < 4; copy++)
      for (let part = 0; part < width; part++) copies[to++] = values[at + part];
  return copies;
}

function repeated(corners: number[], times: number): Int8Array {
  const all = new Int8Array(corners.length * times);
  for (let at = 0; at < all.length; at += corners.length) all.set(corners, at);
  return all;
}

/** Corners of the two triangles of a stroke. */
const CORNERS = [0, 1, 2, 2, 1, 3];

function quads(count: number): Uint32Array {
  const indices = new Uint32Array(6 * count);
  for (let at = 0; at < indices.length; at++)
    indices[at] = 4 * Math.floor(at / 6) + CORNERS[at % 6];
  return indices;
}

const LINE = 13;
/** Pixels from the edge of the view to names of rows, and from these to the map. */
const EDGE = 6;
const BEFORE = 8;

/** Write names on a canvas above the map. */
export function writeNames(
  canvas: HTMLCanvasElement,
  scene: Scene,
  labels: readonly Label[],
  camera: Camera,
  theme: Theme,
  ratio: number,
  textScale: number,
): void {
  const pen = canvas.getContext("2d")!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  pen.strokeStyle = css(theme.page);
  pen.fillStyle = css(theme.ink);
  const view = { camera, width: canvas.width / ratio, height: canvas.height / ratio };
  const measure = (label: Label) => {
    pen.font = fontOf(label, textScale);
    return pen.measureText(isolated(label.text)).width;
  };
  const marks = labels.length ? obstacles(scene, view) : [];
  for (const { label, x, y } of placed(labels, marks, view, measure, LINE * textScale)) {
    pen.font = fontOf(label, textScale);
    pen.strokeText(isolated(label.text), x, y);
    pen.fillText(isolated(label.text), x, y);
  }
}

/** Write what the rows of a map are, where there is room next to it. */
export function writeRows(
  canvas: HTMLCanvasElement,
  layout: Layout,
  camera: Camera,
  theme: Theme,
  ratio: number,
  textScale: number,
): void {
  const pen = canvas.getContext("2d")!;
  const scale = 2 ** camera.zoom;
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  if (!rowsWidth(layout, width)) return;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = `${11 * textScale}px system-ui, sans-serif`;
  pen.fillStyle = css(theme.faint);
  const radius = radiusOf(LOOKS.root, layout.room.hosts * scale);
  const edge = (layout.bounds[0] - camera.x) * scale + width / 2 - radius - BEFORE;
  let last = -Infinity;
  for (const row of [...layout.rows].sort((a, b) => a.y - b.y)) {
    const y = (row.y - camera.y) * scale + height / 2;
    if (y < LINE / 2 || y > height - LINE / 2 || y < last + LINE * textScale) continue;
    const x = edge - pen.measureText(row.name).width;
    if (x < EDGE) continue;
    last = y;
    pen.strokeText(row.name, x, y);
    pen.fillText(row.name, x, y);
  }
}

function fontOf({ bold }: Label, textScale: number): string {
  return `${bold ? "bold " : ""}${(bold ? 12 : 11) * textScale}px system-ui, sans-serif`;
}
