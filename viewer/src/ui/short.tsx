// Long names: beginning and end, and the whole in a tooltip.

import { clipped, wordsClipped } from "../data/units";

/** A name of at most so many letters; of a longer one, the whole is shown by the pointer. */
export function Short({ text, most }: { text: string; most?: number }) {
  const short = clipped(text, most);
  return short === text ? <>{text}</> : <span title={text}>{short}</span>;
}

/** A sentence in which single words can be too long to be shown whole. */
export function ShortWords({ text, most }: { text: string; most: number }) {
  const short = clipped(wordsClipped(text), most);
  return short === text ? <>{text}</> : <span title={text}>{short}</span>;
}
