import type { StateChange } from "signalbox-relay";

/** What a state is called for people. */
export function words({ state, standby, transport, reason, error, retryIn }: StateChange): string {
  const seconds = Math.ceil((retryIn ?? 0) / 1000);
  switch (state) {
    case "connected":
      return standby ? "Connected, and standing by: another page serves this session." : `Connected${transport === "poll" ? " by polling" : ""}. Calls are answered here.`;
    case "connecting":
      return "Connecting…";
    case "reconnecting":
      return `Connection lost (${reason}). Trying again in ${seconds} s.`;
    case "error":
      return error === "session_expired" || error === "session_not_found"
        ? "The session is over or does not exist. Start a new one, or join another." : `Not connected: ${reason}`;
    default:
      return standby ? `Standing by: ${reason}.` : "Not connected.";
  }
}
