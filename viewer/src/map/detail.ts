// How finely a moving map is drawn: where frames come slowly, more coarsely until it stands still.

/** Milliseconds between frames of a map that moves smoothly enough. */
const SLOW = 45;
/** Frames that must come slowly one after the other. */
const PATIENCE = 2;
/** Milliseconds without a frame after which a map stands still. */
const REST = 180;
const COARSE = 0.5;

export class Detail {
  private last = -Infinity;
  /** When the browser could paint again after the last frame, however long that one took; null until then. */
  private free: number | null = -Infinity;
  private slow = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private frame = 0;

  /** @param redraw Called when a map that was drawn coarsely stands still. */
  constructor(private readonly redraw: () => void) {}

  /** Part of the resolution for a frame at an instant in milliseconds. */
  at(now: number): number {
    const apart = now - this.last;
    const isRested = this.free !== null && now - this.free >= REST;
    this.stop();
    this.last = now;
    this.free = null;
    this.frame = requestAnimationFrame((at) => this.freed(at));
    if (this.slow < PATIENCE) this.slow = !isRested && apart > SLOW ? this.slow + 1 : 0;
    return this.slow < PATIENCE ? 1 : COARSE;
  }

  private freed(at: number): void {
    this.free = at;
    if (this.slow < PATIENCE) return;
    this.timer = setTimeout(() => {
      this.slow = 0;
      this.redraw();
    }, REST);
  }

  stop(): void {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }
}
