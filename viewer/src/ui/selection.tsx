// The panel of what is selected: its values now, and what holds its packets up.

import * as state from "../state";
import { bytes } from "../data/units";
import { factsOf, kindOf, nameOf } from "./facts";

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
  const chain = start === undefined ? [] : run.chain(forest, start);
  const root = chain.length
    ? forest!.trees.find((tree) => tree.rootRow === chain[chain.length - 1])
    : undefined;
  return (
    <section aria-labelledby="selection-title">
      <h2 id="selection-title">
        {kindOf(run, chosen)} {chosen.kind === "tree" ? chosen.tree : nameOf(run, chosen)}
        <button type="button" class="small" onClick={() => (state.selection.value = null)}>
          Clear
        </button>
      </h2>
      <dl aria-live="polite">
        {factsOf(run, chosen, state.panelTime.value).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {chosen.kind === "node" && !run.isHost(chosen.node) && <SwitchPorts node={chosen.node} />}
      {start !== undefined && (
        <>
          <h3>What holds its packets up</h3>
          {chain.length === 0 ? (
            <p class="none">It is in no congestion tree at this instant.</p>
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
                      {run.portName(row)}
                    </button>{" "}
                    {isRoot ? "root" : "waits for credits"}, {bytes(forest!.queued[place])}
                  </li>
                );
              })}
              {root?.destination && <li>to {root.destination}</li>}
            </ol>
          )}
        </>
      )}
    </section>
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
