import {clock, count, h, left, millis, now, path, say, span, wall, when} from './lib.js';
import {order} from './server.js';

// each stands for the lease in what an order for many says of each of them.
const each = {};

const promised = l => {
  if (l === each) return ' Each leader goes on until the end that it was promised.';
  if (!l.leaderId) return ' No candidate leads now.';
  const ms = left(l, l.expiresInMs), at = clock(wall() + ms);
  return ms > 0 ? ` ${l.leaderId} goes on until the end that it was promised: ${at} at the latest, in ${span(ms)}.` : ` The end that ${l.leaderId} was promised has passed: ${at}, by the last reading.`;
};
// The furthest that a browser's calendar goes is some 275,000 years.
const until = ms => ms > 0 && ms < 1e15 ? `${clock(wall() + ms)} (in ${span(ms)})` : '…';
const who = d => d.candidateId || 'this candidate';
// target names the elections, the candidate, the pattern or the principal that an order is about; '' for all.
const target = o => [o.elections, o.candidateId, o.principal && `principal ${o.principal}`].filter(Boolean).join(', ');

// kinds says of each order which fields it has and what will happen.
const kinds = {
  assign: {text: 'Assign', fields: ['candidateId', 'for'], says: (l, d) => `Until ${d.until} only ${who(d)} is granted the lease.${l.leaderId && l.leaderId !== d.candidateId ? ' The present term ends.' + promised(l) : ''}`},
  evict: {text: 'Evict', danger: true, term: true, fields: ['ban'], says: (l, d) => `The present term ends.${promised(l)} ${d.ban ? `It is not granted the lease again before ${d.until}.` : 'It may lead again unless you name a ban.'} Nothing takes an eviction back.`},
  pause: {text: 'Pause', fields: ['for', 'mode'], says: (l, d) => `Until ${d.until} no candidate is granted the lease. ${d.mode === 'drain' ? 'The present term ends.' + promised(l) : 'The present leader goes on: to end its term, too, choose drain, or evict it.'}`},
  resume: {text: 'Resume', fields: [], says: () => 'The pause ends now, and candidates are granted the lease again.'},
  ban: {text: 'Ban', danger: true, fields: ['candidateId', 'for'], says: (_, d) => `Until ${d.until} ${d.candidateId?.endsWith('*') ? `no candidate of ${d.candidateId} is` : `${who(d)} is not`} granted the lease. A term that it has goes on.`},
  approve: {text: 'Approve', term: true, fields: ['for', 'newEpoch'], optional: true, says: (l, d) => `${l.leaderId ? `${l.leaderId}, the leader of token ${l.fencingToken},` : 'The next leader'} may go on${d.for ? ` until ${d.until}` : ' for as long as the policy says'}.${d.newEpoch ? ' It goes on under the next token: orders from before are stale.' : ''}`},
};

// bars says why an order makes no sense now; '' if it does.
function bars(kind, l, paused) {
  if (kind !== 'evict' && l.of) return `A seat stands under the orders of its election, ${l.of}.`;
  if (kind === 'evict' && l.state !== 'held') return 'Evict needs a leader.';
  if (kind === 'approve' && l.state !== 'held' && !l.configuration.policy?.approval && !l.parked) return 'Approve needs a leader, a parked election, or a policy that asks for approvals.';
  if (kind === 'resume' && !paused) return 'Resume needs a pause.';
  return '';
}

// over says that the term which an order is about has ended meanwhile; '' if it has not.
const over = (kind, k, l, present) => !k.term || !bars(kind, present) && present.fencingToken === l.fencingToken ? '' :
  `The term of token ${l.fencingToken} has ended meanwhile: ${present.leaderId ? `${present.leaderId} leads with token ${present.fencingToken}` : 'no candidate leads'}.`;

// orders shows a button for each order. One that the visitor may not give is disabled, and says so.
// The buttons are made once: one that was replaced between press and release would lose a click.
export function orders(visitor, done) {
  let lease, pause = 0, dialog, missing = 'The election is not read yet.';
  const paused = () => pause > now();
  const buttons = Object.entries(kinds).map(([kind, k]) => h('button', {'data-order': kind, disabled: true, onclick: () => { dialog = ask(kind, k, lease, visitor, done); }}, k.text));
  const note = h('p', {class: 'dim', id: 'orders-note'});
  const draw = () => {
    const barred = Object.keys(kinds).filter(kind => !visitor.may.includes(kind)), why = [];
    for (const b of buttons) {
      const kind = b.dataset.order, bar = barred.includes(kind) ? 'Your role does not allow this.' : lease ? bars(kind, lease, paused()) : missing;
      b.disabled = bar !== '';
      b.title = bar;
      if (bar && !barred.includes(kind) && !why.includes(bar)) why.push(bar);
    }
    if (barred.length) why.unshift(barred.length === buttons.length ? 'You may look; orders need the role operator.' : `Your role does not allow: ${barred.join(', ')}.`);
    if (note.textContent !== why.join(' ')) note.textContent = why.join(' ');
  };
  return {
    e: h('div', {class: 'orders', role: 'group', 'aria-label': 'Orders', 'aria-describedby': 'orders-note'}, h('div', {class: 'tools'}, buttons), note),
    draw, paused,
    lease(l) { lease = l; dialog?.(l); draw(); },
    // missing says why there is no election that orders could be about.
    missing(why) { lease = undefined; missing = why; draw(); },
    standing(overrides) { pause = now() + Math.max(0, ...overrides.filter(o => o.kind === 'pause').map(o => o.untilMs)); draw(); },
  };
}

