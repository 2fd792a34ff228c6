import { RelayError, type Api } from "./api.ts";
import { Breaker } from "./breaker.ts";
import { pause } from "./environment.ts";
import type { Outcome } from "./journal.ts";

/** The most answers that go together, and the most characters of them. A longer answer goes alone. */
const MAX_BATCH = 10;
const MAX_LENGTH = 256 * 1024;
/** How often an answer is brought again, and the first pause before that. */
const RETRIES = 3;
const RETRY_PAUSE = 500;
/** So many rounds of that, one with each heartbeat, before an answer is given up. */
const ROUNDS = 5;
/** Refusals of one answer of several after which another attempt makes sense. */
const PASSING = new Set(["overloaded", "internal_server_error", "rate_limit_exceeded"]);
/** Refusals that say that the gateway has the answer, or waits no longer. */
const SETTLED = new Set(["duplicate_response", "request_not_found"]);

interface Answer {
  readonly requestId: string;
  readonly text: string;
  attempts: number;
  rounds: number;
  /** It was refused together with others. */
  alone: boolean;
}

/** Brings answers to the gateway. What is there while others are on their way goes together with the next. */
export class Outgoing {
  readonly #api: Api;
  readonly #problem: (message: string) => void;
  readonly #breaker = new Breaker();
  #queue: Answer[] = [];
  /** Answers that could not be brought for now. */
  #unheard: Answer[] = [];
  #due = 0;
  #busy = false;
  #nap = new AbortController();

  constructor(api: Api, problem: (message: string) => void) {
    this.#api = api;
    this.#problem = problem;
  }

  add(requestId: string, outcome: Outcome, duration: number): void {
    const waits = (answer: Answer) => answer.requestId === requestId;
    if (this.#queue.some(waits)) return;
    this.#unheard = this.#unheard.filter((answer) => !waits(answer));
    const text = this.#api.answerText(requestId, outcome, duration);
    this.#queue.push({ requestId, text, attempts: 0, rounds: 0, alone: false });
    void this.#drain();
  }

  /** Tries again what could not be brought before. With `back` the network has come back, and nothing is waited for. */
  flush(back: boolean): void {
    for (const answer of this.#unheard.splice(0)) this.#queue.push({ ...answer, attempts: 0, rounds: answer.rounds + 1 });
    if (back) {
      this.#due = 0;
      this.#breaker.probe();
      this.#nap.abort();
    }
    void this.#drain();
  }

  stop(): void {
    this.#queue = [];
    this.#unheard = [];
    this.#nap.abort();
  }

  async #drain(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#queue.length > 0) {
      const wait = Math.max(this.#breaker.wait(), this.#due - Date.now());
      if (wait <= 0) {
        await this.#send(this.#take());
        continue;
      }
      this.#nap = new AbortController();
      await pause(wait, this.#nap.signal);
    }
    this.#busy = false;
  }

  /** The next answers that go together: one, while the breaker looks whether it can close. */
  #take(): Answer[] {
    const first = this.#queue.shift();
    if (!first) return [];
    const batch = [first];
    let length = first.text.length;
    while (batch.length < MAX_BATCH && !first.alone && !this.#breaker.probes) {
      const next = this.#queue[0];
      if (!next || next.alone || length + next.text.length > MAX_LENGTH) break;
      batch.push(next);
      length += next.text.length;
      this.#queue.shift();
    }
    return batch;
  }

  async #send(batch: Answer[]): Promise<void> {
    try {
      const refusals = await this.#api.answers(batch.map(({ text }) => text));
      this.#breaker.succeeded();
      batch.forEach((answer, index) => this.#settle(answer, refusals[index]));
    } catch (thrown) {
      const refused = thrown instanceof RelayError ? thrown : undefined;
      if (refused?.final || refused?.status === 409 || refused?.status === 413) this.#refused(batch, refused);
      else this.#failed(batch, String(thrown), refused?.retryAfter ?? 0);
    }
  }

  /** What the gateway says of one answer of several. */
  #settle(answer: Answer, refusal: { error: string; message: string } | undefined): void {
    if (!refusal || SETTLED.has(refusal.error)) return;
    if (PASSING.has(refusal.error)) this.#failed([answer], refusal.message, 0);
    else this.#problem(`an answer was refused: ${refusal.message}`);
  }

  /** Of several that were refused, each is brought by itself: the others may be good. */
  #refused(batch: Answer[], refused: RelayError): void {
    if (batch.length > 1) this.#queue.unshift(...batch.map((answer) => ({ ...answer, alone: true })));
    else if (!SETTLED.has(refused.error) && refused.status !== 409) this.#problem(`an answer was refused: ${refused.message}`);
  }

  #failed(batch: Answer[], reason: string, retryAfter: number): void {
    if (this.#breaker.failed()) this.#problem("answers wait, because several could not be brought");
    let longest = 0;
    const again: Answer[] = [];
    for (const answer of batch) {
      answer.attempts += 1;
      longest = Math.max(longest, RETRY_PAUSE * 2 ** (answer.attempts - 1));
      if (answer.attempts <= RETRIES) again.push(answer);
      else this.#giveUp(answer, reason);
    }
    this.#queue.unshift(...again);
    this.#due = Date.now() + (again.length > 0 ? Math.max(retryAfter, longest) : retryAfter);
  }

  #giveUp(answer: Answer, reason: string): void {
    if (answer.rounds >= ROUNDS) return this.#problem(`an answer is given up: ${reason}`);
    this.#unheard.push(answer);
    if (answer.rounds === 0) this.#problem(`an answer could not be brought: ${reason}`);
  }
}
