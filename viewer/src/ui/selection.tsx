import * as state from "../state";
import { instant } from "../data/units";
import { FACT_COLUMNS, factsOf, plainFacts, startOf, titleOf } from "./facts";
import { listsOf, plainLists, type List } from "./lists";
import { Short } from "./short";
import { CsvButton } from "./table";

/** Letters of a heading: those of a flow between two hosts with long names. */
const MOST_LETTERS = 140;
/** Members of a tree that are listed; the file has all. */
const MOST_MEMBERS = 12;

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
  const now = state.panelTime.value;
  const facts = factsOf(run, chosen, now);
  const lists = listsOf(run, chosen, now);
  const start = startOf(run, chosen, now);
  return (
    <section aria-labelledby="selection-title">
      <h2 id="selection-title">
        <span>
          <Short text={titleOf(run, chosen)} most={MOST_LETTERS} />
        </span>
        <span>
          <CsvButton
            title={`${titleOf(run, chosen)} at ${instant(now)}`}
            columns={FACT_COLUMNS}
            rows={() => [...plainFacts(facts), ...plainLists(lists)]}
          />{" "}
          <button type="button" class="small" onClick={() => (state.selection.value = null)}>
            Clear
          </button>
        </span>
      </h2>
      <dl aria-live="polite">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Short text={value} most={MOST_LETTERS} />
            </dd>
          </div>
        ))}
      </dl>
      {start !== null && (
        <button type="button" class="small" onClick={() => (state.time.value = start)}>
          Go to {instant(start)}, when it was first seen
        </button>
      )}
      {lists.map((list, place) => (
        <Listed key={place} list={list} hasTitle={list.title !== lists[place - 1]?.title} />
      ))}
      {chosen.kind === "node" && !run.isHost(chosen.node) && <SwitchPorts node={chosen.node} />}
    </section>
  );
}

function Listed({ list, hasTitle }: { list: List; hasTitle: boolean }) {
  const { title, heading, kind, length, item, to, note } = list;
  const shown = kind === "members" ? Math.min(MOST_MEMBERS, length) : length;
  const items = Array.from({ length: shown }, (_, at) => item(at));
  const Kind = kind === "members" ? "ul" : "ol";
  return (
    <>
      {hasTitle && <h3>{title}</h3>}
      {heading && <h4>{heading}</h4>}
      {length > 0 && (
        <Kind class={kind === "way" ? "chain way" : kind}>
          {items.map(({ text, selection, said }, at) => (
            <li key={at}>
              <button
                type="button"
                class="link"
                onClick={() => (state.selection.value = selection)}
              >
                <Short text={text} />
              </button>{" "}
              {said}
            </li>
          ))}
          {to && (
            <li>
              to <Short text={to} />
            </li>
          )}
          {length > shown && <li>and {length - shown} more, which the CSV has</li>}
        </Kind>
      )}
      {note && <p class="none">{note}</p>}
    </>
  );
}

function SwitchPorts({ node }: { node: number }) {
  const run = state.run.value;
  return (
    <>
      <h3>All ports</h3>
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
    </>
  );
}
