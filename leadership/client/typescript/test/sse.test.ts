import assert from "node:assert/strict";
import { test } from "node:test";
import { EventDecoder, readEvents, type Message } from "../src/sse.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("a stream is decoded as the standard says, however it is cut", () => {
  const stream = "\ufeff: life\r\nid: 7\ndata: a\r\ndata:b\n\nevent: end\rid: x\0y\rdata: {}\r\rdata\n\nevent: message\r\nretry: 1\r\ndata: ü\r\n\r\nid: 9\ndata: cut off";
  const want: Message[] = [
    { name: "", data: "a\nb", id: "7" },
    { name: "end", data: "{}", id: "7" }, // an id with a null does not count
    { name: "", data: "", id: "7" },
    { name: "", data: "ü", id: "7" },
  ];
  const all = bytes(stream);
  for (const size of [1, 2, 3, 5, 7, all.length]) {
    const decoder = new EventDecoder();
    const got: Message[] = [];
    for (let i = 0; i < all.length; i += size) got.push(...decoder.push(all.subarray(i, i + size)));
    assert.deepEqual(got, want, `in parts of ${size}`);
  }
});

test("an event does not wait for the byte after a CR", () => {
  const decoder = new EventDecoder();
  assert.equal(decoder.push(bytes("data: 1\r\r")).length, 1);
  assert.equal(decoder.push(bytes("\ndata: 2\n\n")).length, 1);
});

test("an endless line and an endless event are refused", () => {
  const decoder = new EventDecoder();
  const part = bytes("x".repeat(65_536));
  assert.throws(() => { for (let i = 0; i < 20; i++) decoder.push(part); }, /more than/);
  const other = new EventDecoder();
  assert.throws(() => { for (let i = 0; i < 20; i++) other.push(bytes(`data: ${"x".repeat(65_536)}\n`)); }, /more than/);
});

/** A body that sends a part whenever it is asked to. */
function body(): { stream: ReadableStream<Uint8Array>; send: (text: string) => void; cancelled: () => boolean; pulls: () => number } {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let cancelled = false;
  let pulls = 0;
  const stream = new ReadableStream<Uint8Array>(
    { start: (c) => void (controller = c), cancel: () => void (cancelled = true), pull: () => void pulls++ },
    { highWaterMark: 0 },
  );
  return { stream, send: (text) => controller.enqueue(bytes(text)), cancelled: () => cancelled, pulls: () => pulls };
}

test("a stream without a complete line for too long is given up", async () => {
  const b = body();
  const drip = setInterval(() => b.send("x"), 10); // a part of a line shows nothing
  await assert.rejects(async () => { for await (const m of readEvents(b.stream, 200)) assert.fail(m.data); }, /nothing arrived/);
  clearInterval(drip);
  assert.ok(b.cancelled());
});

test("a loop that takes its time loses no stream, and reads no faster than it works", async () => {
  const b = body();
  const events = readEvents(b.stream, 100);
  const first = events.next();
  b.send("data: 1\n\ndata: 2\n\n");
  assert.equal((await first).value?.data, "1");
  await new Promise((resolve) => setTimeout(resolve, 300)); // longer than the stream may be silent
  const pulls = b.pulls();
  assert.equal((await events.next()).value?.data, "2");
  assert.equal(b.pulls(), pulls, "it has read ahead");
  await events.return();
  assert.ok(b.cancelled(), "leaving the loop closes the stream");
});
