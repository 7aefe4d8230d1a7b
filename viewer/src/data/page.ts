// Data in the page: facts as JSON, and tables as Arrow files compressed with zstd.

import { CompressionType, compressionRegistry, tableFromIPC, type Table } from "apache-arrow";
import { decompress } from "fzstd";
import type { Measures } from "./headings";
import type { ReportFacts } from "./report";

// Typed arrays need their values at multiples of 8 bytes, and fzstd gives parts of its own buffer.
compressionRegistry.set(CompressionType.ZSTD, { decode: (bytes) => decompress(bytes).slice() });

/** Version of the page's data that this program reads. */
export const FORMAT = 2;

export interface RunFacts {
  label: string;
  name: string;
  description: string;
  scheme: string;
  seed: number;
  version: string;
  hash: string;
  fabric: { generator?: string; sizes?: number[] };
  path_choice: string;
  hosts: number;
  duration_ps: number;
  warm_up_ps: number;
  link_gbps: number;
  rates_gbps: Record<string, number>;
  /** The largest latency of a packet that was measured, in nanoseconds; the intervals of histograms end later. */
  latency_max_ns?: number | null;
  groups: string[];
  merged_samples: number;
  skipped_trees: number;
  /** Rows that the run has of the tables of which the page has only a part. */
  cut?: Record<string, number>;
  tables: string[];
  scenario: string;
  /** Of a diagnosis of a subnet: its first instant. Amounts in trees are then Gbit/s, not bytes. */
  diagnosis?: { began: string };
  /** Of a live page: which subnet or which routes it is made of. */
  live_version?: string;
  /** Of a live fabric that began with Threshold 0: whether no switch has marked yet. */
  live_is_off?: boolean;
  /** Keys in which the runs of the page differ, and their values. */
  parameters: Record<string, string>;
}

export interface PageFacts {
  format: number;
  title: string;
  measures: Measures;
  runs: RunFacts[];
  /** Where a live fabric's samples are, relative to the address of the page. */
  live: { path: string } | null;
  /** A reproduction, a comparison of schemes or a sweep; then the page shows one run at a time. */
  report: ReportFacts | null;
}

export function readFacts(): PageFacts {
  const facts = JSON.parse(textOf("page")) as PageFacts;
  if (facts.format !== FORMAT) throw new Error(`page format ${facts.format} is not ${FORMAT}`);
  return facts;
}

/** Read a table of the page; the text in the page is dropped, so that memory holds it once. */
export function readTable(id: string): Table {
  const table = tableFromIPC(bytesOf(textOf(id)));
  document.getElementById(id)!.textContent = "";
  return table;
}

function textOf(id: string): string {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no data ${id}`);
  return element.textContent ?? "";
}

function bytesOf(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array })
    .fromBase64;
  if (native) return native(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = characters.charCodeAt(index);
  return bytes;
}
