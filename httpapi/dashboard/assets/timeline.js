import {clock, h, say, span, wall, when} from './lib.js';

const ends = ['released', 'expired', 'deposed', 'deleted', 'unlocked'];

// terms finds the terms in events, with why each has ended.
export function terms(events) {
  const all = [];
  let open;
  for (const e of events) {
    if (open && (ends.includes(e.type) || e.type === 'epoch' || e.type === 'acquired')) {
      Object.assign(open, {to: Date.parse(e.at), why: because(e)});
      open = undefined;
    }
    if (e.type === 'acquired' || e.type === 'epoch') all.push(open = {leader: e.leaderId, token: e.fencingToken, from: Date.parse(e.at)});
  }
  return all.slice(-30);
}

// because says why a term has ended, in one line.
function because(e) {
  const why = e.detail?.endsBecause;
  return (e.type === 'epoch' ? 'new epoch' : why && why !== e.type ? `${e.type}, ${why}` : e.type) + (e.reason ? `: ${e.reason}` : '') + (e.actor && e.reason ? ` (${e.actor})` : '');
}

// timeline draws the terms, and lists them in words. draw is called again as time goes on: it draws
// anew if that would be seen.
export function timeline() {
  const drawn = h('div', {class: 'terms', role: 'img'}), axis = h('div', {class: 'axis', 'aria-hidden': 'true'}), rows = h('tbody'), older = h('tbody');
  const head = () => h('thead', {}, h('tr', {}, ['Token', 'Leader', 'Ended', 'Lasted', 'From'].map(t => h('th', {scope: 'col'}, t))));
  const more = h('details', {hidden: true}, h('summary', {}, 'Earlier terms'), h('table', {'aria-label': 'Earlier terms'}, head(), older));
  const e = h('div', {}, drawn, axis, h('div', {class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Terms'}, h('table', {'aria-label': 'Terms'}, head(), rows), more));
  let all = [], listed = '', drawnWide = 0, drawnWhole = 0;
  const row = t => h('tr', {}, h('td', {class: 'num'}, '#' + t.token), h('td', {class: 'id'}, t.leader), h('td', {class: t.to ? '' : 'good'}, t.why ?? 'leads'),
    h('td', {class: 'num'}, span((t.to ?? wall()) - t.from)), h('td', {class: 'num'}, when(t.from)));

  function draw() {
    const last = all.at(-1), end = Math.max(wall(), last?.to ?? last?.from ?? 0), start = all[0]?.from ?? end, whole = Math.max(end - start, 1000), part = ms => ms / whole * 100 + '%';
    const lasting = rows.querySelector('td:nth-child(4)');
    if (lasting) say(lasting, span((last.to ?? end) - last.from));
    drawn.hidden = axis.hidden = !all.length;
    const wide = drawn.clientWidth;
    if (wide === drawnWide && whole >= drawnWhole && whole < drawnWhole * 1.004) return;
    drawnWide = wide;
    drawnWhole = whole;
    drawn.setAttribute('aria-label', `${all.length} terms since ${clock(start)}, listed below`);
    drawn.replaceChildren(...all.flatMap((t, i) => {
      const from = t.from - start, ms = (t.to ?? end) - t.from, room = ((all[i + 1]?.to ?? end) - (t.to ?? end)) / whole * wide;
      const e = h('div', {class: t.to ? 'term past' : 'term', title: `#${t.token} ${t.leader}, ${span(ms)}`}, ms / whole * wide > 44 ? h('span', {}, `#${t.token} ${t.leader}`) : '');
      e.style.left = part(from);
      e.style.width = part(ms);
      if (!t.to || room < 70 && i < all.length - 1 || (from + ms) / whole * wide < 70) return [e];
      const why = h('span', {class: 'why'}, t.why.split(/[:,]/)[0]);
      why.style.left = part(from + ms);
      return [e, why];
    }));
    const marks = Math.max(2, Math.min(6, Math.floor(wide / 150)));
    axis.replaceChildren(...Array.from({length: marks}, (_, i) => h('span', {}, i === marks - 1 ? 'now' : clock(start + whole * i / (marks - 1)))));
  }
  return {
    e, draw,
    set(events) {
      all = terms(events);
      const newest = JSON.stringify(all);
      if (newest !== listed) {
        drawnWhole = 0;
        const last = all.toReversed();
        rows.replaceChildren(...last.slice(0, 6).map(row));
        older.replaceChildren(...last.slice(6).map(row));
        more.hidden = last.length <= 6;
        if (!last.length) rows.replaceChildren(h('tr', {}, h('td', {colspan: '5', class: 'dim'}, 'No term is known.')));
      }
      listed = newest;
      draw();
    },
  };
}
