import { DESCRIBING } from "./parameters";
import { NO_ROW, type Run } from "./run";
import type { Selection } from "./selection";

export function isSameFabric(one: Run, other: Run): boolean {
  return (
    one.hosts === other.hosts &&
    one.nodes.length === other.nodes.length &&
    one.nodes.every(({ name }, node) => name === other.nodes[node].name) &&
    isEqual(one.node, other.node) &&
    isEqual(one.number, other.number) &&
    isEqual(one.peer, other.peer) &&
    isEqual(one.rate, other.rate)
  );
}

function isEqual(one: ArrayLike<number>, other: ArrayLike<number>): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** Both ends of its cable have the same names. */
export function portIn(run: Run, own: Run, row: number): number | undefined {
  if (run === own) return row;
  const found = run.findPort(own.portName(row));
  return found !== undefined && farEnd(run, found) === farEnd(own, row) ? found : undefined;
}

function farEnd(run: Run, row: number): string | null {
  return run.peer[row] === NO_ROW ? null : run.portName(run.peer[row]);
}

/** The host of the same name, or the switch whose ports all correspond. */
export function nodeIn(run: Run, own: Run, node: number): number | undefined {
  if (run === own) return node;
  const found = run.findNode(own.nodes[node].name);
  if (found === undefined || run.isHost(found) !== own.isHost(node)) return undefined;
  if (own.isHost(node)) return found;
  const ports = own.portsOf(node);
  const isAlike = run.portsOf(found).length === ports.length;
  return isAlike && ports.every((row) => portIn(run, own, row) !== undefined) ? found : undefined;
}

/** Trees of two runs do not correspond. */
export function selectionIn(run: Run, own: Run, chosen: Selection | null): Selection | null {
  if (!chosen || run === own) return chosen;
  if (chosen.kind === "tree") return null;
  if (chosen.kind === "port") {
    const row = portIn(run, own, chosen.row);
    return row === undefined ? null : { kind: "port", row };
  }
  if (chosen.kind === "node") {
    const node = nodeIn(run, own, chosen.node);
    return node === undefined ? null : { kind: "node", node };
  }
  const [source, destination] = [chosen.source, chosen.destination].map((host) =>
    nodeIn(run, own, host),
  );
  if (source === undefined || destination === undefined) return null;
  return { kind: "flow", source, destination };
}

const COMPARED = /^control\./;

/** Keys of the scenarios that differ, without those of the congestion control. */
export function otherKeys(one: Run): string[] {
  return Object.keys(one.facts.parameters).filter(
    (key) => !DESCRIBING.test(key) && !COMPARED.test(key),
  );
}
