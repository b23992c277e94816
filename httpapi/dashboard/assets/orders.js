import {call, clock, h, path, span} from './lib.js';

const promised = l => l.leaderId ? ` ${l.leaderId} goes on until the end that it was promised, in ${span(l.expiresInMs)} at most.` : ' There is no leader now.';

// kinds says of each order which fields it has and what will happen.
const kinds = {
  assign: {text: 'Assign', fields: ['candidateId', 'for'], says: (l, d) => `Until ${d.until} only ${d.candidateId || 'this candidate'} is granted the lease. If another one leads, its term ends:${promised(l)}`},
  evict: {text: 'Evict', held: true, fields: ['ban'], says: (l, d) => `The present term ends.${promised(l)} ${d.ban ? `It is not granted the lease again for ${d.ban}.` : 'It may lead again unless you name a ban.'} Nothing takes an eviction back.`},
  pause: {text: 'Pause', fields: ['for', 'mode'], says: (l, d) => `Until ${d.until} no candidate is granted the lease. ${d.mode === 'drain' ? 'The present term ends:' + promised(l) : 'The present leader goes on.'}`},
  resume: {text: 'Resume', fields: [], says: () => 'The pause ends now, and candidates are granted the lease again.'},
  ban: {text: 'Ban', fields: ['candidateId', 'for'], says: (_, d) => `Until ${d.until} ${d.candidateId || 'this candidate'} is not granted the lease. A term that it has goes on.`},
  approve: {text: 'Approve', held: false, fields: ['for', 'newEpoch'], optional: true, says: (l, d) => `The leader of token ${l.fencingToken} may go on${d.for ? ` until ${d.until}` : ' for as long as the policy says'}.${d.newEpoch ? ' It goes on under the next token: orders from before are stale.' : ''}`},
};

// orders shows a button for each order. One that the visitor may not give is disabled, and says so.
// The buttons are made once: one that was replaced between press and release would lose a click.
export function orders(into, l, visitor, done) {
  into.lease = l;
  if (!into.querySelector('[data-order]')) {
    into.replaceChildren(...Object.entries(kinds).map(([kind, k]) => h('button', {'data-order': kind, onclick: () => ask(kind, k, into.lease, visitor, done)}, k.text)));
    if (!Object.keys(kinds).some(kind => visitor.may.includes(kind))) into.append(h('span', {class: 'dim'}, 'You may look; orders need the role operator.'));
  }
  for (const b of into.querySelectorAll('[data-order]')) {
    const kind = b.dataset.order;
    b.title = !visitor.may.includes(kind) ? 'Your role does not allow this.' : kinds[kind].held && l.state !== 'held' ? 'There is no leader.' : '';
    b.disabled = b.title !== '';
  }
}

// override shows a standing order, with a button that lifts it.
export function override(o, name, visitor, done) {
  return [h('b', {}, o.kind), `${o.candidateId ? ' ' + o.candidateId : ''}${o.mode ? ' ' + o.mode : ''} by ${o.actor}: ${o.reason} · until ${clock(o.until)} `,
    visitor.may.includes('lift') ? h('button', {'data-lift': o.id, onclick: () => ask('lift', {text: 'Lift', fields: [], fixed: {override: o.id}, says: () => `The order ${o.id} ends now.`}, {election: name}, visitor, done)}, 'Lift') : ''];
}

const labels = {candidateId: 'Candidate', for: 'For how long, such as 10m or 2h', ban: 'Ban it for (optional), such as 10m', mode: 'The present leader', newEpoch: 'A new epoch, with the next token'};

// ask opens the dialog of an order. It stays open with the reason if the order is refused.
function ask(kind, k, l, visitor, done) {
  const fields = {}, says = h('p', {}), problem = h('p', {class: 'problem', role: 'alert'});
  for (const f of k.fields) {
    fields[f] = f === 'mode' ? h('select', {}, h('option', {value: 'freeze'}, 'goes on'), h('option', {value: 'drain'}, 'ends its term')) :
      f === 'newEpoch' ? h('input', {type: 'checkbox'}) : h('input', {name: f, required: f !== 'ban' && !k.optional, value: f === 'for' && !k.optional ? '10m' : ''});
  }
  const reason = h('input', {name: 'reason', required: true, maxlength: '256'}), actor = visitor.principal ? undefined : h('input', {name: 'actor', required: true, autocomplete: 'name'});
  const values = () => Object.fromEntries(Object.entries(fields).map(([f, e]) => [f, e.type === 'checkbox' ? e.checked || '' : e.value.trim()]).filter(([, v]) => v !== ''));
  const explain = () => {
    const d = values(), ms = [...(d.for ?? '').matchAll(/(\d+)([smh])/g)].reduce((n, [, v, u]) => n + v * {s: 1e3, m: 6e4, h: 36e5}[u], 0);
    says.textContent = k.says(l, {...d, until: ms ? clock(Date.now() + ms) : '…'});
  };
  const label = (text, e) => h('label', {}, text, e);
  const send = h('button', {'data-send': true}, k.text), dialog = h('dialog', {'aria-labelledby': 'order-title'}, h('form', {oninput: explain, onsubmit: async e => {
    e.preventDefault();
    send.disabled = true;
    const body = {...values(), ...k.fixed, reason: reason.value};
    if (actor) body.actor = actor.value;
    if (kind === 'approve' || kind === 'evict') body.fencingToken = l.fencingToken; // the term that the visitor sees
    try {
      await call(path(l.election, ':' + kind), body);
      dialog.close();
      done();
    } catch (err) { problem.textContent = err.message; } finally { send.disabled = false; }
  }}, h('h2', {id: 'order-title'}, `${k.text}: ${l.election}`), says, Object.entries(fields).map(([f, e]) => label(labels[f], e)), label('Reason, for the history', reason),
    actor ? label('Your name', actor) : '', problem, h('footer', {}, h('button', {type: 'button', onclick: () => dialog.close()}, 'Cancel'), send)));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  explain();
  dialog.showModal();
}
