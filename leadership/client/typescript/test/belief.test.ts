import assert from "node:assert/strict";
import { test } from "node:test";
import { Belief, deadline } from "../src/belief.ts";

const whole = { left: 30_000, duration: 30_000 };
const end = 1_000 + 29_970 - 1_000; // of a request that left at 1000, with a margin of 1000

test("the deadline allows for a clock that is slow by one part in a thousand", () => {
  assert.equal(deadline(1_000, 0, 30_000, 1_000), end);
  assert.equal(deadline(0, 10_000, 0, 0), 9_980);
});

test("a belief that has ended stays so, whatever the clock and answers say", () => {
  const b = new Belief(1_000, 1_000, 0, whole, 1_000);
  assert.equal(b.left(end - 1), 1);
  assert.equal(b.left(end), 0);
  assert.equal(b.left(2_000), 0);
  b.renewed(2_000, 2_000, whole);
  assert.equal(b.left(2_000), 0);
});

test("an answer that comes after the deadline moves nothing, though it left before", () => {
  const b = new Belief(1_000, 1_000, 0, whole, 1_000);
  b.renewed(25_000, end, whole);
  assert.equal(b.deadline, end);
  assert.equal(b.left(end), 0);
});

test("the deadline never moves back", () => {
  const b = new Belief(1_000, 1_000, 0, whole, 1_000);
  b.renewed(2_000, 3_000, { left: 5_000, duration: 30_000 });
  assert.equal(b.deadline, end);
});

test("a grant that took too long leaves nothing, and so does a clock that is no number", () => {
  assert.equal(new Belief(1_000, 40_000, 0, whole, 1_000).left(2_000), 0);
  assert.equal(new Belief(1_000, 1_000, 0, whole, 1_000).left(NaN), 0);
});
