import {bar, chip, clock, ending, fleetPage, h, heard, left, mark, millis, neverLed, now, page, path, say, span, when} from './lib.js';
import {call} from './server.js';
import {orders, override} from './orders.js';
import {timeline} from './timeline.js';

// How each type of event is marked; others with a dim disc.
const marks = {
  acquired: ['disc', 'good'], epoch: ['disc', 'good'], recreated: ['disc', 'good'], approved: ['disc', 'good'], ready: ['disc', 'good'], serving: ['disc', 'good'], resumed: ['disc', 'good'],
  released: ['ring', 'info'], yielded: ['arrow', 'info'], handingOver: ['arrow', 'info'], goesOn: ['arrow', 'info'], assigned: ['arrow', 'info'],
  expired: ['ring', 'bad'], deposed: ['ring', 'bad'], parked: ['square', 'bad'], evicted: ['ring', 'bad'], deleted: ['square', 'bad'], unlocked: ['square', 'bad'],
  tripped: ['triangle', 'warn'], judged: ['triangle', 'warn'], approvalRequested: ['diamond', 'warn'], paused: ['pause', 'warn'], halted: ['pause', 'warn'], banned: ['square', 'warn'],
};

// codes says in words what bars a candidate, and how the members are.
const codes = {
  HELD: 'another candidate leads', OTHER_INCARNATION: 'it leads with another key', LOCK_DELAY: 'the lease is locked after its last term', PAUSED: 'the election is paused', BANNED: 'it is banned',
  HALTED: 'the election is halted, with all of a pattern', ASSIGNED: 'the election is assigned to another candidate', APPROVAL: 'an approval is awaited', PARKED: 'the election is parked until an operator approves', BALLOT: 'bids are collected', OUTRANKED: 'better candidates have bid', QUORUM: 'too few members are present',
  PARENT: 'the election above has no lasting leader', WITNESS: 'it is a witness, which never leads', PROBATION: 'its leases are short after a trip', IN_LINE: 'it waits behind others',
  NOT_ASKING: 'it does not wait for the lease at this instance', RIGHTS: 'the access file does not let it lead',
  noLeader: 'no member leads', noQuorum: 'too few members are present', diverged: 'a member follows another token than that of the leader',
};

const kept = {events: 200, listed: 50};

// How often the parts are read of which no event tells.
const silent = 30000;

// After these events other orders may stand.
const ordered = ['assigned', 'evicted', 'paused', 'halted', 'resumed', 'banned', 'lifted', 'tripped', 'deposed', 'parked', 'approved', 'deleted'];

