// h makes an element. Properties that begin with "on" are listeners; texts are never markup.
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg makes an element of a drawing.
const svg = (tag, props, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);

function fill(e, props, children) {
  for (const [name, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), v);
    else e.setAttribute(name, v === true ? '' : v);
  }
  e.append(...children.flat().filter(c => c !== undefined && c !== ''));
  return e;
}

// say changes a text if it is another one: what is the same is neither written nor read aloud again.
export function say(e, text, css) {
  if (e.textContent !== text) e.textContent = text;
  if (css !== undefined && e.className !== css) e.className = css;
}

// shapes tell states apart without their color.
const shapes = {
  disc: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Z',
  ring: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Zm0 2.2a3.8 3.8 0 1 0 0 7.6 3.8 3.8 0 0 0 0-7.6Z',
  square: 'M3 3h10v10H3Z',
  diamond: 'm8 1.5 6.5 6.5L8 14.5 1.5 8Z',
  triangle: 'M8 2 15 14H1Z',
  pause: 'M3.5 3h3v10h-3Zm6 0h3v10h-3Z',
  arrow: 'M1 6.8h8.2L6.6 4.2 8.2 2.6 13.6 8l-5.4 5.4-1.6-1.6 2.6-2.6H1Z',
  clock: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm-1 2.8v4.3l3.2 2 .9-1.5-2.3-1.4V4.3Z',
};

// chip shows a state as a shape and a text.
export function chip(initial = ['disc', 'dim', '']) {
  const drawn = svg('path', {}), text = h('span'), e = h('span', {class: 'chip'}, svg('svg', {viewBox: '0 0 16 16', 'aria-hidden': 'true'}, drawn), text);
  let last;
  const set = ([shape, color, words]) => {
    if (last !== shape) drawn.setAttribute('d', shapes[last = shape]);
    if (e.className !== 'chip ' + color) e.className = 'chip ' + color;
    say(text, words);
  };
  set(initial);
  return {e, set};
}

export const mark = (shape, color) => svg('svg', {viewBox: '0 0 16 16', class: 'mark ' + color, 'aria-hidden': 'true'}, svg('path', {d: shapes[shape]}));

// ending reports whether renewals no longer extend the lease: its end is near, or ordered.
export const ending = l => l.endsBecause && l.endsBecause !== 'parent' && l.endsInMs <= l.expiresInMs + 1000;

// neverLed reports whether the election has had no leader yet.
export const neverLed = l => l.state === 'vacant' && !l.fencingToken;

export const page = name => '/ui/elections/' + encodeURIComponent(name);
// The tab remembers what was chosen of the fleet, for the link back to it.
export function keepQuery(query) { try { sessionStorage.setItem('fleet', query); } catch { /* the browser keeps nothing */ } }
export function fleetPage() { try { return '/ui/' + (sessionStorage.getItem('fleet') ?? ''); } catch { return '/ui/'; } }

export const path = (name, rest = '') => '/v1/elections/' + encodeURIComponent(name) + rest;
export const count = (n, one, many = one + 's') => `${n} ${n === 1 ? one : many}`;
export const now = () => performance.now();

// The server's time, as far as its answers tell: one that took long shows a time that is past.
let ahead;
export const wall = () => Date.now() + (ahead ?? 0);

// heard notes when the page heard of a lease, from which its lengths of time count.
export function heard(lease) {
  lease.heard = now();
  const d = Date.parse(lease.readAt) - Date.now();
  if (d > (ahead ?? -Infinity)) ahead = d;
}

// left is what is left now of a length of time in a lease, in milliseconds.
export const left = (lease, ms) => lease.heard + ms - now();

// span says how long a number of milliseconds is.
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000)), two = (n, unit, rest, small) => rest ? `${n} ${unit} ${rest} ${small}` : `${n} ${unit}`;
  if (s < 60) return s + ' s';
  if (s < 600) return two(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 3600) return Math.floor(s / 60) + ' min';
  if (s < 172800) return two(Math.floor(s / 3600), 'h', Math.floor(s / 60) % 60, 'min');
  return Math.floor(s / 86400) + ' d';
}

// ago says roughly how long ago something was.
export const ago = ms => (ms < 60000 ? span(ms) : span(ms).match(/^\d+ \w+/)[0]) + ' ago';

const time = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'});
const day = new Intl.DateTimeFormat(undefined, {day: 'numeric', month: 'short'});
export const clock = at => (new Date(at).toDateString() === new Date().toDateString() ? '' : day.format(new Date(at)) + ' ') + time.format(new Date(at));
export const when = at => h('time', {datetime: new Date(at).toISOString(), title: new Date(at).toISOString()}, clock(at));

// millis reads a duration such as "1h30m" or "30s".
export function millis(text) {
  const unit = {h: 3600000, m: 60000, s: 1000, ms: 1};
  return [...(text ?? '').matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, n, u]) => sum + n * unit[u], 0);
}

// bar is what is left of a lease. The browser moves it without the script.
export function bar() {
  const left = h('div', {class: 'fill'}), text = h('span', {class: 'num'}), e = h('div', {class: 'bar'}, h('div', {class: 'track', 'aria-hidden': 'true'}, left), text);
  let until = 0, motion;
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  return {
    e,
    set(end, whole) {
      if (end === until) return;
      until = end;
      motion?.cancel();
      const ms = end - now(), part = `scaleX(${Math.min(1, Math.max(0, ms / whole))})`;
      left.style.transform = ms > 0 && still.matches ? part : 'scaleX(0)';
      if (ms > 0 && !still.matches) motion = left.animate([{transform: part}, {transform: 'scaleX(0)'}], {duration: ms, fill: 'forwards'});
    },
    tick() {
      const ms = until - now();
      say(text, !until ? '–' : ms > 0 ? span(ms) : 'over?');
    },
  };
}
