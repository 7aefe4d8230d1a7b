// The map on the screen: strokes and marks by WebGL, names on a canvas above them.

import * as twgl from "twgl.js";
import { css, type Theme } from "./colours";
import { clear, type Box } from "./overlap";
import { MARK_FRAGMENT, MARK_VERTEX, STROKE_FRAGMENT, STROKE_VERTEX } from "./shaders";
import type { Background, Cables, Label, Mark, Scene, Strokes } from "./scene";

/** Middle of the map and zoom: pixels of a unit are 2 ** zoom. */
export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

/** Which part of its square a mark paints. */
export const enum Kind {
  Disc,
  Ring,
  Square,
  Star,
}

/** Look of a mark: radius in units of the map, and the least and the largest in pixels. */
export interface Look {
  kind: Kind;
  radius: number;
  least: number;
  most: number;
}

export const LOOKS = {
  host: { kind: Kind.Disc, radius: 0.07, least: 0.9, most: 6 },
  switch: { kind: Kind.Square, radius: 0.15, least: 1.5, most: 9 },
  contributor: { kind: Kind.Disc, radius: 0.105, least: 1.8, most: 7.5 },
  victim: { kind: Kind.Ring, radius: 0.125, least: 2.6, most: 9 },
  root: { kind: Kind.Star, radius: 0.26, least: 8, most: 13 },
  ring: { kind: Kind.Ring, radius: 0.34, least: 9, most: 16 },
} satisfies Record<string, Look>;

/** Widest stroke, in pixels. */
const WIDEST = 16;
/** Pixels along all strokes of a background that are drawn: a renderer in software needs 20 ms for them. */
const MOST_PIXELS = 700_000;

interface Painted {
  info: twgl.BufferInfo;
  array: twgl.VertexArrayInfo;
  /** What the buffers hold. */
  cables?: Cables;
}

/** Draws scenes on a canvas. */
export class Painter {
  private readonly gl: WebGL2RenderingContext;
  private readonly strokes: twgl.ProgramInfo;
  private readonly marks: twgl.ProgramInfo;
  private readonly buffers = new Map<string, Painted>();
  private scene: Scene | null = null;

