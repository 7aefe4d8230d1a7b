import {
  managed,
  verdict,
  type DiagnosedHost,
  type DiagnosedTree,
  type Diagnosis,
  type LowPort,
  type Manager,
} from "../data/diagnosis";
import { bytes, gbps } from "../data/units";
import * as state from "../state";
import { Short } from "./short";
import { DataTable } from "./table";

export function DiagnosisPanel() {
  const run = state.run.value;
  if (!run.facts.diagnosis) return null;
  const diagnosis = run.diagnosisAt(state.panelTime.value);
  if (diagnosis?.manager) return <ManagerPanel diagnosis={diagnosis} manager={diagnosis.manager} />;
  return (
    <>
      <section aria-labelledby="diagnosis-title">
        <h2 id="diagnosis-title">Diagnosis</h2>
        {diagnosis === null ? (
          <p class="none">The first two sweeps are not done.</p>
        ) : (
          <>
            <p>
              <strong>{verdict(diagnosis)}</strong>
              {unknownPorts(diagnosis)}
            </p>
            {diagnosis.trees.map((tree) => (
              <TreeVerdict key={tree.root} tree={tree} />
            ))}
            {diagnosis.unexplained.length > 0 && (
              <p>Wait for an unknown reason: {diagnosis.unexplained.join(", ")}</p>
            )}
          </>
        )}
      </section>
      {diagnosis && (
        <section aria-labelledby="health-title">
          <h2 id="health-title">Health</h2>
          <DataTable
            title="Health"
            columns={[{ name: "severity" }, { name: "finding" }, { name: "what to do" }]}
            rows={diagnosis.health.map((one, index) => ({
              id: String(index),
              cells: [one.severity, one.what, one.advice],
            }))}
          />
        </section>
      )}
    </>
  );
}

function unknownPorts({ ports, unknown_ports: unknown }: Diagnosis): string {
  return unknown > 0 ? `; of ${ports} ports, ${unknown} are not known` : "";
}

function ManagerPanel({ diagnosis, manager }: { diagnosis: Diagnosis; manager: Manager }) {
  const percent = (part: number | null) =>
    part === null ? "not known" : `${Math.round(100 * part)} %`;
  const share = (part: number | null) => (part === null ? "not known" : String(part));
  const waits = ({ victims }: LowPort, show: (part: number | null) => string) =>
    victims.map(([port, wait]) => `${port} ${show(wait)}`).join(", ");
  return (
    <section aria-labelledby="manager-title">
      <h2 id="manager-title">Congestion manager (DCMS)</h2>
      <p>
        <strong>{managed(manager)}</strong>
        {unknownPorts(diagnosis)}
      </p>
      <DataTable
        title="Ports with a low Marking_Rate"
        columns={[
          { name: "port", isName: true },
          { name: "to", isName: true },
          { name: "low for, s", show: (value) => Number(value).toFixed(1) },
          { name: "victims wait", unit: "share" },
          { name: "victims lost", unit: "bytes", show: (value) => bytes(Number(value)) },
        ]}
        rows={manager.low.map((one) => ({
          id: one.port,
          cells: [one.port, one.peer, one.low_for_s, waits(one, share), one.victims_lost_bytes],
          texts: { 3: waits(one, percent) },
          onSelect: () => state.select("port", one.port),
        }))}
      />
    </section>
  );
}

function TreeVerdict({ tree }: { tree: DiagnosedTree }) {
  return (
    <article>
      <h3>
        <button type="button" class="link" onClick={() => state.select("port", tree.root)}>
          <Short text={tree.root} />
        </button>
        : {tree.cause}, {tree.confidence} confidence
      </h3>
      <p>{tree.explanation}</p>
      <Hosts title={`Contributors at ${tree.root}`} hosts={tree.contributors} />
      <Hosts title={`Victims of ${tree.root}`} hosts={tree.victims} />
      {tree.cannot_know.length > 0 && <p>Not known: {tree.cannot_know.join("; ")}</p>}
    </article>
  );
}

function Hosts({ title, hosts }: { title: string; hosts: DiagnosedHost[] }) {
  const hasJobs = hosts.some((one) => one.jobs?.length);
  return (
    <DataTable
      title={title}
      columns={[
        { name: "host", isName: true },
        { name: "sends", unit: "Gbit/s", show: (value) => gbps(Number(value)) },
        { name: "reason" },
        ...(hasJobs ? [{ name: "jobs" }] : []),
      ]}
      rows={hosts.map((one) => ({
        id: one.host,
        cells: [one.host, one.gbps, one.reason, ...(hasJobs ? [one.jobs!.join(", ")] : [])],
        onSelect: () => state.select("node", one.host),
      }))}
    />
  );
}
