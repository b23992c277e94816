import {bar, call, clock, h, millis, now, path, span} from './lib.js';
import {orders, override} from './orders.js';
import {timeline} from './timeline.js';

// election shows one election: its lease, its terms, its events, and what operators can do.
export function election(main, name, visitor, stream) {
  const time = bar(), lease = h('dl'), buttons = h('div', {class: 'tools'}), drawing = h('div'), log = h('ul', {class: 'plain'});
  const parts = Object.fromEntries(['report', 'overrides', 'members', 'checkpoint', 'journal', 'tree', 'explain'].map(id => [id, h('div', {id}, h('span', {class: 'dim'}, 'Reading…'))]));
  const section = (title, e) => h('section', {}, h('h2', {}, title), e);
  const who = h('input', {'aria-label': 'Candidate', placeholder: 'candidate id', required: true});
  main.replaceChildren(h('p', {}, h('a', {href: '/ui/'}, '← All elections')), h('h1', {}, name), time.e, lease, buttons,
    section('Terms', drawing), h('div', {class: 'cols'}, section('Standing orders', parts.overrides), section('Members and the line', parts.members),
      section('Report', parts.report), section('Checkpoint', parts.checkpoint), section('Journal', parts.journal), section('Elections below', parts.tree)),
    section('Why does a candidate not lead?', h('div', {}, h('form', {class: 'tools', onsubmit: e => { e.preventDefault(); explain(); }}, who, h('button', {}, 'Explain')), parts.explain)),
    section('Events', log));
  parts.explain.replaceChildren();
  let current, revision = 0, events = [], reading = false, again = false, late = 0;

  const dl = pairs => pairs.filter(([, v]) => v !== undefined && v !== '').flatMap(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]);
  const none = text => h('span', {class: 'dim'}, text);
  const list = (all, f, empty) => all?.length ? h('ul', {class: 'plain'}, all.map(f).map(c => h('li', {}, c))) : none(empty);

  function draw(l) {
    if (l.revision < revision) return;
    current = l;
    revision = l.revision;
    time.set(l.state === 'held' ? now() + l.expiresInMs : 0, millis(l.leaseDuration));
    late = l.state === 'held' ? now() + l.renewInMs + 1500 : 0;
    lease.replaceChildren(...dl([['Leader', l.leaderId ?? 'none'], ['Fencing token', String(l.fencingToken)], ['Led since', clock(l.acquiredAt)], ['Last heartbeat', clock(l.lastHeartbeat)],
      ['Ends by', l.endsBy && `${clock(l.endsBy)} (${l.endsBecause})`], ['Successor', l.succession && `${l.succession.to}${l.succession.ready ? ', ready' : ''}`],
      ['Ready', l.ready === false ? 'not yet' : ''], ['Locked for', l.lockedForMs ? span(l.lockedForMs) : ''], ['Revision', String(l.revision)],
      ['Lease', l.leaseDuration], ['Policy', l.configuration.policy && JSON.stringify(l.configuration.policy)], ['About', l.configuration.description]]));
    report(l.report, l.reportedAt);
    if (l.leaderId && !who.value) who.value = l.leaderId;
    orders(buttons, l, visitor, refresh);
  }
  const report = (r, at) => parts.report.replaceChildren(r ? h('div', {}, h('pre', {tabindex: '0'}, JSON.stringify(r, null, 1)), none(clock(at))) : none('The leader has not reported.'));

  // part reads one part, and says in its place why that failed.
  async function part(id, rest, f) {
    try {
      const made = f(await call(path(name, rest)));
      if (made.textContent !== parts[id].textContent) parts[id].replaceChildren(made); // else a button would lose its focus
    } catch (e) { parts[id].replaceChildren(none(e.status === 404 ? 'None.' : e.message)); }
  }
  async function refresh() {
    if (reading) { again = true; return; }
    reading = true;
    late = now() + 5000;
    try { draw(await call(path(name))); } catch (e) { buttons.replaceChildren(h('p', {class: 'problem'}, e.message)); }
    await Promise.all([
      part('overrides', '/overrides', d => list(d.overrides, o => override(o, name, visitor, refresh), 'None stands.')),
      part('members', '/members', d => h('div', {}, h('p', {}, `${d.status}${d.readOnly ? ', read-only' : ''}${d.quorum ? `; ${d.quorum.present} of ${d.quorum.size} present, ${d.quorum.need} needed` : ''}${d.complete ? '' : '; there may be others'}`),
        list(d.nodes, n => `${n.id} · ${n.role}${n.position ? ` · ${n.position}. in line` : ''}${n.term ? ` · follows ${n.term}` : ''}${n.lag !== undefined ? ` · ${n.lag} entries behind` : ''} · heard ${span(n.lastHeartbeatAgoMs)} ago`, 'None.'))),
      visitor.may.includes('checkpoint') ? part('checkpoint', '/checkpoint', d => h('div', {}, `By ${d.leaderId} with token ${d.fencingToken}, ${clock(d.at)}${d.task ? ': ' + d.task : ''}`, h('pre', {tabindex: '0'}, d.uri ?? JSON.stringify(d.data, null, 1)))) : parts.checkpoint.replaceChildren(none('You may not read it.')),
      visitor.may.includes('journal') ? part('journal', '/journal?limit=1', d => none(`Index ${d.index}, snapshot at ${d.snapshotIndex}.`)) : parts.journal.replaceChildren(none('You may not read it.')),
      part('tree', '/tree', d => list(d.children, c => h('a', {href: '/ui/elections/' + encodeURIComponent(c.election)}, `${c.election}: ${c.leaderId ?? 'no leader'}`), 'None.')),
    ]);
    reading = false;
    if (again) { again = false; refresh(); }
  }
  async function explain() {
    await part('explain', '/candidates/' + encodeURIComponent(who.value) + ':explain', d => d.leads ? h('p', {}, 'It leads.') :
      list(d.reasons, r => `${r.code}${r.leaderId ? ` by ${r.leaderId}` : ''}${r.by ? ` · ${r.by}` : ''}${r.reason ? `: ${r.reason}` : ''}${r.untilMs ? ` · for ${span(r.untilMs)} more` : ''}`, 'Nothing bars it.'));
  }
  function hear(e) {
    if (events.some(x => x.revision === e.revision)) return;
    events = [...events, e].sort((a, b) => a.revision - b.revision).slice(-200);
    drawing.replaceChildren(timeline(events));
    log.replaceChildren(...events.slice(-50).reverse().map(x => h('li', {}, h('span', {class: 'dim'}, clock(x.at) + ' '), h('b', {}, x.type),
      ` token ${x.fencingToken}${x.leaderId ? ' · ' + x.leaderId : ''}${x.actor ? ' · by ' + x.actor : ''}${x.reason ? ': ' + x.reason : ''}`)));
  }
  async function history(last) {
    try { for (const e of (await call(path(name, `/events?after=${Math.max(0, last - 200)}&limit=200`))).events) hear(e); } catch (e) { log.replaceChildren(h('li', {class: 'problem'}, e.message)); }
  }
  stream(path(name, '/events'), {
    snapshot: l => { draw(l); history(l.revision); refresh(); },
    event: e => { hear(e); refresh(); },
    report: r => report(r.report, r.reportedAt), member: refresh, restart: () => { revision = 0; },
  });
  setInterval(() => { if (document.hidden) return; time.tick(); if (late && late < now()) refresh(); }, 250);
}