// election shows one election: its lease, its terms, its events, and what operators can do.
export function election(main, name, visitor, stream) {
  document.title = `${name} · Regent`;
  const time = bar(), state = chip(), leader = h('span', {class: 'leader id'}), token = h('span', {class: 'num token'}), notice = h('p', {class: 'ends', hidden: true}), facts = h('dl'), drawing = timeline();
  const parts = Object.fromEntries(['report', 'overrides', 'members', 'checkpoint', 'journal', 'tree', 'explain'].map(id => [id, h('div', {id}, h('span', {class: 'dim', 'data-empty': true}, 'Reading…'))]));
  const log = h('ol', {class: 'events'}), candidates = h('datalist', {id: 'candidates'}), problem = h('p', {class: 'problem', role: 'alert'});
  const section = (title, ...e) => h('section', {}, h('h2', {}, title), e);
  const who = h('input', {'aria-label': 'Candidate', placeholder: 'candidate id', required: true, list: 'candidates', autocapitalize: 'none', spellcheck: 'false'});
  const given = () => { standing = true; refresh(); }, buttons = orders(visitor, given);
  main.replaceChildren(h('nav', {'aria-label': 'Breadcrumb'}, h('a', {href: fleetPage()}, 'Elections'), h('span', {'aria-hidden': 'true'}, ' / ')), h('div', {class: 'title'}, h('h1', {class: 'id'}, name), state.e),
    h('section', {class: 'hero', 'aria-label': 'Lease'}, h('div', {class: 'lead'}, leader, token), time.e, notice, problem, facts, buttons.e, candidates),
    section('Terms', drawing.e),
    h('div', {class: 'cols'},
      h('div', {}, section('Standing orders', parts.overrides), section('Members and the line', parts.members), section('Why does a candidate not lead?', h('form', {class: 'tools', onsubmit: e => { e.preventDefault(); explain(); }}, who, h('button', {}, 'Explain')), parts.explain)),
      h('div', {}, section('Report', parts.report), section('Checkpoint', parts.checkpoint), section('Journal', parts.journal), section('Elections below', parts.tree)),
      section('Events', h('div', {role: 'log', 'aria-label': 'Events'}, log))));
  parts.explain.replaceChildren();
  let lease, halt, readOnly = false, changes = Infinity, revision = 0, events = [], reading = false, again = false, anew = false, late = now() + 2000, due = 0, standing = true, suggested = '';

  const none = text => h('span', {class: 'dim'}, text);
  const list = (all, f, empty) => all?.length ? h('ul', {class: 'plain'}, all.map(f).map(c => h('li', {}, c))) : none(empty);
  const dl = all => all.filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)));
  const text = v => typeof v === 'object' ? JSON.stringify(v) : /^\d+s$/.test(v) ? span(millis(v)) : String(v);
  const values = all => Object.entries(all).map(([k, v]) => [k, text(v)]);
  const json = v => h('pre', {tabindex: '0'}, JSON.stringify(v, null, 1));
  const show = (e, made) => { if (!made.isEqualNode(e.firstChild)) e.replaceChildren(made); }; // else a button would lose its focus

  function draw(l) {
    if (l.revision < revision) return;
    heard(l);
    revision = l.revision;
    lease = l;
    const held = l.state === 'held', end = held ? now() + l.expiresInMs : 0;
    time.set(end, millis(l.leaseDuration));
    late = held ? now() + Math.max(1000, l.renewInMs + 1500) : l.lockedForMs ? now() + l.lockedForMs : 0;
    say(leader, l.leaderId ?? 'No leader', 'leader ' + (held ? 'id' : neverLed(l) ? 'dim' : 'none'));
    say(token, l.fencingToken ? `token ${l.fencingToken}` : '');
    tick();
    facts.replaceChildren(...dl([['Led since', l.acquiredAt && when(l.acquiredAt)], ['Last heartbeat', l.lastHeartbeat && when(l.lastHeartbeat)], ['Lease', span(millis(l.leaseDuration))], ['Revision', String(l.revision)],
      ['Stands on', l.via && h('a', {href: page(l.via.election)}, `${l.via.election} #${l.via.fencingToken}`)], ['Note', l.note], ['About', l.configuration.description],
      ['Policy', l.configuration.policy && values(l.configuration.policy).map(p => p.join(' ')).join(' · ')], ['Metadata', l.metadata && values(l.metadata).map(p => p.join(' ')).join(' · ')]]));
    report(l.report, l.reportedAt);
    buttons.lease(l);
  }
  function condition(l) {
    const locked = left(l, l.lockedForMs ?? 0);
    if (l.deleted) return ['square', 'bad', 'Deleted'];
    if (readOnly) return ['square', 'bad', l.leaderId ? 'Leads, read-only' : 'Read-only, no leader'];
    if (l.state !== 'held') {
      if (l.parked) return ['square', 'bad', 'Parked'];
      if (buttons.paused()) return ['pause', 'warn', 'Paused, no leader'];
      if (locked > 0) return ['ring', 'bad', `Locked for ${span(locked)}`];
      return neverLed(l) ? ['ring', 'dim', 'Never led'] : ['ring', 'bad', 'No leader'];
    }
    if (l.endsBecause === 'approval') return ['diamond', 'warn', 'Leads, needs approval'];
    if (l.succession) return ['arrow', 'info', 'Hands over'];
    if (ending(l)) return ['clock', 'info', 'Leads, term ends'];
    return buttons.paused() ? ['pause', 'warn', 'Leads, paused'] : ['disc', 'good', 'Leads'];
  }
  // missing shows that there is no such election, until there is one.
  function missing(why) {
    lease = undefined;
    revision = 0;
    late = now() + 5000;
    time.set(0, 1);
    state.set(['ring', 'dim', 'Does not exist']);
    say(leader, 'No such election', 'leader dim');
    say(token, '');
    facts.replaceChildren();
    report();
    drawing.set(events);
    notice.hidden = true;
    buttons.missing('Orders need an election, and this one does not exist.');
    say(problem, why);
  }
  // tick shows what moves with the clock.
  function tick() {
    time.tick();
    buttons.draw();
    const l = lease;
    if (!l) return;
    state.set(condition(l));
    const soon = [l.endsBy && `The term ends by ${clock(l.endsBy)}, in ${span(left(l, l.endsInMs))}: ${l.endsBecause}.`, l.succession && `${l.succession.to} is to lead next, and is ${l.succession.ready ? 'ready' : 'not ready yet'}.`,
      halt && `No candidate is granted it until ${clock(halt.until)}, by a halt of all${halt.elections ? ' of ' + halt.elections : ''}${halt.reason ? ` (${halt.by}: ${halt.reason})` : ''}.`, l.serving === false && 'The leader has not said yet that it serves.'].filter(Boolean).join(' ');
    say(notice, soon, ending(l) || l.succession || halt ? 'ends' : 'ends dim');
    notice.hidden = !soon;
  }
  const report = (r, at) => show(parts.report, r ? h('div', {}, h('dl', {}, dl(values(r))), h('p', {class: 'dim'}, 'Reported at ', when(at))) : none('The leader has not reported.'));

  // part reads one part, and says in its place why that failed.
  async function part(id, rest, f, read = call) {
    try { show(parts[id], f(await read(path(name, rest)))); } catch (e) {
      const known = !parts[id].querySelector('[data-empty]');
      if (known && (e.status === 0 || e.status >= 500)) return; // the page says that it is old
      show(parts[id], e.status === 404 ? none('None.') : h('span', {class: 'problem', 'data-empty': true}, e.message));
    }
  }
  const node = n => h('tr', {}, h('td', {class: 'id'}, n.id), h('td', {}, n.position ? `${n.position}. in line` : n.role, n.seat ? ` at seat ${n.seat}` : ''), h('td', {class: 'num'}, n.term ? '#' + n.term : ''),
    h('td', {class: 'num'}, n.applied === undefined ? '' : `${n.applied}${n.lag ? `, ${n.lag} behind` : ''}`), h('td', {}, n.note ?? ''));
  const members = d => {
    if (!suggested) who.value ||= suggested = (d.nodes.find(n => n.position) ?? d.nodes[0])?.id ?? ''; // once: not while a person types
    candidates.replaceChildren(...d.nodes.map(n => h('option', {value: n.id})));
    readOnly = d.readOnly ?? false;
    tick();
    const good = d.status === 'healthy' && !d.readOnly;
    return h('div', {}, h('p', {}, mark(good ? 'disc' : 'triangle', good ? 'good' : 'warn'), ` ${d.status}${codes[d.status] ? ` (${codes[d.status]})` : ''}${d.readOnly ? ', read-only' : ''}${d.quorum ? `; ${d.quorum.present} of ${d.quorum.size} present, ${d.quorum.need} needed` : ''}${d.complete ? '' : '; there may be others'}`),
      d.nodes.length ? h('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Members'}, h('table', {'aria-label': 'Members'}, h('thead', {}, h('tr', {}, ['Id', 'Role', 'Follows', 'Applied', 'Note'].map(t => h('th', {scope: 'col'}, t)))), h('tbody', {}, d.nodes.map(node)))) : none('No member is known.'));
  };
  // head reads where the journal ends. Its first entries may be kept as a snapshot alone.
  const head = at => call(at + '/journal?limit=1').catch(e => { if (e.status !== 410) throw e; return call(`${at}/journal?limit=1&after=${e.doc.index}`); });
  const branch = c => h('div', {}, mark(c.leaderId ? 'disc' : 'ring', c.leaderId ? 'good' : 'bad'), ' ', h('a', {href: page(c.election)}, c.election), ' ', none(c.leaderId ?? 'no leader'), c.children?.length ? list(c.children, branch) : '');

  async function refresh() {
    if (reading) { again = true; return; }
    reading = true;
    late = now() + 5000;
    try { await readAll(); } finally { reading = false; }
    if (again) { again = false; refresh(); }
  }
  async function readAll() {
    try { draw(await call(path(name))); say(problem, ''); } catch (e) { e.status === 404 ? missing(e.message) : say(problem, e.message); }
    const all = [part('members', '/members', members)], silence = due < now();
    if (standing || silence) {
      standing = false;
      all.push(part('overrides', '/overrides', d => { changes = now() + Math.min(...d.overrides.map(o => o.untilMs)); buttons.standing(d.overrides); tick(); return list(d.overrides, o => override(o, name, visitor, given), 'None stands.'); }));
    }
    if (silence) {
      due = now() + silent;
      all.push(halted());
      all.push(visitor.may.includes('checkpoint') ? part('checkpoint', '/checkpoint', d => h('div', {}, h('p', {}, h('b', {}, d.task ?? ''), ' ', none(`by ${d.leaderId}, token ${d.fencingToken}, `), when(d.at)), d.uri ? h('p', {class: 'id'}, d.uri) : json(d.data))) : show(parts.checkpoint, none('Your role does not allow reading it.')));
      all.push(visitor.may.includes('journal') ? part('journal', '', d => h('dl', {}, dl([['Last index', String(d.index)], ['Snapshot up to', d.snapshotIndex ? String(d.snapshotIndex) : 'none'], ['Token', String(d.fencingToken || '')]])), head) : show(parts.journal, none('Your role does not allow reading it.')));
      all.push(part('tree', '/tree', d => h('div', {}, list(d.children, branch, 'None.'), d.complete ? '' : none('There are more.'))));
    }
    await Promise.all(all);
  }
  // halted asks whether a halt keeps a vacant election vacant: it bars all candidates alike.
  async function halted() {
    const asks = lease?.state === 'vacant' && visitor.may.includes('explain');
    try { halt = asks ? (await call(path(name, '/candidates/-:explain'))).reasons.find(r => r.code === 'HALTED') : undefined; } catch { /* as it was known */ }
    tick();
  }
  async function explain() {
    await part('explain', '/candidates/' + encodeURIComponent(who.value) + ':explain', d => d.leads ? h('p', {}, mark('disc', 'good'), ` ${d.candidateId} leads.`) :
      list(d.reasons, r => h('div', {}, h('b', {}, r.code), [codes[r.code], r.leaderId && `${r.leaderId} leads`, r.elections && `all of ${r.elections}`, r.pattern && `as each candidate of ${r.pattern}`, r.principal && `if it calls as ${r.principal}`, r.position && `place ${r.position} of ${r.of}`, r.need && `${r.have} of ${r.need} present`, r.by && `by ${r.by}`, r.reason, r.untilMs && `for ${span(r.untilMs)} more`].filter(Boolean).map(t => ' · ' + t).join('')), 'Nothing bars it.'));
  }

  function line(e) {
    const detail = e.detail && Object.keys(e.detail).length ? values(e.detail).map(p => p.join(' ')).join(' · ') : '';
    return h('li', {'data-revision': String(e.revision)}, when(e.at), h('span', {class: 'type'}, mark(...(marks[e.type] ?? ['disc', 'dim'])), ' ', e.type),
      h('span', {}, h('span', {class: 'id'}, e.leaderId ?? e.previousLeaderId ?? ''), h('span', {class: 'dim num'}, ` #${e.fencingToken}`), e.actor || e.reason ? h('div', {}, e.actor ? h('b', {}, e.actor) : '', e.actor && e.reason ? ': ' : '', e.reason ?? '') : '', detail ? h('div', {class: 'dim detail'}, detail) : ''));
  }
  // hear takes events in any order, and only what is new is drawn.
  function hear(news) {
    const known = new Set(events.map(e => e.revision)), fresh = news.filter(e => !known.has(e.revision));
    if (!fresh.length) return;
    events = [...events, ...fresh].sort((a, b) => a.revision - b.revision).slice(-kept.events);
    drawing.set(events);
    for (const e of fresh) log.insertBefore(line(e), [...log.children].find(c => Number(c.dataset.revision) < e.revision) ?? null);
    while (log.children.length > kept.listed) log.lastChild.remove();
  }
  async function history(last) {
    try { hear((await call(path(name, `/events?after=${Math.max(0, last - kept.events)}&limit=${kept.events}`))).events); } catch (e) { say(problem, e.message); }
  }
  stream(path(name, '/events'), {
    open: () => { due = 0; refresh(); },
    snapshot: l => {
      if (anew) { revision = 0; events = []; log.replaceChildren(); }
      anew = false;
      draw(l);
      history(l.revision);
    },
    event: e => { if (e.type === 'acquired' || e.type === 'delegated') due = 0; standing ||= ordered.includes(e.type); hear([e]); refresh(); },
    report: r => report(r.report, r.reportedAt), member: refresh, restart: () => { anew = true; },
  });
  setInterval(() => {
    if (document.hidden) return;
    tick();
    if (changes < now()) { changes = Infinity; standing = true; refresh(); } // an order has run out: no event tells
    if (late && late < now() || due && due < now()) refresh(); // also if no stream is to be had
    drawing.draw();
  }, 250);
}