  /** Null if the browser has no WebGL. */
  static on(canvas: HTMLCanvasElement): Painter | null {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false });
    return gl && new Painter(gl);
  }

  private constructor(gl: WebGL2RenderingContext) {
    this.gl = gl;
    this.strokes = twgl.createProgramInfo(gl, [STROKE_VERTEX, STROKE_FRAGMENT]);
    this.marks = twgl.createProgramInfo(gl, [MARK_VERTEX, MARK_FRAGMENT]);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  destroy(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  /** Take what is to be drawn. */
  load(scene: Scene): void {
    for (const name of ["cables", "branches", "chosen"] as const) {
      if (this.scene?.[name] !== scene[name]) this.loadStrokes(name, scene[name]);
    }
    if (this.scene?.still !== scene.still) this.loadMarks("still", scene.still);
    if (this.scene?.moving !== scene.moving) this.loadMarks("moving", scene.moving);
    this.scene = scene;
  }

  /** Draw what was taken, as a camera sees it. `ratio` is the number of pixels of a CSS pixel. */
  draw(camera: Camera, theme: Theme, ratio: number): void {
    const { gl, scene } = this;
    if (!scene) return;
    gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
    gl.clearColor(...(theme.page.map((part) => part / 255) as [number, number, number]), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const scale = 2 ** camera.zoom;
    const view = {
      u_centre: [camera.x, camera.y],
      u_scale: scale * ratio,
      u_ratio: ratio,
      u_size: [gl.canvas.width, gl.canvas.height],
      u_thick: ratio * thickness(scale),
    };
    gl.useProgram(this.strokes.program);
    const draw = (name: "cables" | "branches" | "chosen") => {
      gl.useProgram(this.strokes.program);
      const { opacity, background } = scene[name];
      const part = background ? this.drawnPart(background, scale, ratio) : 1;
      this.paint(
        name,
        this.strokes,
        { ...view, u_opacity: Math.min(1, opacity / part ** 0.25) },
        part,
      );
    };
    draw("cables");
    draw("branches");
    gl.useProgram(this.marks.program);
    this.paint("still", this.marks, view);
    draw("chosen");
    gl.useProgram(this.marks.program);
    this.paint("moving", this.marks, view);
  }

  /** The part of a background that is drawn: what covers the screen many times over is not seen. */
  private drawnPart({ length, area }: Background, scale: number, ratio: number): number {
    const { width, height } = this.gl.canvas;
    const seen = Math.min(1, (width * height) / (area * (scale * ratio) ** 2));
    return Math.min(1, MOST_PIXELS / (length * scale * ratio * seen));
  }

  private paint(
    name: string,
    program: twgl.ProgramInfo,
    uniforms: Record<string, unknown>,
    part = 1,
  ): void {
    const painted = this.buffers.get(name);
    if (!painted || !painted.info.numElements) return;
    twgl.setBuffersAndAttributes(this.gl, program, painted.array);
    twgl.setUniforms(program, uniforms);
    const strokes = Math.ceil((part * painted.info.numElements) / 6);
    twgl.drawBufferInfo(this.gl, painted.array, this.gl.TRIANGLES, 6 * strokes);
  }

  /** Strokes of the same cables change their looks only. */
  private loadStrokes(name: string, strokes: Strokes): void {
    const { gl } = this;
    const { cables, looks } = strokes;
    const corners = new Uint32Array(4 * cables.length);
    for (let at = 0; at < cables.length; at++) corners.fill(looks[at], 4 * at, 4 * at + 4);
    const bytes = new Uint8Array(corners.buffer);
    const before = this.buffers.get(name);
    if (before?.cables === cables) {
      twgl.setAttribInfoBufferFromArray(gl, before.info.attribs!.a_look, bytes);
      return;
    }
    this.free(name);
    const info = twgl.createBufferInfoFromArrays(gl, {
      a_ends: { data: fourTimes(cables.ends, 4), numComponents: 4 },
      a_corner: {
        data: repeated([0, -1, 0, 1, 1, -1, 1, 1], cables.length),
        numComponents: 2,
        normalize: false,
      },
      a_look: { data: bytes, numComponents: 4, normalize: true },
      indices: { data: quads(cables.length) },
    });
    const array = twgl.createVertexArrayInfo(gl, this.strokes, info);
    this.buffers.set(name, { info, array, cables });
  }

  private loadMarks(name: string, marks: readonly Mark[]): void {
    this.free(name);
    const length = marks.length;
    const [places, radii] = [new Float32Array(8 * length), new Float32Array(12 * length)];
    const looks = new Uint8Array(16 * length);
    const words = new Uint32Array(looks.buffer);
    for (let at = 0; at < length; at++) {
      const { x, y, colour, look } = marks[at];
      const word = packed(colour, look.kind);
      for (let corner = 4 * at; corner < 4 * at + 4; corner++) {
        places[2 * corner] = x;
        places[2 * corner + 1] = y;
        radii[3 * corner] = look.radius;
        radii[3 * corner + 1] = look.least;
        radii[3 * corner + 2] = look.most;
        words[corner] = word;
      }
    }
    const info = twgl.createBufferInfoFromArrays(this.gl, {
      a_place: { data: places, numComponents: 2 },
      a_radius: { data: radii, numComponents: 3 },
      a_corner: {
        data: repeated([-1, -1, -1, 1, 1, -1, 1, 1], length),
        numComponents: 2,
        normalize: false,
      },
      a_look: { data: looks, numComponents: 4, normalize: true },
      indices: { data: quads(length) },
    });
    const array = twgl.createVertexArrayInfo(this.gl, this.marks, info);
    this.buffers.set(name, { info, array });
  }

  private free(name: string): void {
    const painted = this.buffers.get(name);
    if (!painted) return;
    const { info, array } = painted;
    this.gl.bindVertexArray(null);
    this.gl.deleteVertexArray(array.vertexArrayObject!);
    for (const attribute of Object.values(info.attribs ?? {}))
      this.gl.deleteBuffer(attribute.buffer);
    if (info.indices) this.gl.deleteBuffer(info.indices);
    this.buffers.delete(name);
  }
}

/** Radius of a mark in pixels, if a unit of the map is `scale` of them. */
export function radiusOf(look: Look, scale: number): number {
  return Math.min(look.most, Math.max(look.least, look.radius * scale));
}

/** How much wider strokes are than at the first sight of a large map: lines grow, but slowly. */
export function thickness(scale: number): number {
  return Math.max(1, Math.sqrt(scale / 24));
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

function fourTimes(values: Float32Array, width: number): Float32Array {
  const copies = new Float32Array(4 * values.length);
  for (let at = 0; at < values.length; at += width) {
    const one = values.subarray(at, at + width);
    for (let copy = 0; copy < 4; copy++) copies.set(one, 4 * at + copy * width);
  }
  return copies;
}

function repeated(corners: number[], times: number): Int8Array {
  const all = new Int8Array(corners.length * times);
  for (let at = 0; at < all.length; at += corners.length) all.set(corners, at);
  return all;
}

function quads(count: number): Uint32Array {
  const indices = new Uint32Array(6 * count);
  for (let at = 0; at < count; at++) {
    const first = 4 * at;
    indices.set([first, first + 1, first + 2, first + 2, first + 1, first + 3], 6 * at);
  }
  return indices;
}

/** Height of a name, in pixels. */
const LINE = 13;

/** Write names on a canvas above the map: the first ones, and those of the others that cover none. */
export function writeNames(
  canvas: HTMLCanvasElement,
  labels: readonly Label[],
  camera: Camera,
  theme: Theme,
  ratio: number,
): void {
  const pen = canvas.getContext("2d")!;
  const scale = 2 ** camera.zoom;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  pen.strokeStyle = css(theme.page);
  pen.fillStyle = css(theme.ink);
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  const seen: { label: Label; x: number; y: number }[] = [];
  const boxes: Box[] = [];
  for (const label of labels) {
    const x = (label.x - camera.x) * scale + width / 2;
    const y = (label.y - camera.y) * scale + height / 2 + label.below;
    if (x < -50 || y < -20 || x > width + 50 || y > height) continue;
    pen.font = fontOf(label);
    const half = pen.measureText(label.text).width / 2 + 2;
    seen.push({ label, x, y });
    boxes.push([x - half, y, x + half, y + LINE]);
  }
  const kept = clear(boxes);
  seen.forEach(({ label, x, y }, at) => {
    if (!kept[at]) return;
    pen.font = fontOf(label);
    pen.strokeText(label.text, x, y);
    pen.fillText(label.text, x, y);
  });
}

function fontOf(label: Label): string {
  return `${label.bold ? "bold 12px" : "11px"} system-ui, sans-serif`;
}
