import {ago, bar, chip, clock, count, ending, h, heard, keepQuery, left, mark, millis, neverLed, now, page, path, say, wall} from './lib.js';
import {selection} from './orders.js';
import {call} from './server.js';

// An election flaps if it was granted so often within this time.
const flap = {terms: 4, within: 600000};

// The most rows that are shown; a search finds the others.
const most = 1000;

// How often rows in view ask who waits, and the list is read where there is no stream.
const every = {members: 30000, list: 30000};

// These sort from the most to the least at first.
const falling = ['token', 'line', 'changed'];

const columns = {state: 'State', name: 'Election', leader: 'Leader', token: 'Token', left: 'Time left', line: 'In line', changed: 'Last change'};

// fleet shows all elections. The one stream keeps them; leases in view are read again when their
// next renewal is due, because renewals are no events. Without a stream it reads the list.
export function fleet(main, visitor, stream, status) {
  const all = new Map(), dirty = new Set(), wanted = new Set(), histories = [];
  const asked = new URLSearchParams(location.search);
  let filter = asked.get('show') ?? 'all', order = asked.get('by') ?? 'state', back = asked.has('back'), search = asked.get('search') ?? '', sort = true, shown = [], round = 0, looking = 0, stand = [];
  const body = h('div', {class: 'body', role: 'rowgroup'}), nothing = h('p', {class: 'dim', hidden: true}), halted = h('ul', {class: 'plain', 'aria-label': 'Halts'}), counted = h('span', {class: 'dim', role: 'status'});

  // Orders for many change what a read tells of each of them.
  const given = rows => { for (const r of rows) Object.assign(r, {due: 1, ask: 0, stands: undefined}); };
  const select = selection(visitor, () => shown, r => r.pause || r.stands !== round, given);
  const flapping = r => [...r.grants.values()].filter(at => wall() - at < flap.within).length >= flap.terms;
  const waiting = r => r.asked || r.lease.parked || r.lease.endsBecause === 'approval' && r.end - now() < 300000;
  const filters = {
    all: ['All', 'dim', () => true],
    vacant: ['Without a leader', 'bad', r => r.lease.state === 'vacant' && !neverLed(r.lease) && !r.lease.configuration?.policy?.seats],
    readOnly: ['Read-only', 'bad', r => r.readOnly],
    approval: ['Approval waiting', 'warn', waiting],
    flapping: ['Flapping', 'warn', flapping],
  };
  // halts are those that stand, which one election has; on says which of them is on an election.
  const halts = () => { const l = all.get('regent.halts')?.lease; return l?.heard ? (l.overrides ?? []).filter(o => left(l, o.untilMs) > 0) : []; };
  const on = name => stand.find(o => name.startsWith(o.elections.slice(0, -1)));
  // state says what to know of an election first: the lower its rank, the more it needs a person.
  function state(r) {
    const l = r.lease, seats = l.configuration?.policy?.seats, halted = on(r.name);
    if (seats) {
      const led = [...all.values()].filter(s => s.lease.of === l.election && s.lease.state === 'held').length;
      return r.pause || halted ? [2, ['pause', 'warn', `${r.pause ? 'Paused' : 'Halted'}, ${led} of ${seats} seats led`]] : [led ? 9 : 8, [led ? 'disc' : 'ring', led ? 'good' : 'dim', `${led} of ${seats} seats led`]];
    }
    if (r.readOnly) return [0, ['square', 'bad', 'Read-only']];
    if (neverLed(l) && !r.pause && !halted) return [8, ['ring', 'dim', 'Never led']];
    if (l.parked) return [0, ['square', 'bad', 'Parked']];
    if (l.state === 'vacant') return r.pause || halted ? [2, ['pause', 'warn', `${r.pause ? 'Paused' : 'Halted'}, no leader`]] : l.lockedForMs ? [1, ['ring', 'bad', 'Locked, no leader']] : [1, ['ring', 'bad', 'No leader']];
    if (waiting(r)) return [3, ['diamond', 'warn', r.asked || 'Approval waiting']];
    if (flapping(r)) return [4, ['triangle', 'warn', 'Flapping']];
    if (l.succession) return [5, ['arrow', 'info', `Hands over to ${l.succession.to}`]];
    if (ending(l)) return [6, ['clock', 'info', `Ends: ${l.endsBecause}`]];
    return r.pause || halted ? [7, ['pause', 'warn', `Leads, ${r.pause ? 'paused' : 'halted'}`]] : [9, ['disc', 'good', 'Leads']];
  }
  const by = {
    state: (a, b) => a.rank - b.rank,
    name: () => 0,
    leader: (a, b) => (a.lease.leaderId ?? '').localeCompare(b.lease.leaderId ?? ''),
    token: (a, b) => b.lease.fencingToken - a.lease.fencingToken,
    left: (a, b) => a.end - b.end,
    line: (a, b) => (b.waits ?? 0) - (a.waits ?? 0) || (b.members ?? 0) - (a.members ?? 0),
    changed: (a, b) => b.changed - a.changed,
  };

  if (!filters[filter]) filter = 'all';
  if (!by[order]) order = 'state';
  // choose shows what the visitor has chosen, which the address keeps.
  function choose() {
    const q = new URLSearchParams({...(filter !== 'all' && {show: filter}), ...(order !== 'state' && {by: order}), ...(back && {back: ''}), ...(search && {search})});
    window.history.replaceState(null, '', location.pathname + (q.size ? '?' + q : ''));
    keepQuery(location.search);
    arrange();
  }
  const tiles = Object.entries(filters).map(([id, [text, color]]) => {
    const n = h('b', {class: 'num'}, '0'), e = h('button', {class: 'tile', 'data-filter': id, 'data-color': color, 'aria-pressed': String(id === filter), onclick: () => {
      filter = id;
      for (const t of tiles) t.e.setAttribute('aria-pressed', String(t.id === id));
      choose();
    }}, n, h('span', {}, text));
    return {id, e, n};
  });
  const heads = Object.entries(columns).map(([id, text]) => {
    const e = h('div', {role: 'columnheader', class: id}, id === 'state' && select ? select.all : '', h('button', {class: 'sort', 'data-sort': id, onclick: () => {
      back = order === id && !back;
      order = id;
      choose();
    }}, text));
    return {id, e};
  });
  main.replaceChildren(h('h1', {class: 'quiet'}, 'Elections'), h('div', {class: 'tiles', role: 'group', 'aria-label': 'Show'}, tiles.map(t => t.e)),
    halted, h('div', {class: 'tools'}, h('input', {type: 'search', 'aria-label': 'Search elections and leaders', placeholder: 'Search elections and leaders', value: search, oninput: e => { search = e.target.value.trim().toLowerCase(); choose(); }}), counted, select?.e),
    h('div', {class: select ? 'table selects' : 'table', role: 'table', 'aria-label': 'Elections'}, h('div', {role: 'rowgroup'}, h('div', {role: 'row', class: 'head'}, heads.map(t => t.e))), body), nothing);
  keepQuery(location.search);

  const seen = new IntersectionObserver(entries => {
    for (const e of entries) { const r = all.get(e.target.dataset.name); if (r) { r.inView = e.isIntersecting; dirty.add(r); } }
  });
  function row(name) {
    const r = {name, round, grants: new Map(), lease: {}, changed: 0, end: 0, due: 0, ask: 0};
    all.set(name, r);
    return r;
  }
  // build makes what is shown of a row.
  function build(r) {
    Object.assign(r, {bar: bar(), chip: chip(), leader: h('span'), token: h('span', {class: 'num'}), line: h('span', {class: 'dim'}), when: h('span', {class: 'dim num'})});
    const cells = {state: [select?.box(r), r.chip.e], name: h('a', {href: page(r.name)}, r.name), leader: r.leader, token: r.token, left: r.bar.e, line: r.line, changed: r.when};
    r.e = h('div', {role: 'row', 'data-name': r.name}, Object.entries(cells).map(([id, c]) => h('div', {role: 'cell', class: id}, c)));
    seen.observe(r.e);
  }
  function forget(r) { all.delete(r.name); if (r.e) seen.unobserve(r.e); sort = true; }
  function touch(r) {
    dirty.add(r);
    const whole = all.get(r.lease.of); // which says how many of its seats are led
    if (whole) dirty.add(whole);
    sort = true;
  }

  // granted notes when a term began, of the last terms only.
  function granted(r, token, at) {
    r.grants.set(token, at);
    if (r.grants.size > flap.terms) r.grants.delete(Math.min(...r.grants.keys()));
  }
  function learn(lease) {
    heard(lease);
    const r = all.get(lease.election) ?? row(lease.election);
    if (lease.revision < (r.lease.revision ?? 0)) return r;
    const held = lease.state === 'held';
    r.lease = lease;
    r.end = held ? now() + lease.expiresInMs : 0;
    r.due = held ? now() + Math.max(1000, lease.renewInMs + 1500) : lease.lockedForMs ? now() + lease.lockedForMs : 0;
    const grant = lease.acquiredAt ? Date.parse(lease.acquiredAt) : 0;
    if (grant) granted(r, lease.fencingToken, grant);
    r.changed = Math.max(r.changed, grant);
    const policy = lease.configuration.policy ?? {};
    if (r.learned !== round) { // the page was not there to see what happened
      r.learned = round;
      r.past = false;
      if (held && (policy.approval || lease.fencingToken >= flap.terms && wall() - grant < flap.within)) histories.push(r);
      if (policy.quorum) look(r);
    }
    touch(r);
    return r;
  }
  // note takes what an event says beside the lease. The past is noted in the same way.
  function note(r, e) {
    const at = Date.parse(e.at);
    if (e.type === 'acquired') granted(r, e.fencingToken, at);
    if (e.type === 'approvalRequested') r.asked = e.detail?.newEpoch ? 'Approval of a new epoch waiting' : 'Approval waiting';
    if (['approved', 'acquired', 'released', 'expired', 'epoch'].includes(e.type)) r.asked = '';
    if (e.type === 'paused') r.pause = {id: e.detail?.override, until: now() + Date.parse(e.detail?.until) - wall()};
    if (e.type === 'resumed' || e.type === 'lifted' && e.detail?.override === r.pause?.id) r.pause = undefined;
    r.changed = Math.max(r.changed, at);
  }
  function event(e) {
    const r = all.get(e.election) ?? row(e.election);
    if (e.revision <= (r.lease.revision ?? 0)) return;
    if (e.type === 'deleted') return forget(r);
    note(r, e);
    r.lease = {...r.lease, election: e.election, revision: e.revision, fencingToken: e.fencingToken, leaderId: e.leaderId, state: e.leaderId ? 'held' : 'vacant'};
    if (!e.leaderId) r.end = 0;
    r.due = 1; // the event does not say all
    if (r.name === 'regent.halts') refresh(r);
    r.ask = 1;
    touch(r);
  }

  // history reads what happened lately to an election that may flap, wait for an approval or be
  // paused, once: the page was not there to see it.
  async function history() {
    if (histories.reading) return;
    const r = histories.pop();
    if (!r) return;
    histories.reading = true;
    const after = Math.max(0, (r.lease.revision ?? 0) - 50);
    try { for (const e of (await call(path(r.name, `/events?after=${after}&limit=50`))).events) if (e.revision <= r.lease.revision) note(r, e); } catch { /* it is not known, then */ }
    histories.reading = false;
    touch(r);
    history();
  }
  async function refresh(r) {
    wanted.add(r);
    r.due = now() + 5000;
    try { learn(await call(path(r.name))); } catch (e) { if (e.status === 404) forget(r); } finally { wanted.delete(r); }
  }
  // look asks who waits and who is there. That is in the memory of the instances.
  async function look(r) {
    r.ask = now() + every.members;
    looking++;
    try {
      if (r.stands !== round) { // the page was not there to see what was ordered
        const {overrides} = await call(path(r.name, '/overrides')), pause = overrides.find(o => o.kind === 'pause');
        r.stands = round;
        r.pause = pause && {id: pause.id, until: now() + pause.untilMs};
      }
      const m = await call(path(r.name, '/members'));
      r.waits = m.nodes.filter(n => n.position).length;
      r.members = m.clusterSize;
      r.readOnly = m.readOnly;
      touch(r);
    } catch { /* the row shows none */ } finally { looking--; }
  }

  function draw(r) {
    const l = r.lease;
    if (l.state === 'vacant' && l.revision && !r.past) histories.push(r);
    r.past = true;
    r.chip.set(state(r)[1]);
    say(r.leader, l.leaderId ?? '–', l.leaderId ? 'id' : 'dim');
    say(r.token, l.fencingToken ? '#' + l.fencingToken : '–');
    say(r.line, r.members === undefined ? '' : [r.waits && `${r.waits} in line`, r.members > 1 && count(r.members, 'member')].filter(Boolean).join(' · ') || '–');
    r.bar.set(r.end, millis(l.leaseDuration));
    tick(r);
  }
  function tick(r) {
    r.bar.tick();
    say(r.when, r.changed ? ago(wall() - r.changed) : '');
  }
  // halt shows which halts stand, if they are others than before.
  function halt() {
    const present = halts();
    if (present.map(o => o.id).join() === stand.map(o => o.id).join()) return;
    stand = present;
    halted.replaceChildren(...stand.map(o => h('li', {}, mark('pause', 'warn'), ` All elections of ${o.elections} are halted until ${clock(o.until)} (${o.actor}: ${o.reason}).`)));
    for (const r of all.values()) touch(r);
  }
  // arrange moves only the rows that are not where they belong.
  function arrange() {
    sort = false;
    for (const t of tiles) {
      const n = t.id === 'all' ? all.size : [...all.values()].filter(filters[t.id][2]).length;
      say(t.n, String(n));
      t.e.classList.toggle('some', n > 0);
    }
    for (const t of heads) t.id === order ? t.e.setAttribute('aria-sort', back === falling.includes(order) ? 'ascending' : 'descending') : t.e.removeAttribute('aria-sort');
    const found = [...all.values()].filter(r => filters[filter][2](r) && (!search || r.name.includes(search) || (r.lease.leaderId ?? '').toLowerCase().includes(search)));
    for (const r of found) r.rank = state(r)[0];
    found.sort((a, b) => (by[order](a, b) || (a.name < b.name ? -1 : 1)) * (back ? -1 : 1));
    const keep = found.slice(0, most);
    for (const r of keep) if (!r.e) build(r);
    const focus = document.activeElement, stays = new Set(keep);
    for (const r of shown) if (!stays.has(r)) { r.e.remove(); if (select) r.box.checked = false; }
    let at = body.firstElementChild;
    keep.forEach((r, i) => {
      if (r.e === at) { at = at.nextElementSibling; return; }
      if (at && at.nextElementSibling === r.e && keep[i + 1]?.e !== at) { const away = at; at = r.e.nextElementSibling; away.remove(); return; }
      body.insertBefore(r.e, at);
    });
    if (document.activeElement !== focus && body.contains(focus)) focus.focus({preventScroll: true});
    shown = keep;
    select?.draw();
    nothing.hidden = keep.length > 0;
    say(nothing, !all.size ? 'There is no election yet.' : search ? `No election matches “${search}”.` : 'No election is in this state.');
    say(counted, keep.length < found.length ? `the first ${keep.length} of ${found.length}` : `${found.length} of ${all.size}`);
  }

  // poll reads the list, page by page. If it has read too much at once, it waits and reads on.
  async function poll() {
    if (document.hidden) await new Promise(shown => document.addEventListener('visibilitychange', shown, {once: true}));
    try {
      const found = new Set();
      for (let token = ''; token !== undefined;) {
        try {
          const p = await call('/v1/elections?pageSize=1000' + (token && '&pageToken=' + encodeURIComponent(token)));
          for (const l of p.elections) { learn(l); found.add(l.election); }
          token = p.nextPageToken;
        } catch (e) {
          if (e.status !== 429) throw e;
          await new Promise(over => setTimeout(over, e.doc.retryAfterMs ?? 1000));
        }
      }
      for (const r of all.values()) if (!found.has(r.name)) forget(r);
      status(true);
    } catch (e) { status(false, e.message); }
    setTimeout(poll, every.list);
  }
  if (!stream) poll();
  stream?.('/v1/events', {
    costly: true, // it begins with all elections
    snapshot: l => { learn(l).round = round; },
    event,
    ready: () => { for (const r of all.values()) if (r.round !== round) forget(r); sort = true; },
    restart: () => {
      round++;
      for (const r of all.values()) { r.lease.revision = 0; r.grants.clear(); }
    },
  });

  setInterval(() => {
    if (document.hidden) return;
    history();
    halt();
    if (sort && !body.matches(':active')) arrange(); // a row is not moved away under a click
    for (const r of dirty) if (r.inView) { draw(r); dirty.delete(r); }
    const t = now();
    for (const r of all.values()) {
      if (r.pause?.until < t) { r.pause = undefined; touch(r); } // no event tells
      if (r.lease.configuration?.policy?.quorum && r.ask < t && looking < 4) look(r); // in view or not: it may be read-only
    }
    for (const r of shown) {
      if (!r.inView) continue;
      tick(r);
      if (r.due && r.due < t && wanted.size < 4 && !wanted.has(r)) refresh(r);
      if (r.ask < t) look(r);
    }
  }, 250);
}
