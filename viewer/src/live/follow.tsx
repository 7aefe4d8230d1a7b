import { follow, isAtEnd, liveStatus, type LiveStatus } from "./connection";

const WORDS: Record<LiveStatus, string> = {
  connecting: "connecting",
  live: "connected",
  lost: "connection lost, trying again",
  ended: "the server has ended",
  refused: "the server was started again: it prints the new address of this page",
};

export function Follow() {
  const status = liveStatus.value;
  if (status === null) return null;
  return (
    <span class="live">
      <button type="button" aria-pressed={isAtEnd()} onClick={follow}>
        Live
      </button>
      <span role="status">{WORDS[status]}</span>
    </span>
  );
}
