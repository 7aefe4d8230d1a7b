// How finely a moving map is drawn: where frames come slowly, more coarsely until it stands still.

/** Milliseconds between frames of a map that moves smoothly enough. */
const SLOW = 45;
/** Frames that must come slowly one after the other. */
const PATIENCE = 2;
/** Milliseconds after which a map stands still. */
const REST = 180;
const COARSE = 0.5;

export class Detail {
  private last = -Infinity;
  private slow = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** @param redraw Called when a map that was drawn coarsely stands still. */
  constructor(private readonly redraw: () => void) {}

  /** Part of the resolution for a frame at an instant in milliseconds. */
  at(now: number): number {
    const apart = now - this.last;
    this.last = now;
    clearTimeout(this.timer);
    // A first frame after a rest, or the one that makes a coarse map sharp again.
    if (apart >= REST && this.slow < PATIENCE) this.slow = 0;
    else if (apart > SLOW) this.slow++;
    else if (this.slow < PATIENCE) this.slow = 0;
    if (this.slow < PATIENCE) return 1;
    this.timer = setTimeout(() => {
      this.slow = 0;
      this.last = -Infinity;
      this.redraw();
    }, REST);
    return COARSE;
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
