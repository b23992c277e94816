// h makes an element. Properties that begin with "on" are listeners; texts are never markup.
export function h(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), v);
    else e.setAttribute(name, v === true ? '' : v);
  }
  e.append(...children.flat().filter(c => c !== undefined && c !== ''));
  return e;
}

// Refused is a call that was not answered with 2xx. Its message is for people.
export class Refused extends Error {
  constructor(status, code, message) { super(message); Object.assign(this, {status, code}); }
}

// call calls the API of this origin.
export async function call(path, body) {
  let r;
  try {
    r = await fetch(path, {redirect: 'manual', method: body ? 'POST' : 'GET', body: body && JSON.stringify(body), headers: body ? {'Content-Type': 'application/json'} : {}});
  } catch { throw new Refused(0, 'OFFLINE', 'The server does not answer.'); }
  if (r.type === 'opaqueredirect') throw new Refused(401, 'UNAUTHENTICATED', 'The proxy before the server asks you to sign in: reload this page.');
  const text = await r.text();
  let doc = {};
  try { doc = JSON.parse(text); } catch { /* a proxy's page */ }
  if (!r.ok) throw new Refused(r.status, doc.code ?? '', doc.detail ?? `The server answered with status ${r.status}.`);
  return doc;
}

export const path = (name, rest = '') => '/v1/elections/' + encodeURIComponent(name) + rest;

// span says how long a number of milliseconds is.
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 100) return s + ' s';
  if (s < 6000) return Math.floor(s / 60) + ' min';
  return s < 172800 ? Math.floor(s / 3600) + ' h' : Math.floor(s / 86400) + ' d';
}

export const clock = at => at ? new Date(at).toLocaleString() : '';
export const now = () => performance.now();

// millis reads a duration such as "1h30m" or "30s".
export function millis(text) {
  const unit = {h: 3600000, m: 60000, s: 1000, ms: 1};
  return [...(text ?? '').matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, n, u]) => sum + n * unit[u], 0);
}

// bar is what is left of a lease. The browser moves it without the script.
export function bar() {
  const fill = h('div', {class: 'fill'}), text = h('span', {class: 'num'});
  const e = h('div', {class: 'bar'}, h('div', {class: 'track', 'aria-hidden': 'true'}, fill), text);
  let until = 0, motion;
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  return {
    e,
    set(end, whole) {
      if (end === until) return;
      until = end;
      motion?.cancel();
      const left = end - now(), part = `scaleX(${Math.min(1, Math.max(0, left / whole))})`;
      if (left > 0 && still) fill.style.transform = part;
      if (left > 0 && !still) motion = fill.animate([{transform: part}, {transform: 'scaleX(0)'}], {duration: left, fill: 'forwards'});
    },
    tick() {
      const left = until - now(), shown = !until ? '' : left > 0 ? span(left) : 'over?';
      if (text.textContent !== shown) text.textContent = shown;
    },
  };
}
