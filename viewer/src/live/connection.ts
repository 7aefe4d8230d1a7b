import { batch, signal } from "@preact/signals";
import { beforePainting } from "../frames";
import * as state from "../state";
import { readMessage, type Message } from "./message";
import type { LiveRun } from "./run";

export type LiveStatus = "connecting" | "live" | "lost" | "ended" | "refused";

/** Null: the page shows finished runs. */
export const liveStatus = signal<LiveStatus | null>(null);
const RETRY_MS = 2000;
/** In which samples of before come, after the first one. */
const BEFORE_MS = 1000;
/** Close code of a server that ends. */
const ENDED = 1001;
const FORBIDDEN = 403;

/** Show what the server sends, and connect again where the connection is lost. */
export function connect(run: LiveRun, path: string): void {
  let waiting: Message[] = [];
  let isOpen = false;
  const show = () => {
    if (!waiting.length) return;
    const messages = waiting;
    waiting = [];
    batch(() => {
      const isNewest = isAtEnd();
      const isFirst = run.times.length === 0;
      state.runs.value = [run.with(messages)];
      const [first, last] = [run.times[0], run.times[run.times.length - 1]];
      state.time.value = isNewest ? last : Math.max(first, state.time.value);
      const wanted = state.wanted.value;
      if (wanted !== null && wanted <= last) {
        // What is older than all samples cannot be shown.
        if (wanted >= first) state.time.value = wanted;
        state.wanted.value = null;
      }
      if (isFirst) setTimeout(() => (state.wanted.value = null), BEFORE_MS);
      // What came last may be painted after the connection has ended.
      if (isOpen) liveStatus.value = "live";
    });
  };
  const open = () => {
    const address = new URL(path, location.href);
    address.protocol = "ws:";
    address.hash = "";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => (isOpen = true);
    socket.onmessage = (event) => {
      const message = readMessage(event.data as ArrayBuffer);
      const last = waiting.at(-1)?.time_ps ?? run.times[run.times.length - 1] ?? 0;
      // Who connects again gets the samples of before again.
      const isKnown =
        run.times.includes(message.time_ps) ||
        waiting.some((other) => other.time_ps === message.time_ps);
      if (isKnown && run.follows(message)) return;
      // Another fabric may answer at the address: its time starts again.
      if (message.time_ps <= last || !run.follows(message)) location.reload();
      waiting.push(message);
      // A page in the background is not painted, and would keep all messages.
      if (document.hidden) show();
      else beforePainting(show);
    };
    socket.onclose = ({ code }) => {
      isOpen = false;
      if (code === ENDED) liveStatus.value = "ended";
      else void retry();
    };
  };
  // A server that was started again has another address, and refuses this one.
  const retry = async () => {
    liveStatus.value = "lost";
    const answer = await fetch(location.href, { cache: "no-store" }).catch(() => null);
    void answer?.body?.cancel();
    if (answer?.status === FORBIDDEN) liveStatus.value = "refused";
    else setTimeout(open, RETRY_MS);
  };
  liveStatus.value = "connecting";
  open();
}

/** Whether the newest sample is shown, so that the next one is to be. */
export const isAtEnd = state.isNewest;

/** Show the newest sample, and follow. */
export function follow(): void {
  const all = state.instants.value;
  state.playing.value = false;
  if (all.length) state.time.value = all[all.length - 1];
}
