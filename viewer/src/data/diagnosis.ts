// A diagnosis as the page shows it: a part of what `silvan diagnose --json` prints.

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

export interface Diagnosis {
  ports: number;
  unknown_ports: number;
  trees: DiagnosedTree[];
  unexplained: string[];
  health: Finding[];
}

/** What was found, in a sentence. */
export function verdict(diagnosis: Diagnosis): string {
  const { trees, unknown_ports: unknown, unexplained } = diagnosis;
  if (trees.length) return `Congestion: ${trees.length} tree${trees.length > 1 ? "s" : ""}`;
  return unknown || unexplained.length
    ? "No congestion found in what could be read"
    : "No congestion";
}
