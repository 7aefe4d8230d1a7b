import type { Run } from "./run";
import type { Selection } from "./selection";

const MOST_FOUND = 12;
/** A LID as the list and the tools of InfiniBand write it: `79`, `0x4f`, `LID 79`, `LID 0x004f`. */
const LID = /^(lid\s*:?\s*)?(0x[0-9a-f]+|\d+)$/i;

export interface Found {
  text: string;
  detail: string;
  selection: Selection;
}

/** Quality of a fit, the best first. */
const FITS = ["name", "name in another case", "number", "LID", "beginning", "part"] as const;
type Fit = (typeof FITS)[number];

/** Hosts, switches, ports (`leaf-01:3`), trees (`tree 7`) and flows (`host-01 > host-02`) that fit, the best first. */
export function find(run: Run, text: string): Found[] {
  const wanted = text.trim();
  if (!wanted) return [];
  const found = new Map<Fit, Found[]>(FITS.map((fit) => [fit, []]));
  const add = (fit: Fit | null, one: Found) => fit && found.get(fit)!.push(one);
  for (const row of portsNamed(run, wanted)) {
    const name = run.portName(row);
    add(fitOf(name, wanted), { text: name, detail: "port", selection: { kind: "port", row } });
  }
  const flow = findFlow(run, text);
  if (flow) {
    const [from, to] = [flow.source, flow.destination].map((host) => run.nodes[host].name);
    add("number", { text: `${from}>${to}`, detail: "flow", selection: flow });
  }
  const tree = Number(/^t(?:ree)? ?(\d+)$/i.exec(wanted)?.[1] ?? NaN);
  if (run.lifetimes[tree]) {
    const { destination } = run.lifetimes[tree];
    const detail = destination && `to ${destination}`;
    add("number", { text: `tree ${tree}`, detail, selection: { kind: "tree", tree } });
  }
  const wantedLid = Number(LID.exec(wanted)?.[2] ?? NaN);
  run.nodes.forEach(({ name, lid }, node) => {
    const kind = run.isHost(node) ? "host" : "switch";
    const detail = lid === null ? kind : `${kind}, LID ${lid}`;
    const fit = fitOf(name, wanted);
    const isLid = lid === wantedLid && (fit === null || FITS.indexOf(fit) > FITS.indexOf("LID"));
    add(isLid ? "LID" : fit, { text: name, detail, selection: { kind: "node", node } });
  });
  return FITS.flatMap((fit) => found.get(fit)!).slice(0, MOST_FOUND);
}

function fitOf(name: string, wanted: string): Fit | null {
  if (name === wanted) return "name";
  const [of, small] = [name.toLowerCase(), wanted.toLowerCase()];
  if (of === small) return "name in another case";
  if (of.startsWith(small)) return "beginning";
  return of.includes(small) ? "part" : null;
}

function portsNamed(run: Run, wanted: string): number[] {
  const parts = /^(.*):(\d+)$/.exec(wanted);
  if (!parts) return [];
  const [node, number] = [parts[1].toLowerCase(), Number(parts[2])];
  return [...run.nodes.keys()]
    .filter((one) => run.nodes[one].name.toLowerCase() === node)
    .flatMap((one) => run.portsOf(one).filter((row) => run.number[row] === number));
}

/** A flow by the names of its hosts: `a>b`, with or without spaces. */
export function findFlow(one: Run, name: string): (Selection & { kind: "flow" }) | null {
  const parts = name.split(">");
  // Names can hold ">", too.
  for (let cut = 1; cut < parts.length; cut++) {
    const from = parts.slice(0, cut).join(">");
    const to = parts.slice(cut).join(">");
    const source = one.findNode(from) ?? one.findNode(from.trim());
    const destination = one.findNode(to) ?? one.findNode(to.trim());
    if (source === undefined || destination === undefined || source === destination) continue;
    if (one.isHost(source) && one.isHost(destination)) return { kind: "flow", source, destination };
  }
  return null;
}
