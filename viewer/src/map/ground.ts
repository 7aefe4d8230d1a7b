// A picture of what does not change with time, from which frames are made while the map moves.

import * as twgl from "twgl.js";
import type { Camera } from "./camera";
import { GROUND_FRAGMENT, GROUND_VERTEX } from "./shaders";

/** Part of the screen that the picture of a moving map has beyond each edge. */
const MARGIN = 0.25;
/** Difference in zoom up to which a picture is stretched instead of made again. */
const STRETCH = 0.4;

/** What a picture is of: it is made again if one of these changes. */
export type Key = readonly unknown[];

interface Frame {
  width: number;
  height: number;
  texture: WebGLTexture;
  framebuffer: WebGLFramebuffer;
}

interface Picture {
  frame: Frame;
  key: Key;
  camera: Camera;
  ratio: number;
}

export class Ground {
  private readonly program: twgl.ProgramInfo;
  private picture: Picture | null = null;

  constructor(private readonly gl: WebGL2RenderingContext) {
    this.program = twgl.createProgramInfo(gl, [GROUND_VERTEX, GROUND_FRAGMENT]);
  }

  /** From the picture, if it shows the camera's view; `isHurried` takes a picture of another place, too. */
  paint(
    key: Key,
    camera: Camera,
    ratio: number,
    isHurried: boolean,
    make: (width: number, height: number) => void,
  ): void {
    const { gl } = this;
    if (!this.fits(key, camera, ratio, isHurried)) this.make(key, camera, ratio, isHurried, make);
    const { frame, camera: own } = this.picture!;
    const { width, height } = gl.canvas;
    gl.viewport(0, 0, width, height);
    gl.disable(gl.BLEND);
    gl.useProgram(this.program.program);
    twgl.setUniforms(this.program, {
      u_picture: frame.texture,
      u_half: [width / 2, height / 2],
      u_whole: [frame.width, frame.height],
      u_stretch: 2 ** (own.zoom - camera.zoom),
      u_shift: [camera.x - own.x, camera.y - own.y].map((by) => by * 2 ** own.zoom * ratio),
    });
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.enable(gl.BLEND);
  }

  private fits(key: Key, camera: Camera, ratio: number, isHurried: boolean): boolean {
    const { picture } = this;
    if (!picture || picture.ratio !== ratio) return false;
    if (!key.every((one, at) => one === picture.key[at])) return false;
    const { frame, camera: own } = picture;
    const { width, height } = this.gl.canvas;
    const isSame = own.x === camera.x && own.y === camera.y && own.zoom === camera.zoom;
    if (!isHurried) {
      return isSame && (frame.width - width) % 2 === 0 && frame.width >= width;
    }
    const scale = 2 ** own.zoom * ratio;
    const stretch = 2 ** (own.zoom - camera.zoom);
    return (
      Math.abs(camera.zoom - own.zoom) <= STRETCH &&
      Math.abs(camera.x - own.x) * scale + (stretch * width) / 2 <= frame.width / 2 &&
      Math.abs(camera.y - own.y) * scale + (stretch * height) / 2 <= frame.height / 2
    );
  }

  private make(
    key: Key,
    camera: Camera,
    ratio: number,
    isHurried: boolean,
    make: (width: number, height: number) => void,
  ): void {
    const { gl } = this;
    const [width, height] = [gl.canvas.width, gl.canvas.height].map(
      (length) => length + (isHurried ? 2 * Math.ceil(MARGIN * length) : 0),
    );
    let frame = this.picture?.frame;
    if (!frame || frame.width !== width || frame.height !== height) {
      this.free();
      frame = frameOf(gl, width, height);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame.framebuffer);
    make(width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.picture = { frame, key, camera, ratio };
  }

  private free(): void {
    if (!this.picture) return;
    const { frame } = this.picture;
    this.gl.deleteTexture(frame.texture);
    this.gl.deleteFramebuffer(frame.framebuffer);
    this.picture = null;
  }
}

function frameOf(gl: WebGL2RenderingContext, width: number, height: number): Frame {
  const [texture, framebuffer] = [gl.createTexture(), gl.createFramebuffer()];
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
  for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
    gl.texParameteri(gl.TEXTURE_2D, name, gl.LINEAR);
  for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T])
    gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
  gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
  const place = gl.COLOR_ATTACHMENT0;
  gl.framebufferTexture2D(gl.FRAMEBUFFER, place, gl.TEXTURE_2D, texture, 0);
  return { width, height, texture, framebuffer };
}
