// What a reader can select.

export type Selection =
  { kind: "node"; node: number } | { kind: "port"; row: number } | { kind: "tree"; tree: number };
