import {call, h, now, span} from './lib.js';
import {fleet} from './fleet.js';
import {election} from './election.js';

const main = document.getElementById('main'), live = document.getElementById('live');
let heard = 0, connected = false;

// status says whether the page is live. What it shows is called old as soon as it may be.
const status = up => { connected = up; if (up) heard = now(); show(); };
function show() {
  live.className = connected ? '' : 'bad';
  const text = connected ? 'Live' : heard ? `Disconnected: what you see is ${span(now() - heard)} old. Trying again.` : 'Not connected. Trying again.';
  if (live.textContent !== text) live.textContent = text;
}
const showing = setInterval(show, 1000);

// stream reads a stream and opens it again, whatever ended it. Its reader gets the last id.
export function stream(url, handlers) {
  let source, last = '', pause = 500;
  const open = () => {
    source = new EventSource(url + (last ? (url.includes('?') ? '&' : '?') + 'after=' + encodeURIComponent(last) : ''));
    source.onopen = () => { pause = 500; status(true); };
    const hear = f => m => { if (m.lastEventId) last = m.lastEventId; heard = now(); f?.(m.data && JSON.parse(m.data)); };
    source.onmessage = hear(handlers.event);
    for (const name of ['snapshot', 'ready', 'report', 'member']) source.addEventListener(name, hear(handlers[name]));
    source.addEventListener('end', m => { if (JSON.parse(m.data).reason === 'compacted') { last = ''; handlers.restart?.(); } });
    source.onerror = () => {
      status(false);
      source.close(); // its own attempts end at the first answer that is no stream
      if (pause > 4000) { last = ''; handlers.restart?.(); } // the cursor may be what is refused
      setTimeout(open, pause);
      pause = Math.min(pause * 2, 8000);
    };
  };
  open();
}

function signIn(e) {
  clearInterval(showing);
  live.textContent = 'Not signed in';
  main.replaceChildren(h('h1', {}, 'Sign in'), h('div', {class: 'notice'}, h('p', {class: 'problem'}, e.message),
    h('p', {}, 'This server verifies its callers, and a browser sends no token by itself. There are two ways to sign in:'),
    h('p', {}, 'With Google\u2019s Identity-Aware Proxy before the server, and serve --iap-audience, open the address of the proxy; if this is it, reload the page.'),
    h('p', {}, 'Or open the page through a proxy of your own that adds your token:'),
    h('pre', {tabindex: '0'}, 'gcloud run services proxy SERVICE --region REGION --port 8081\nopen http://127.0.0.1:8081/ui/'),
    h('p', {}, 'An operator must have granted your account the role observer or operator in the policy.')));
}

async function start() {
  const at = location.pathname.match(/^\/ui\/elections\/([^/]+)$/), name = at && decodeURIComponent(at[1]);
  let visitor;
  try { visitor = await call('/ui/visitor' + (name ? '?election=' + encodeURIComponent(name) : '')); } catch (e) {
    if (e.status === 401 || e.status === 403) return signIn(e);
    status(false);
    return setTimeout(start, 2000);
  }
  document.getElementById('visitor').textContent = visitor.principal ?? 'callers are not verified';
  const need = name ? 'read' : 'watchAll';
  if (!visitor.may.includes(need)) {
    connected = true;
    return main.replaceChildren(h('p', {class: 'notice'}, name ? 'You may not read this election.' :
      'You may not watch all elections. Open one that you may read at /ui/elections/NAME, or ask an operator for the role observer.'));
  }
  (name ? election(main, name, visitor, stream) : fleet(main, stream));
}
start();
