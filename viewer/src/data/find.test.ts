import { expect, test } from "vitest";
import { find } from "./find";
import type { Run } from "./run";

/** A run of nodes with two ports each, the first of which are hosts whose LIDs are as given. */
function runOf(
  hosts: [name: string, lid: number][],
  switches: string[],
  lidOfSwitches: number | null = null,
): Run {
  const nodes = [
    ...hosts.map(([name, lid]) => ({ name, lid })),
    ...switches.map((name) => ({ name, lid: lidOfSwitches })),
  ];
  return {
    nodes,
    lifetimes: [{ destination: "" }],
    number: nodes.flatMap(() => [1, 2]),
    isHost: (node: number) => node < hosts.length,
    portsOf: (node: number) => [2 * node, 2 * node + 1],
    portName: (row: number) => `${nodes[row >> 1].name}:${1 + (row % 2)}`,
    findNode: (name: string) => {
      const node = nodes.findIndex((one) => one.name === name);
      return node < 0 ? undefined : node;
    },
  } as unknown as Run;
}

const textsOf = (run: Run, text: string) => find(run, text).map((one) => one.text);

test("an exact name comes first, then one in another case, a LID, a beginning, a part", () => {
  const run = runOf(
    [
      ["x7y", 1],
      ["7up", 2],
      ["seven", 7],
      ["AB", 4],
      ["ab", 5],
      ["abc", 6],
    ],
    ["7"],
  );
  expect(textsOf(run, "7")).toEqual(["7", "seven", "7up", "x7y"]);
  expect(textsOf(run, "ab")).toEqual(["ab", "AB", "abc"]);
  expect(textsOf(run, "AB")).toEqual(["AB", "ab", "abc"]);
});

test("an exact name is found however many others hold it", () => {
  const many = Array.from({ length: 40 }, (_, at): [string, number] => [`a-s-${at}`, 100 + at]);
  const run = runOf(many, ["s"]);
  const found = textsOf(run, "S");
  expect(found[0]).toBe("s");
  expect(found).toHaveLength(12);
});

test("ports are found in whatever case", () => {
  const run = runOf([["h", 1]], ["Sw", "sW"]);
  expect(textsOf(run, "sw:1")).toEqual(["Sw:1", "sW:1"]);
  expect(textsOf(run, "sW:2")).toEqual(["sW:2", "Sw:2"]);
  expect(textsOf(run, "sw:3")).toEqual([]);
});

test("trees and flows are found among names", () => {
  const run = runOf(
    [
      ["tree 0", 1],
      ["b", 2],
    ],
    [],
  );
  expect(find(run, "tree 0").map((one) => one.selection)).toEqual([
    { kind: "node", node: 0 },
    { kind: "tree", tree: 0 },
  ]);
  expect(find(run, "b > tree 0").map((one) => one.selection)).toEqual([
    { kind: "flow", source: 1, destination: 0 },
  ]);
});

test("hosts and switches are found by their LID, as the list and the tools write it", () => {
  const run = runOf([["h", 79]], ["sw"], 10);
  for (const text of ["79", "LID 79", "lid:79", "0x4f", "0x004F", "LID 0x4f"])
    expect(textsOf(run, text)).toEqual(["h"]);
  for (const text of ["10", "LID 10", "0xa"]) expect(textsOf(run, text)).toEqual(["sw"]);
  for (const text of ["LID 7", "0x4", "LID", "LID 79 80"]) expect(textsOf(run, text)).toEqual([]);
});
