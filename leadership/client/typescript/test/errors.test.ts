import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseHeld, RegentError, errorClasses, ofProblem } from "../src/errors.ts";
import * as shipped from "../src/index.ts";
import type { Schemas } from "../src/wire.ts";

// does not compile unless there is a class for each code
const codes: Record<Schemas["Code"], true> = Object.fromEntries(Object.keys(errorClasses).map((c) => [c, true])) as never;

test("an error has the code of its class, or of its problem", () => {
  assert.equal(new LeaseHeld("x").code, "LEASE_HELD");
  assert.equal(new RegentError("x").code, "");
  assert.ok(Object.keys(codes).length > 20);
});

test("a code of a newer server has no class, whatever its name", () => {
  for (const code of ["constructor", "__proto__", "toString", "NEWER"]) {
    const e = ofProblem("read", { code, detail: "d", status: 418 } as never);
    assert.equal(e.constructor, RegentError);
    assert.equal(e.code, code);
  }
});

test("all classes are shipped, and what is internal is not", () => {
  for (const of of Object.values(errorClasses)) assert.equal((shipped as Record<string, unknown>)[of.name], of);
  for (const name of ["invalid", "ofProblem", "transient"]) assert.ok(!(name in shipped), name);
});
