import {bar, call, h, millis, now, path, span} from './lib.js';

const flap = {terms: 4, within: 600000};

// fleet shows all elections. The one stream keeps them; leases in view are read again when their
// next renewal is due, because renewals are no events.
export function fleet(main, stream) {
  const all = new Map(), dirty = new Set(), wanted = new Set();
  let filter = 'all', order = 'name', search = '', sort = true;
  const body = h('div', {class: 'body', role: 'rowgroup'}), count = h('span', {class: 'dim', role: 'status'});
  const filters = {
    all: ['All', () => true],
    vacant: ['Without a leader', r => r.lease.state === 'vacant'],
    flapping: ['Flapping', r => flapping(r)],
    readOnly: ['Read-only', r => r.readOnly],
    approval: ['Approval waiting', r => waiting(r)],
  };
  const orders = {
    name: (a, b) => a.name < b.name ? -1 : 1,
    leader: (a, b) => (a.lease.leaderId ?? '').localeCompare(b.lease.leaderId ?? '') || orders.name(a, b),
    token: (a, b) => b.lease.fencingToken - a.lease.fencingToken,
    changed: (a, b) => b.changed - a.changed,
  };
  const flapping = r => r.grants.filter(at => Date.now() - at < flap.within).length >= flap.terms;
  const waiting = r => r.asked || r.lease.endsBecause === 'approval' && r.end - now() < 300000;
  const buttons = Object.entries(filters).map(([id, [text]]) => h('button', {'data-filter': id, 'aria-pressed': String(id === filter), onclick: () => {
    filter = id;
    for (const b of buttons) b.setAttribute('aria-pressed', String(b.dataset.filter === id));
    arrange();
  }}, text));
  main.replaceChildren(h('h1', {}, 'Elections'),
    h('div', {class: 'tools'}, h('input', {type: 'search', 'aria-label': 'Search elections and leaders', placeholder: 'Search', oninput: e => { search = e.target.value.toLowerCase(); arrange(); }}),
      h('select', {'aria-label': 'Sort by', onchange: e => { order = e.target.value; arrange(); }},
        h('option', {value: 'name'}, 'by name'), h('option', {value: 'leader'}, 'by leader'), h('option', {value: 'token'}, 'by token'), h('option', {value: 'changed'}, 'by last change')), buttons, count),
    h('div', {role: 'table', 'aria-label': 'Elections'}, h('div', {role: 'rowgroup'}, h('div', {role: 'row', class: 'head'},
      ['Election', 'Leader', 'Token', 'Time left', 'State'].map(t => h('span', {role: 'columnheader'}, t)))), body));

  const seen = new IntersectionObserver(entries => {
    for (const e of entries) { const r = all.get(e.target.dataset.name); if (r) { r.inView = e.isIntersecting; dirty.add(r); } }
  });
  function row(name) {
    const r = {name, grants: [], lease: {}, changed: 0, end: 0, due: 0, bar: bar()};
    r.cells = [h('a', {href: '/ui/elections/' + encodeURIComponent(name)}, name), h('span'), h('span', {class: 'num'}), r.bar.e, h('span')];
    r.e = h('div', {role: 'row', 'data-name': name}, r.cells.map(c => h('div', {role: 'cell'}, c)));
    all.set(name, r);
    seen.observe(r.e);
    sort = true;
    return r;
  }
  function learn(lease) {
    const r = all.get(lease.election) ?? row(lease.election);
    if (lease.revision < (r.lease.revision ?? 0)) return r;
    r.lease = lease;
    r.end = lease.state === 'held' ? now() + lease.expiresInMs : 0;
    r.due = lease.state === 'held' ? now() + Math.max(1000, lease.renewInMs + 1500) : 0;
    const grant = lease.acquiredAt && Date.parse(lease.acquiredAt);
    if (grant && !r.grants.includes(grant)) r.grants.push(grant);
    r.changed ||= grant || 0;
    dirty.add(r);
    return r;
  }
  function draw(r) {
    const l = r.lease, set = (i, text, css = '') => { const c = r.cells[i]; if (c.textContent !== text) c.textContent = text; c.className = css; };
    set(1, l.leaderId ?? 'none', l.leaderId ? '' : 'warn');
    set(2, String(l.fencingToken), 'num');
    const [text, css] = r.readOnly ? ['read-only', 'bad'] : waiting(r) ? ['approval waiting', 'warn'] : flapping(r) ? ['flapping', 'warn'] :
      l.state === 'vacant' ? ['without a leader', 'warn'] : l.succession ? ['hands over to ' + l.succession.to, ''] : l.endsBecause ? [`ends: ${l.endsBecause}`, 'dim'] : ['leads', 'good'];
    set(4, text, css);
    r.bar.set(r.end, millis(l.leaseDuration));
    r.bar.tick();
  }
  function arrange() {
    const keep = [...all.values()].filter(r => filters[filter][1](r) && (!search || r.name.includes(search) || (r.lease.leaderId ?? '').toLowerCase().includes(search)));
    keep.sort(orders[order]);
    body.replaceChildren(...keep.map(r => r.e));
    count.textContent = `${keep.length} of ${all.size}`;
    sort = false;
  }
  function event(e) {
    const r = all.get(e.election) ?? row(e.election);
    if (e.revision <= (r.lease.revision ?? 0)) return;
    if (e.type === 'deleted') { all.delete(e.election); seen.unobserve(r.e); sort = true; return; }
    if (e.type === 'acquired') r.grants.push(Date.parse(e.at));
    if (e.type === 'approvalRequested') r.asked = true;
    if (['approved', 'acquired', 'released', 'epoch'].includes(e.type)) r.asked = false;
    r.changed = Date.parse(e.at);
    r.lease = {...r.lease, election: e.election, revision: e.revision, fencingToken: e.fencingToken, leaderId: e.leaderId, state: e.leaderId ? 'held' : 'vacant'};
    if (!e.leaderId) r.end = 0;
    r.due = 1; // the event does not say all
    dirty.add(r);
    sort ||= filter !== 'all' || order !== 'name';
  }
  stream('/v1/events', {snapshot: learn, event, ready: () => { sort = true; }, restart: () => { for (const r of all.values()) r.lease.revision = 0; }});

  async function refresh(r) {
    wanted.add(r);
    r.due = now() + 5000;
    try {
      learn(await call(path(r.name)));
      if (r.lease.configuration?.policy?.quorum) { r.readOnly = (await call(path(r.name, '/members'))).readOnly; dirty.add(r); }
    } catch (e) { if (e.status === 404) { all.delete(r.name); sort = true; } } finally { wanted.delete(r); }
  }
  setInterval(() => {
    if (document.hidden) return;
    if (sort) arrange();
    for (const r of dirty) if (r.inView) draw(r);
    dirty.clear();
    const t = now();
    for (const r of all.values()) {
      if (!r.inView) continue;
      r.bar.tick();
      if (r.due && r.due < t && wanted.size < 4 && !wanted.has(r)) refresh(r);
    }
  }, 250);
}