// override shows a standing order, with a button that lifts it.
export function override(o, name, visitor, done) {
  const k = {text: 'Lift', fields: [], fixed: {override: o.id}, says: () => `The ${o.kind}${target(o) && ` of ${target(o)}`} ends now, and not at ${clock(o.until)}.`};
  return h('div', {class: 'order'}, h('div', {}, h('div', {}, h('b', {}, o.kind), target(o) ? h('span', {class: 'id'}, ' ' + target(o)) : '', o.mode ? ` (${o.mode})` : '', ' until ', when(o.until)),
    h('div', {class: 'dim'}, `${o.actor}: ${o.reason}`)),
    visitor.may.includes('lift') ? h('button', {'data-lift': o.id, 'aria-label': `Lift ${o.id}`, onclick: () => ask('lift', k, {election: name}, visitor, done)}, 'Lift') : '');
}

// selection lets the visitor mark some of the rows that are shown, and give one order to their
// elections. A row has a name and the lease as it is known; paused says whether it may be paused.
export function selection(visitor, shown, paused, done) {
  const may = visitor.orders ?? {}, offered = Object.keys(kinds).filter(kind => may[kind]);
  const covers = (kind, name) => may[kind].some(e => e.endsWith('*') ? name.startsWith(e.slice(0, -1)) : e === name);
  const free = () => shown().filter(r => !r.box.disabled), marked = () => free().filter(r => r.box.checked);
  const text = h('span', {class: 'dim', role: 'status'});
  const all = h('input', {type: 'checkbox', 'aria-label': 'Select all that are shown', onchange: () => { for (const r of free()) r.box.checked = all.checked; draw(); }});
  const buttons = offered.map(kind => h('button', {'data-order': kind, disabled: true, onclick: () => {
    const rows = marked();
    ask(kind, kinds[kind], each, visitor, () => done(rows), results(kind, rows.map(r => ({lease: {...r.lease, election: r.name}, present: () => r.lease, bar: covers(kind, r.name) ? bars(kind, r.lease, paused(r)) : 'Your role does not allow this.'}))));
  }}, kinds[kind].text));
  function draw() {
    const n = marked().length, most = free().length;
    all.disabled = !most;
    all.checked = n > 0 && n === most;
    all.indeterminate = n > 0 && !all.checked;
    for (const b of buttons) b.disabled = !n;
    say(text, `${n || 'none'} selected`);
  }
  return offered.length ? {
    draw, all, e: h('div', {class: 'tools', role: 'group', 'aria-label': 'Orders for the selected elections'}, text, buttons),
    box(r) {
      const bar = r.name.startsWith('regent.') ? 'Regent keeps this election for itself.' : offered.some(kind => covers(kind, r.name)) ? '' : 'Your role does not allow orders on this election.';
      return r.box = h('input', {type: 'checkbox', 'aria-label': `Select ${r.name}`, disabled: bar !== '', title: bar || undefined, onchange: draw});
    },
  } : undefined;
}

// How many orders for many are under way at a time: a browser opens few connections to one server.
const atOnce = 4;

// results shows the elections that an order is for, and what becomes of each.
function results(kind, all) {
  const rows = all.map(r => ({...r, cell: h('td')}));
  const end = (r, state, why) => { r.state = state; say(r.cell, why ? `${state}: ${why}` : state, state === 'failed' ? 'bad' : ''); };
  const rest = () => rows.filter(r => r.state !== 'done' && r.state !== 'skipped');
  for (const r of rows) end(r, r.bar ? 'skipped' : 'to be done', r.bar);
  return {
    rest, e: h('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Selected elections'}, h('table', {'aria-label': 'Selected elections'}, h('thead', {}, h('tr', {}, ['Election', 'Leader', 'Result'].map(t => h('th', {scope: 'col'}, t)))),
      h('tbody', {}, rows.map(r => h('tr', {}, h('td', {class: 'id'}, r.lease.election), h('td', {class: 'id'}, r.lease.leaderId ?? '–'), r.cell))))),
    sum: () => `${count(rows.length, 'election')}: ${Object.entries(Object.groupBy(rows, r => r.state)).map(([state, those]) => `${those.length} ${state}`).join(', ')}.`,
    // give gives the order to those that have none yet, and goes on after an error.
    async give(order, cancelled) {
      const next = rest();
      const go = async () => {
        for (let r; (r = next.shift());) {
          const why = over(kind, kinds[kind], r.lease, r.present());
          if (cancelled.aborted || why) { end(r, why ? 'skipped' : 'not tried', why); continue; }
          try { await order(r.lease, r.present()); end(r, 'done'); } catch (e) { end(r, 'failed', e.message + (e.status === 0 ? maybe : '')); }
        }
      };
      await Promise.all(Array.from({length: atOnce}, go));
    },
  };
}

