// Part of the output of `silvan diagnose --json`.

export interface DiagnosedHost {
  host: string;
  gbps: number;
  reason: string;
  jobs?: string[];
}

export interface DiagnosedTree {
  root: string;
  cause: string;
  explanation: string;
  confidence: string;
  cannot_know: string[];
  contributors: DiagnosedHost[];
  victims: DiagnosedHost[];
}

export interface Finding {
  severity: "info" | "warning" | "error";
  what: string;
  advice: string;
}

/** A port whose Marking_Rate the manager has lowered, or would have lowered. */
export interface LowPort {
  port: string;
  peer: string;
  /** Ports that wait for it, and the part of the time for which they do. */
  victims: [string, number | null][];
  low_for_s: number;
  victims_lost_bytes: number;
}

export interface Manager {
  act: boolean;
  low: LowPort[];
}

export interface Diagnosis {
  ports: number;
  unknown_ports: number;
  trees: DiagnosedTree[];
  unexplained: string[];
  health: Finding[];
  /** Of a page that the manager serves itself. */
  manager?: Manager;
}

export function managed({ act, low }: Manager): string {
  const ports = `${low.length} port${low.length === 1 ? "" : "s"}`;
  if (act) return `Marking_Rate is low at ${ports}`;
  return `Dry run: Marking_Rate would be low at ${ports}`;
}

export function verdict(diagnosis: Diagnosis): string {
  const { trees, unknown_ports: unknown, unexplained } = diagnosis;
  if (trees.length) return `Congestion: ${trees.length} tree${trees.length > 1 ? "s" : ""}`;
  return unknown || unexplained.length
    ? "No congestion found in what could be read"
    : "No congestion";
}
