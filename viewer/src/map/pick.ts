// What is under the pointer: a node, or the nearest cable.

import type { Run } from "../data/run";
import type { Selection } from "../data/selection";
import type { Layout } from "../layout/layout";
import { cablesOf, type Cables } from "./cables";

export class Picker {
  private readonly cables: Cables;

  constructor(
    private readonly run: Run,
    private readonly layout: Layout,
    pieces: number,
  ) {
    const rows = Array.from({ length: run.ports }, (_, row) => row);
    this.cables = cablesOf(layout, rows, pieces);
  }

  /** `reach` is in units of the map; a click on a mark's edge (`mark` is the largest radius) is one on its node. */
  at(x: number, y: number, reach: number, mark: number): Selection | null {
    const node = this.node(x, y, Math.max(reach, mark));
    if (node >= 0) return { kind: "node", node };
    const row = this.cable(x, y, 0.7 * reach);
    return row >= 0 ? { kind: "port", row } : null;
  }

  private node(x: number, y: number, reach: number): number {
    let [best, nearest] = [-1, reach];
    const consider = (node: number, px: number, py: number) => {
      const distance = Math.hypot(px - x, py - y);
      if (distance < nearest) [best, nearest] = [node, distance];
    };
    for (const place of this.layout.switches) consider(place.node, place.x, place.y);
    for (const places of new Set([this.layout.senders, this.layout.receivers])) {
      for (let host = 0; host < this.run.hosts; host++) {
        consider(host, places[2 * host], places[2 * host + 1]);
      }
    }
    return best;
  }

  private cable(x: number, y: number, reach: number): number {
    let [best, nearest] = [-1, reach * reach];
    const { ends, of, length: count } = this.cables;
    for (let at = 0; at < count; at++) {
      const [x0, y0] = [ends[4 * at], ends[4 * at + 1]];
      const [dx, dy] = [ends[4 * at + 2] - x0, ends[4 * at + 3] - y0];
      const length = dx * dx + dy * dy;
      const along = length ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
      const [ex, ey] = [x0 + along * dx - x, y0 + along * dy - y];
      const distance = ex * ex + ey * ey;
      if (distance < nearest) [best, nearest] = [of[at], distance];
    }
    return best;
  }
}
