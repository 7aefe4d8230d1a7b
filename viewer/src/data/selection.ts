export type Selection =
  | { kind: "node"; node: number }
  | { kind: "port"; row: number }
  | { kind: "tree"; tree: number }
  /** All packets from one host to another. */
  | { kind: "flow"; source: number; destination: number };
