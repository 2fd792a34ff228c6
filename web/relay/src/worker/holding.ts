import { pause, randomId, type Environment } from "./environment.ts";

/** A lease is renewed this often, and is over when it was not for four times as long. */
const RENEW = 1_500;
const LEASE = 4 * RENEW;

/** Something that only one tab of this browser has: gives it back. */
export type Release = () => void;

/**
 * Waits until this tab alone holds `name`, by Web Locks where the browser has them (pages with TLS and loopback), and else by a
 * lease in the storage that all tabs see. `undefined` when the signal ends the wait. A tab that goes away gives back what it holds.
 */
export function hold(environment: Environment, name: string, signal: AbortSignal): Promise<Release | undefined> {
  const { locks, sharedStorage } = environment;
  if (locks) return holdLock(locks, name, signal);
  // Nothing is shared between the tabs: each is on its own.
  if (!sharedStorage) return Promise.resolve(() => {});
  return holdLease(sharedStorage, `signalbox.lease.${name}`, signal);
}

function holdLock(locks: LockManager, name: string, signal: AbortSignal): Promise<Release | undefined> {
  return new Promise((resolve) => {
    const granted = () => new Promise<void>((release) => resolve(release));
    locks.request(name, { signal }, granted).catch(() => resolve(undefined));
  });
}

async function holdLease(storage: Storage, key: string, signal: AbortSignal): Promise<Release | undefined> {
  const tab = randomId();
  const read = (): { tab?: string; until?: number } => {
    try {
      return JSON.parse(storage.getItem(key) ?? "{}");
    } catch {
      return {};
    }
  };
  const write = () => storage.setItem(key, JSON.stringify({ tab, until: Date.now() + LEASE }));
  const mine = () => read().tab === tab;
  while (!signal.aborted) {
    const { until = 0 } = read();
    // A clock that was set back must not keep a lease for ever.
    if (until < Date.now() || until > Date.now() + LEASE) {
      write();
      // Another tab may have written at the same moment: the last one has it.
      await pause(50 + Math.random() * 50, signal);
      if (mine()) break;
    }
    await pause(RENEW / 4, signal);
  }
  if (signal.aborted) {
    if (mine()) storage.removeItem(key);
    return undefined;
  }
  const timer = setInterval(() => mine() && write(), RENEW);
  return () => {
    clearInterval(timer);
    if (mine()) storage.removeItem(key);
  };
}
