// Shaders of the map. Geometry is not instanced: renderers in software, which browsers use where there is
// no graphics processor, draw each instance as a call of its own (docs/decisions/0026-the-viewer.md).

import { HALO, Kind, STAR_WAIST } from "./shapes";

const PLACE = `
uniform vec2 u_centre;  // of the map
uniform float u_scale;  // pixels of a unit of the map
uniform vec2 u_size;    // of the canvas, in pixels
vec2 pixels(vec2 place) { return (place - u_centre) * u_scale; }
vec4 clip(vec2 pixels) { return vec4(2.0 * pixels.x / u_size.x, -2.0 * pixels.y / u_size.y, 0.0, 1.0); }
`;

/** A stroke is a box around a segment; a fragment is inside if it is near enough to the segment. */
export const STROKE_VERTEX = `#version 300 es
precision highp float;
${PLACE}
in vec4 a_ends;    // start and end
in vec2 a_corner;  // 0 or 1 along, -1 or 1 across
in vec4 a_look;    // red, green, blue; width in pixels over 16
uniform float u_thick;
uniform float u_opacity;
flat out vec4 v_paint;
flat out float v_reach;
flat out float v_length;
out vec2 v_at;
void main() {
  vec2 start = pixels(a_ends.xy);
  vec2 end = pixels(a_ends.zw);
  float width = a_look.w * 16.0 * u_thick;
  float half_width = 0.5 * width + 0.5;
  vec2 along = end - start;
  float length_ = length(along);
  along = length_ > 0.0 ? along / length_ : vec2(1.0, 0.0);
  vec2 across = vec2(-along.y, along.x);
  float reach = a_corner.x * (length_ + 2.0 * half_width) - half_width;
  v_at = vec2(reach, a_corner.y * half_width);
  v_paint = vec4(a_look.rgb, 1.0) * u_opacity * min(1.0, width);
  v_reach = half_width;
  v_length = length_;
  gl_Position = clip(start + along * reach + across * v_at.y);
}`;

export const STROKE_FRAGMENT = `#version 300 es
precision highp float;
flat in vec4 v_paint;
flat in float v_reach;
flat in float v_length;
in vec2 v_at;
out vec4 colour;
void main() {
  float beyond = v_at.x - clamp(v_at.x, 0.0, v_length);
  colour = v_paint * clamp(v_reach - length(vec2(beyond, v_at.y)), 0.0, 1.0);
}`;

/** A mark is a point of some size; its kind says which part of the square around it is painted. */
const MARK = `
${PLACE}
in vec2 a_place;
in vec3 a_radius;  // in units of the map; the least and the largest in CSS pixels
uniform float u_ratio;
in vec4 a_look;    // red, green, blue; kind over 255
flat out vec3 v_colour;
flat out float v_radius;
float radiusNow() {
  return clamp(a_radius.x * u_scale, a_radius.y * u_ratio, a_radius.z * u_ratio);
}
float kindNow() { return floor(a_look.w * 255.0 + 0.5); }
`;

const RING = "float halfRing(float radius) { return max(1.2, 0.15 * radius); }";

/** Discs, rings and squares: renderers in software calculate all that a fragment may be, and these are thousands. */
export const PLAIN_VERTEX = `#version 300 es
precision highp float;
${MARK}
${RING}
flat out float v_inner;
flat out float v_square;
void main() {
  float radius = radiusNow();
  float kind = kindNow();
  v_colour = a_look.rgb;
  v_radius = radius;
  v_inner = kind == ${Kind.Ring.toFixed(1)} ? radius - 2.0 * halfRing(radius) : -radius - 2.0;
  v_square = kind == ${Kind.Square.toFixed(1)} ? 1.0 : 0.0;
  gl_PointSize = 2.0 * (radius + 1.0);
  gl_Position = clip(pixels(a_place));
}`;

export const PLAIN_FRAGMENT = `#version 300 es
precision highp float;
flat in vec3 v_colour;
flat in float v_radius;
flat in float v_inner;
flat in float v_square;
out vec4 colour;
void main() {
  vec2 at = abs(2.0 * gl_PointCoord - 1.0) * (v_radius + 1.0);
  float from = mix(length(at), max(at.x, at.y), v_square);
  float alpha = clamp(0.5 - max(from - v_radius, v_inner - from), 0.0, 1.0);
  colour = vec4(v_colour * alpha, alpha);
}`;

/** Stars with an edge, crosses and rings, of which there are few. */
export const SIGN_VERTEX = `#version 300 es
precision highp float;
${MARK}
flat out float v_kind;
flat out float v_halo;
void main() {
  v_colour = a_look.rgb;
  v_kind = kindNow();
  v_radius = radiusNow();
  v_halo = v_kind == ${Kind.Star.toFixed(1)} ? ${HALO.toFixed(1)} * u_ratio : 0.0;
  gl_PointSize = 2.0 * (v_radius + 1.0 + v_halo);
  gl_Position = clip(pixels(a_place));
}`;

export const SIGN_FRAGMENT = `#version 300 es
precision highp float;
flat in vec3 v_colour;
flat in float v_kind;
flat in float v_radius;
flat in float v_halo;
uniform vec3 u_page;
out vec4 colour;
${RING}
float star(vec2 p, float r) {
  // Inigo Quilez, "sdStar5": distance to a star with five points.
  const vec2 k1 = vec2(0.809016994375, -0.587785252292);
  const vec2 k2 = vec2(-k1.x, k1.y);
  p.x = abs(p.x);
  p -= 2.0 * max(dot(k1, p), 0.0) * k1;
  p -= 2.0 * max(dot(k2, p), 0.0) * k2;
  p.x = abs(p.x);
  p.y -= r;
  vec2 ba = ${STAR_WAIST} * vec2(-k1.y, k1.x) - vec2(0.0, 1.0);
  float h = clamp(dot(p, ba) / dot(ba, ba), 0.0, r);
  return length(p - ba * h) * sign(p.y * ba.x - p.x * ba.y);
}
void main() {
  vec2 at = (2.0 * gl_PointCoord - 1.0) * (v_radius + 1.0 + v_halo);
  float away;
  if (v_kind == ${Kind.Star.toFixed(1)}) away = star(vec2(at.x, -at.y), v_radius);
  else if (v_kind == ${Kind.Cross.toFixed(1)}) {
    float aside = 0.7071 * abs(abs(at.x) - abs(at.y)) - max(1.0, 0.16 * v_radius);
    away = max(aside, max(abs(at.x), abs(at.y)) - v_radius);
  }
  else {
    float thick = halfRing(v_radius);
    away = abs(length(at) - v_radius + thick) - thick;
  }
  float alpha = clamp(0.5 - away + v_halo, 0.0, 1.0);
  vec3 inside = v_halo > 0.0 ? mix(u_page, v_colour, clamp(0.5 - away, 0.0, 1.0)) : v_colour;
  colour = vec4(inside * alpha, alpha);
}`;

/** Paints a picture of the ground over the whole canvas, moved and stretched. */
export const GROUND_VERTEX = `#version 300 es
void main() {
  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}`;

export const GROUND_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D u_picture;
uniform vec2 u_half;      // half of the canvas, in pixels
uniform vec2 u_whole;     // the picture, in pixels
uniform float u_stretch;  // pixels of the picture per pixel of the canvas
uniform vec2 u_shift;     // of the middle of the canvas in the picture, in its pixels, downwards
out vec4 colour;
void main() {
  vec2 from = (gl_FragCoord.xy - u_half) * u_stretch + vec2(u_shift.x, -u_shift.y);
  colour = texture(u_picture, from / u_whole + 0.5);
}`;
