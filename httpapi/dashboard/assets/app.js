import {clock, h, now, say, span, wall} from './lib.js';
import {call, overdue, stream, trouble} from './server.js';
import {fleet} from './fleet.js';
import {election} from './election.js';

const main = document.getElementById('main'), live = document.getElementById('live'), age = document.getElementById('age');
// A server that was silent for so long may be gone: it says something every 15 s.
let silence = 20000;
const crowded = 'A read gets no answer. If many windows of this page are open, close some: a browser opens few connections to one server.';

let heard = 0, fresh = 0, connected = false, reason = '', degraded = '';

// status says whether the page is live. Only the words are announced to a screen reader: the age,
// which changes all the time, stands beside them.
function show() {
  const waits = overdue(), why = !connected ? reason : now() - heard > silence ? 'The server says nothing.' : waits ? crowded : trouble, old = !connected || why;
  if (!old) fresh = heard;
  if (waits) fresh = Math.min(fresh, waits);
  document.body.classList.toggle('old', Boolean(old));
  say(live, connected ? old ? 'In trouble' : degraded ? 'Live, degraded' : 'Live' : fresh ? 'Disconnected' : 'Not connected', old ? 'bad' : degraded ? 'warn' : 'good');
  say(age, (old ? (fresh ? `What you see is ${span(now() - fresh)} old, as of ${clock(wall() - (now() - fresh))}.` : '') + (connected ? ' ' : ' Trying again. ') + why : degraded).trim());
  age.hidden = !age.textContent;
}
const status = (up, why = '') => {
  if (up) heard = now();
  if (up !== connected || why) { connected = up; reason = why; show(); }
};

// health asks the instance what it says of itself. Its answer is shared by all that ask within a second.
async function health() {
  if (!document.hidden && connected) {
    try {
      const is = await call('/health/ready');
      degraded = is.status === 'degraded' ? `This instance is degraded: ${is.detail}.` : '';
    } catch { /* trouble says so */ }
  }
  show();
  setTimeout(health, 5000);
}

function signIn(e) {
  say(live, 'Not signed in', 'bad');
  main.replaceChildren(h('h1', {}, 'Sign in'), h('div', {class: 'notice'}, h('p', {class: 'problem'}, e.message),
    h('p', {}, 'This server verifies its callers, and a browser sends no credential by itself. There are two ways to sign in:'),
    h('p', {}, 'With Google\u2019s Identity-Aware Proxy before the server, and serve --iap-audience, open the address of the proxy; if this is it, reload the page.'),
    h('p', {}, 'Or open the page through a proxy of your own that adds your credential:'),
    h('pre', {tabindex: '0'}, 'gcloud run services proxy SERVICE --region REGION --port 8081\nopen http://127.0.0.1:8081/ui/'),
    h('p', {}, 'Your account needs the role observer or operator in the access file of the server.')));
}

// openOne asks for the name of an election, of a visitor that may not see them all.
function openOne() {
  const name = h('input', {name: 'election', required: true, pattern: '[a-z0-9]([a-z0-9._\\-]{0,126}[a-z0-9])?', autocapitalize: 'none', spellcheck: 'false'});
  main.replaceChildren(h('h1', {}, 'Open an election'), h('div', {class: 'notice'}, h('p', {}, 'You may not list elections; that needs the role observer. One that you may read opens by its name:'),
    h('form', {class: 'tools', onsubmit: e => { e.preventDefault(); location.href = '/ui/elections/' + name.value; }}, h('label', {}, 'Election ', name), h('button', {}, 'Open'))));
}

async function start() {
  const one = location.pathname.match(/^\/ui\/elections\/([^/]+)$/), none = why => main.replaceChildren(h('h1', {}, 'No such election'), h('p', {class: 'notice'}, why));
  let visitor, name;
  try { name = one && decodeURIComponent(one[1]); } catch { live.hidden = true; return none('The address is not the name of an election.'); }
  try { visitor = await call('/ui/visitor' + (name ? '?election=' + encodeURIComponent(name) : '')); } catch (e) {
    if (e.status === 401 || e.status === 403) return signIn(e);
    if (e.status === 400) { live.hidden = true; return none(e.message); }
    status(false, e.message);
    return setTimeout(start, 2000);
  }
  say(document.getElementById('visitor'), `${visitor.principal ?? 'Callers are not verified'} · times of ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);
  if (name && !visitor.may.includes('read')) {
    live.hidden = true;
    return main.replaceChildren(h('h1', {}, name), h('p', {class: 'notice'}, 'You may not read this election. That needs the role observer for its name.'));
  }
  setInterval(show, 1000);
  health();
  const open = (url, handlers) => stream(url, handlers, status);
  if (name) return election(main, name, visitor, open);
  if (visitor.may.includes('watchAll')) return fleet(main, visitor, open);
  try { // a visitor with rights over some elections is shown those, which no stream has
    await call('/v1/elections?pageSize=1');
    silence = 45000; // the list is read every 30 s
    fleet(main, visitor, undefined, status);
  } catch {
    live.hidden = age.hidden = true;
    openOne();
  }
}
start();
