// Work before the browser paints: text and map change in the same frame.

type Work = (now: number) => void;

const waiting = new Set<Work>();
let frame = 0;

/** Do something before the next painting; during such work, before the same one. */
export function beforePainting(work: Work): void {
  waiting.add(work);
  frame ||= requestAnimationFrame(doAll);
}

export function cancelWork(work: Work): void {
  waiting.delete(work);
}

function doAll(now: number): void {
  try {
    // What is added meanwhile comes last.
    for (const work of waiting) {
      waiting.delete(work);
      work(now);
    }
  } finally {
    frame = 0;
  }
}
