/** One event of a stream of server-sent events. */
export interface Message {
  /** "" for the type that the standard calls message. */
  name: string;
  data: string;
  /** The last id of the stream, from this event or one before. */
  id: string;
}

/**
 * Limits one event and one line, in characters. The longest event that a server sends is an entry of
 * a journal.
 */
const maxMessage = (512 + 64) << 10;

/**
 * Reads server-sent events as the HTML standard defines them
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html), except that the field retry is
 * ignored: readers have a backoff of their own.
 */
export class EventDecoder {
  readonly #text = new TextDecoder();
  #line = "";
  #cr = false; // the last line ended with CR; a LF that follows belongs to it
  #name = "";
  #data: string[] = [];
  #size = 0; // of #data
  #id = "";
  /** How many lines were complete: each shows that the server is alive. */
  lines = 0;

  /** Returns the events that these bytes complete. It does not wait for the byte after a CR. */
  push(bytes: Uint8Array): Message[] {
    const messages: Message[] = [];
    let text = this.#text.decode(bytes, { stream: true });
    if (text !== "" && this.#cr) {
      this.#cr = false;
      if (text[0] === "\n") text = text.slice(1);
    }
    let from = 0;
    for (const end of text.matchAll(/\r\n|\r|\n/g)) {
      this.#take(this.#line + text.slice(from, end.index), messages);
      this.#line = "";
      from = end.index + end[0].length;
      this.#cr = end[0] === "\r" && from === text.length;
    }
    this.#line += text.slice(from);
    this.#limit(this.#line.length + this.#size);
    return messages;
  }

  #limit(size: number): void {
    if (size > maxMessage) throw new Error(`it has an event of more than ${maxMessage} characters`);
  }

  #take(line: string, messages: Message[]): void {
    this.lines++;
    this.#limit(line.length + this.#size);
    if (line === "") {
      if (this.#data.length > 0) {
        messages.push({ name: this.#name === "message" ? "" : this.#name, data: this.#data.join("\n"), id: this.#id });
      }
      this.#name = "";
      this.#data = [];
      this.#size = 0;
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon); // "" for a comment
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "data") {
      this.#data.push(value);
      this.#size += value.length + 1;
    }
  }
}

/**
 * Yields the events of a reply's body until it ends. An event cut off by the end is dropped. It reads
 * no faster than the loop. If no complete line arrives within idle milliseconds of waiting, it throws.
 * Leaving the loop closes the connection.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, idle: number): AsyncGenerator<Message, void, void> {
  const reader = body.getReader();
  const decoder = new EventDecoder();
  let left = idle;
  try {
    for (;;) {
      const began = performance.now();
      const { done, value } = await inTime(reader.read(), left, idle);
      if (done) return;
      const lines = decoder.lines;
      const messages = decoder.push(value);
      left = decoder.lines > lines ? idle : Math.max(left - (performance.now() - began), 0);
      yield* messages;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function inTime<T>(read: Promise<T>, left: number, idle: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing arrived for ${idle / 1000} s`)), left);
  });
  try {
    return await Promise.race([read, silence]);
  } finally {
    clearTimeout(timer);
  }
}
