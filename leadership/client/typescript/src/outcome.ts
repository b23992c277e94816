import { invalid } from "./errors.ts";
import { quote } from "./wire.ts";

/** How a leader says that its work has ended. */
export interface ReleaseOptions {
  /** done; failed: it cannot be done so, and the election's policy may count that; stopped: it was cut short. */
  outcome?: "done" | "failed" | "stopped";
  /** With an outcome: a line about it for people, of at most 256 bytes. */
  note?: string;
}

const most = 256; // bytes of a note

/** @internal Throws InvalidArgument for what no server takes. */
export function checkOutcome({ outcome, note }: ReleaseOptions): void {
  if (outcome !== undefined && !["done", "failed", "stopped"].includes(outcome)) {
    throw invalid(`outcome: it is "done", "failed" or "stopped", or left out, not ${quote(outcome)}`);
  }
  if (note === undefined || note === "") return;
  if (outcome === undefined) throw invalid("note: it says more about an outcome; give outcome, too");
  if (typeof note !== "string" || Buffer.byteLength(note) > most || /\p{Cc}|\p{Cs}/u.test(note)) {
    throw invalid(`note: a note is one line of text of at most ${most} bytes, without control characters, not ${quote(note)}`);
  }
}