const labels = {candidateId: 'Candidate', for: 'For how long', ban: 'Ban it for (optional)', mode: 'The present leader', newEpoch: 'Begin a new epoch, with the next token'};
const filled = {pattern: '.*\\S.*', title: 'more than spaces'};
const help = 'such as 30s, 10m, 1h30m';
const maybe = ' The order may have been carried out if it was sent. Look at the events before you give it again.';

// ask opens the dialog of an order. It stays open with the reason if the order is refused. The
// result tells it of a newer lease: an order about a term that has ended would do nothing. An order
// for many stays open with the results.
function ask(kind, k, l, visitor, done, many) {
  const fields = {}, says = h('p', {class: 'says', id: 'order-says'}), problem = h('p', {class: 'problem', role: 'alert'});
  const waits = h('p', {role: 'status'}), cancel = h('button', {type: 'button'}, 'Cancel');
  let present = l, pending;
  const wait = () => {
    say(waits, pending ? 'Waiting for the answer of the server…' : many?.sum() ?? '');
    explain();
  };
  for (const f of k.fields) {
    if (f === 'mode') fields[f] = h('select', {name: f}, h('option', {value: 'freeze'}, 'goes on'), h('option', {value: 'drain'}, 'ends its term'));
    else if (f === 'newEpoch') fields[f] = h('input', {type: 'checkbox', name: f});
    else if (f === 'candidateId') fields[f] = h('input', {name: f, required: true, list: 'candidates', autocapitalize: 'none', spellcheck: 'false'});
    else fields[f] = h('input', {name: f, required: f === 'for' && !k.optional, value: f === 'for' && !k.optional ? '10m' : '', pattern: '([0-9.]+(ms|h|m|s))+', title: help, placeholder: help});
  }
  if (fields.newEpoch && l.state === 'held' && !l.configuration.policy?.approval) fields.newEpoch.checked = fields.newEpoch.required = true; // there is nothing else to approve
  const reason = h('input', {name: 'reason', required: true, maxlength: '256', ...filled}), actor = visitor.principal ? undefined : h('input', {name: 'actor', required: true, autocomplete: 'name', ...filled});
  const values = () => Object.fromEntries(Object.entries(fields).map(([f, e]) => [f, e.type === 'checkbox' ? e.checked || '' : e.value.trim()]).filter(([, v]) => v !== ''));
  const explain = () => {
    const d = values(), ms = millis(d.for ?? d.ban);
    say(says, (many ? 'For each of them: ' : '') + k.says(present, {...d, until: until(ms)}));
    const ended = many ? '' : over(kind, k, l, present);
    send.disabled = Boolean(pending || ended || many && !many.rest().length);
    if (ended && !pending) say(problem, ended + ' Cancel, and look again.');
  };
  const label = (text, e) => e.type === 'checkbox' ? h('label', {class: 'check'}, e, text) : h('label', {}, text, e);
  const send = h('button', {class: k.danger ? 'danger' : 'primary', 'data-send': true}, k.text), dialog = h('dialog', {'aria-labelledby': 'order-title', 'aria-describedby': 'order-says'}, h('form', {oninput: explain, onsubmit: async e => {
    e.preventDefault();
    if (send.disabled) return;
    pending = new AbortController();
    wait();
    say(problem, '');
    const body = {...values(), ...k.fixed, reason: reason.value};
    if (actor) body.actor = actor.value;
    const give = (l, present) => order(path(l.election, ':' + kind), k.term ? {...body, fencingToken: l.fencingToken} : body, pending.signal, present.revision || 1); // the term that the visitor sees
    try {
      await (many ? many.give(give, pending.signal) : give(l, present));
      if (!many) dialog.close();
      done();
    } catch (err) {
      problem.textContent = err.message;
      if (err.status === 0) {
        problem.append(maybe);
        done();
      }
    } finally {
      pending = undefined;
      wait();
    }
    if (!many) return;
    if (many.rest().length) say(send, 'Try the rest again');
    say(cancel, 'Close');
    cancel.focus();
  }}, h('h2', {id: 'order-title'}, `${k.text} `, many ? count(many.rest().length, 'election') : h('span', {class: 'id'}, l.election)), says, many?.e, Object.entries(fields).map(([f, e]) => label(labels[f], e)), label('Reason, for the history', reason),
    actor ? label('Your name', actor) : '', problem, waits, h('footer', {}, cancel, send)));
  // While an order waits for its answer, the first Cancel takes it back, and the dialog says what may
  // have happened; the next closes it.
  cancel.addEventListener('click', () => pending ? pending.abort() : dialog.close());
  dialog.addEventListener('cancel', e => { if (pending) { e.preventDefault(); pending.abort(); } });
  const moving = setInterval(explain, 1000); // what it says moves with the clock
  dialog.addEventListener('close', () => { clearInterval(moving); pending?.abort(); dialog.remove(); });
  document.body.append(dialog);
  wait();
  (Object.values(fields)[0] ?? reason).autofocus = true;
  dialog.showModal();
  return newer => {
    present = newer;
    explain();
  };
}
