import type uPlot from "uplot";
import type { ChartProps, Line } from "./chart";
import { overlaps } from "./lines";

export const WIDTH = 1.7;
// Half the width of a diamond, and the radius of a point of several lines.
const DIAMOND = 5.5;
const SHARED = 4.5;
// Pixels of a line before its colour gives way to that of another line at the same place.
const DASH = 6;
/** Radius of the dot of an event, and the length of the tick in its middle. */
const EVENT = 4;

/** What a paper states: diamonds, as in the figures. */
export function drawDiamonds(plot: uPlot, lines: Line[], colours: string[]): void {
  const { ctx } = plot;
  const half = DIAMOND * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.8 * devicePixelRatio;
  lines.forEach((line, index) => {
    if (line.points !== "only") return;
    ctx.strokeStyle = colours[(line.colour ?? index) % colours.length];
    for (let at = 0; at < line.y.length; at++) {
      const value = line.y[at];
      if (value === null) continue;
      const [x, y] = [plot.valToPos(line.x[at], "x", true), plot.valToPos(value, "y", true)];
      ctx.beginPath();
      ctx.moveTo(x, y - half);
      for (const [right, down] of [
        [half, 0],
        [0, half],
        [-half, 0],
      ])
        ctx.lineTo(x + right, y + down);
      ctx.closePath();
      ctx.stroke();
    }
  });
  ctx.restore();
}

/** Where lines lie on each other their colours alternate, and their points have a part of each. */
export function drawOverlaps(plot: uPlot, lines: Line[], colours: string[]): void {
  const { ctx } = plot;
  const { paths, points } = overlaps(lines, (x, y) => [
    plot.valToPos(x, "x"),
    plot.valToPos(y, "y"),
  ]);
  const [left, top] = [plot.bbox.left, plot.bbox.top];
  ctx.save();
  ctx.translate(left, top);
  ctx.scale(devicePixelRatio, devicePixelRatio);
  ctx.lineCap = "butt";
  ctx.lineWidth = WIDTH;
  for (const { places, colours: own } of paths) {
    own.forEach((colour, turn) => {
      ctx.strokeStyle = colours[colour % colours.length];
      ctx.setLineDash([DASH, DASH * (own.length - 1)]);
      ctx.lineDashOffset = -turn * DASH;
      ctx.beginPath();
      places.forEach(([x, y], at) => (at ? ctx.lineTo : ctx.moveTo).call(ctx, x, y));
      ctx.stroke();
    });
  }
  for (const { place, colours: own } of points) {
    const [x, y] = place;
    const part = (2 * Math.PI) / own.length;
    own.forEach((colour, turn) => {
      ctx.fillStyle = colours[colour % colours.length];
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.arc(x, y, SHARED, turn * part, (turn + 1) * part);
      ctx.fill();
    });
  }
  ctx.restore();
}

/** The shaded range and the marks of events. */
export function drawMarks(plot: uPlot, props: ChartProps, faint: string): void {
  const { ctx, bbox } = plot;
  const [first, last] = [bbox.left, bbox.left + bbox.width];
  const left = (x: number) => plot.valToPos(x, "x", true);
  ctx.save();
  if (props.shaded) {
    ctx.fillStyle = `${faint}33`;
    const [from, to] = props.shaded.map((x) => Math.min(last, Math.max(first, left(x))));
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
  }
  ctx.fillStyle = faint;
  const radius = EVENT * devicePixelRatio;
  for (const event of props.events ?? []) {
    const x = left(event.x);
    // Half of a dot at an end is beyond the lines.
    if (x < first - 0.5 || x > last + 0.5) continue;
    ctx.fillRect(x - radius / 4, bbox.top, radius / 2, 2 * radius);
    ctx.beginPath();
    ctx.arc(x, bbox.top + radius, radius, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.restore();
}
