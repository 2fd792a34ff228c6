/** So many failures within so long open it (CO-9). */
const FAILURES = 5;
const WINDOW = 60_000;
/** How long it stays open, and how many attempts have to succeed after that. */
const OPEN = 30_000;
const SUCCESSES = 2;

/** Ends attempts for a while after several have failed, so that a gateway that is overwhelmed is left alone. */
export class Breaker {
  #failures: number[] = [];
  #openUntil = 0;
  #due = 0;

  /** Milliseconds until the next attempt may be made. */
  wait(now = Date.now()): number {
    return Math.max(0, this.#openUntil - now);
  }

  /** True while attempts are made one by one, to see whether they succeed again. */
  get probes(): boolean {
    return this.#due > 0;
  }

  succeeded(): void {
    this.#due = Math.max(0, this.#due - 1);
  }

  /** Returns true if this failure opens it. */
  failed(now = Date.now()): boolean {
    this.#failures = [...this.#failures.filter((at) => now - at < WINDOW), now];
    if (!this.probes && this.#failures.length < FAILURES) return false;
    this.#failures = [];
    this.#openUntil = now + OPEN;
    this.#due = SUCCESSES;
    return true;
  }

  /** Allows an attempt at once: the network has come back. */
  probe(): void {
    this.#openUntil = 0;
  }
}
