import { clipped, isolated, wordsClipped } from "../data/units";

/** A name of at most so many letters; of a longer one, the whole is shown by the pointer. */
export function Short({ text, most }: { text: string; most?: number }) {
  return shown(text, clipped(text, most));
}

/** A sentence in which single words can be too long to be shown whole. */
export function ShortWords({ text, most }: { text: string; most: number }) {
  return shown(text, clipped(wordsClipped(text), most));
}

function shown(text: string, short: string) {
  return short === text ? (
    <>{isolated(text)}</>
  ) : (
    <span title={isolated(text)}>{isolated(short)}</span>
  );
}
