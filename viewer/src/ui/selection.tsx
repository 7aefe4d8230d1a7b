// The panel of what is selected: its values now, and what holds its packets up.

import * as state from "../state";
import { chainFrom, pathTo, waysOf } from "../data/paths";
import { instant } from "../data/units";
import { FACT_COLUMNS, factsOf, fullName, kindOf, nameOf, plainFacts, type Fact } from "./facts";
import { Short } from "./short";
import { CsvButton } from "./table";

/** Letters of a heading: those of a flow between two hosts with long names. */
const MOST_LETTERS = 140;

export function SelectionPanel() {
  const run = state.run.value;
  const chosen = state.selection.value;
  if (!chosen) {
    return (
      <section aria-labelledby="selection-title">
        <h2 id="selection-title">Selection</h2>
        <p class="none">
          Select a host, switch, port or tree: click it on the map, search for its name, or choose
          it in a table.
        </p>
      </section>
    );
  }
  const forest = run.treeTimes.length ? run.forest(run.treeSampleAt(state.panelTime.value)) : null;
  const start =
    chosen.kind === "port"
      ? chosen.row
      : chosen.kind === "flow"
        ? run.portsOf(chosen.source)[0]
        : chosen.kind === "node" && run.isHost(chosen.node)
          ? run.portsOf(chosen.node)[0]
          : undefined;
  const chain = start === undefined ? [] : chainFrom(forest, start);
  const root = chain.length
    ? forest!.trees.find((tree) => tree.rootRow === chain[chain.length - 1])
    : undefined;
  return (
    <section aria-labelledby="selection-title">
      <h2 id="selection-title">
        <span>
          {kindOf(run, chosen)}{" "}
          {chosen.kind === "tree" ? (
            chosen.tree
          ) : (
            <Short text={nameOf(run, chosen)} most={MOST_LETTERS} />
          )}
        </span>
        <span>
          <CsvButton
            title={`${fullName(run, chosen)} at ${instant(state.panelTime.value)}`}
            columns={FACT_COLUMNS}
            rows={() =>
              plainFacts([
                ...factsOf(run, chosen, state.panelTime.value),
                ...chain.map((row, place): Fact => [`holds up ${place + 1}`, run.portName(row)]),
              ])
            }
          />{" "}
          <button type="button" class="small" onClick={() => (state.selection.value = null)}>
            Clear
          </button>
        </span>
      </h2>
      <dl aria-live="polite">
        {factsOf(run, chosen, state.panelTime.value).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Short text={value} most={MOST_LETTERS} />
            </dd>
          </div>
        ))}
      </dl>
      {chosen.kind === "node" && !run.isHost(chosen.node) && <SwitchPorts node={chosen.node} />}
      {start !== undefined && <Paths start={start} />}
      {start !== undefined && (
        <>
          <h3>What holds its packets up</h3>
          {chain.length === 0 ? (
            <p class="none">{whyFree(start)}</p>
          ) : (
            <ol class="chain">
              {chain.map((row, index) => {
                const place = forest!.rows.indexOf(row);
                const isRoot = index === chain.length - 1;
                return (
                  <li key={row}>
                    <button
                      type="button"
                      class="link"
                      onClick={() => (state.selection.value = { kind: "port", row })}
                    >
                      <Short text={run.portName(row)} />
                    </button>{" "}
                    {isRoot ? "root" : "waits for credits"}, {run.amount(forest!.queued[place])}{" "}
                    {run.facts.diagnosis && "lost"}
                  </li>
                );
              })}
              {root?.destination && (
                <li>
                  to <Short text={root.destination} />
                </li>
              )}
            </ol>
          )}
        </>
      )}
    </section>
  );
}

/** What is said of a port in no tree: a cable on the way may be down. */
function whyFree(start: number): string {
  const [run, chosen] = [state.run.value, state.selection.value];
  const down = downRows();
  const way = chosen?.kind === "flow" ? pathTo(run, start, chosen.destination) : [start];
  const cut = way.find((row) => down.has(row));
  if (cut !== undefined) return `The cable at ${run.portName(cut)} is down.`;
  return "It is in no congestion tree at this instant.";
}

function downRows(): Set<number> {
  return new Set(Array.from(state.run.value.downRows(state.panelTime.value)));
}

const TABLE = "table";

/** Where packets go: those of a flow, or of a host to the roots that it contributes to. */
function Paths({ start }: { start: number }) {
  const run = state.run.value;
  const chosen = state.selection.value;
  if (!run.egress || !chosen || chosen.kind === "port" || chosen.kind === "tree") return null;
  const forest = run.treeTimes.length ? run.forest(run.treeSampleAt(state.panelTime.value)) : null;
  const ways =
    chosen.kind === "flow"
      ? [
          {
            rows: pathTo(run, start, chosen.destination),
            to: `to ${run.nodes[chosen.destination].name}`,
          },
        ]
      : waysOf(run, forest, chosen.node);
  const down = downRows();
  return (
    <>
      <h3>Where packets go</h3>
      {ways.length === 0 && (
        <p class="none">
          The host contributes to no tree at this instant. Search for A &gt; B to see a path.
        </p>
      )}
      {ways.map(({ rows, to }) => (
        <ol key={to} class="chain way">
          {rows.map((row) => (
            <li key={row}>
              <button
                type="button"
                class="link"
                onClick={() => (state.selection.value = { kind: "port", row })}
              >
                <Short text={run.portName(row)} />
              </button>
              {down.has(row) && " (cable down)"}
            </li>
          ))}
          <li>
            <Short text={to} />
          </li>
        </ol>
      ))}
      {ways.length > 0 && run.facts.path_choice !== TABLE && (
        <p class="none">One of several paths: {run.facts.path_choice}.</p>
      )}
    </>
  );
}

function SwitchPorts({ node }: { node: number }) {
  const run = state.run.value;
  return (
    <ul class="ports">
      {run.portsOf(node).map((row) => (
        <li key={row}>
          <button
            type="button"
            class="link"
            aria-label={`Select ${run.portName(row)}`}
            onClick={() => (state.selection.value = { kind: "port", row })}
          >
            {run.number[row]}
          </button>
        </li>
      ))}
    </ul>
  );
}
