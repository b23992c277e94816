import {now} from './lib.js';

// sentence makes a sentence of a server's words.
const sentence = text => text[0].toUpperCase() + text.slice(1).replace(/\.?$/, '.');

// Refused is a call that was not answered with 2xx. Its message is for people, doc the problem.
class Refused extends Error {
  constructor(status, message, doc = {}) { super(sentence(message)); Object.assign(this, {status, doc}); }
}

// trouble is why what the server answers may be old, by the last call; "" if it may not.
export let trouble = '';

// How long a call may take, and after how much of it what the page shows is called old.
const patience = {read: 10000, order: 30000, overdue: 5000};

// unanswered are the reads that wait for an answer, or got none when they last waited for one: since
// when, and when they were last tried.
const unanswered = new Map();

// overdue returns since when the read that is longest overdue waits for an answer; undefined if none
// is. A read that was not tried again for a minute no longer matters to the page.
export function overdue() {
  for (const [path, r] of unanswered) if (now() - r.tried > 60000) unanswered.delete(path);
  const since = Math.min(...[...unanswered.values()].map(r => r.since));
  return now() - since > patience.overdue ? since : undefined;
}

async function refused(r) {
  if (r.type === 'opaqueredirect') return new Refused(401, 'The proxy before the server asks you to sign in again: reload this page.');
  let doc = {};
  try { doc = await r.json(); } catch { /* a proxy's page */ }
  return new Refused(r.status, doc.detail ?? `The server answered with status ${r.status}.`, doc);
}

async function send(path, options) {
  try { return await fetch(path, {redirect: 'manual', ...options}); } catch (e) {
    throw e.name === 'AbortError' || e.name === 'TimeoutError' ? e : new Refused(0, 'The server does not answer.');
  }
}

// order gives an order about the election as it was at the revision. If it is at another one by now, the
// order was refused and is given again, at that one: what the visitor orders does not depend on it.
export async function order(path, body, cancelled, revision) {
  for (let tries = 1; ; tries++) {
    try { return await call(path, body, cancelled, revision); } catch (e) {
      if (e.status !== 412 || !e.doc.revision || tries === 8) throw e;
      revision = e.doc.revision;
    }
  }
}

// call calls the API of this origin: a read, or an order if there is a body. It fails with status 0 if
// no answer comes in time, or if cancelled aborts it; an order may have been carried out then.
export async function call(path, body, cancelled, revision) {
  const limit = body ? patience.order : patience.read;
  let signal = AbortSignal.timeout(limit);
  if (cancelled) signal = AbortSignal.any([signal, cancelled]);
  if (!body) unanswered.set(path, {since: unanswered.get(path)?.since ?? now(), tried: now()});
  try {
    const r = await send(path, {signal, ...(body && {method: 'POST', body: JSON.stringify(body), headers: {'Content-Type': 'application/json', 'If-Match': `"${revision}"`}})});
    if (!r.ok) throw await refused(r);
    const answer = await r.json();
    trouble = '';
    unanswered.delete(path);
    return answer;
  } catch (cause) {
    let e = cause;
    if (cancelled?.aborted) throw new Refused(0, 'Cancelled.');
    if (signal.aborted) e = new Refused(0, `The server does not answer within ${limit / 1000} s.`);
    else unanswered.delete(path);
    if (e.status === 0 || e.status > 500 && e.doc.code !== 'RECORD_TOO_NEW') trouble = e.doc.code === 'STORE_UNAVAILABLE' ? 'The server does not reach its store.' : e.message;
    throw e;
  }
}

// A stream sends something every 15 s. One that is silent for longer is as good as closed.
const silence = 40000;

// How long the id of a costly stream is kept without a word from the server. After that it may be
// another store.
const kept = 60000;

// stream reads a stream, and opens it again whatever ended it: after the last id or, if it failed,
// from the beginning, which restart is told of. If handlers.costly, a failure of the network does not
// make it begin again. It is closed while the page is in the background: a browser opens few
// connections to one server. status is told whether the stream is open, and if not, why.
export function stream(url, handlers, status) {
  let last = '', pause = 500, abort, timer, told = false, heard = 0;
  const restart = () => { last = ''; handlers.restart?.(); };
  const watch = () => { clearTimeout(timer); timer = setTimeout(() => abort.abort(), silence); };
  function take(message) {
    let name = 'event', data = '';
    for (const line of message.split('\n')) {
      if (line.startsWith('id: ')) last = line.slice(4);
      if (line.startsWith('event: ')) name = line.slice(7);
      if (line.startsWith('data: ')) data = line.slice(6);
    }
    const said = data && JSON.parse(data);
    if (name === 'end') {
      told = true;
      if (said.reason === 'compacted') restart();
    } else if (said) handlers[name]?.(said);
  }
  async function read() {
    abort = new AbortController();
    watch();
    const r = await send(url, {signal: abort.signal, headers: {Accept: 'text/event-stream', ...(last && {'Last-Event-ID': last})}});
    if (!r.ok) throw await refused(r);
    status(true);
    handlers.open?.();
    pause = 500;
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = '';;) {
      const {done, value} = await reader.read();
      if (done) return;
      heard = now();
      watch();
      status(true);
      const messages = (text + value).split('\n\n');
      text = messages.pop();
      messages.forEach(take);
    }
  }
  async function open() {
    for (;;) {
      let why = '';
      told = false;
      try { await read(); } catch (e) {
        why = e.name === 'AbortError' || e instanceof TypeError ? '' : e.message;
        const refused = e.status >= 400 && e.status < 500 && e.status !== 429; // it may be the id
        if (!document.hidden && (refused || !handlers.costly || now() - heard > kept)) last = '';
      }
      if (!last) restart();
      clearTimeout(timer);
      if (document.hidden) {
        status(false, 'This page was in the background.');
        await new Promise(shown => document.addEventListener('visibilitychange', shown, {once: true}));
      } else if (!told) { // a server that ends a stream says so, and the next one begins at once
        status(false, why);
        await new Promise(over => setTimeout(over, pause));
        pause = Math.min(pause * 2, 8000);
      }
    }
  }
  document.addEventListener('visibilitychange', () => { if (document.hidden) abort?.abort(); });
  open();
}
