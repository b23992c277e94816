import {clock, h} from './lib.js';

const ends = ['released', 'expired', 'deposed', 'deleted', 'unlocked'];

// terms finds the terms in events, with why each has ended.
export function terms(events) {
  const all = [];
  let open;
  for (const e of events) {
    if ((ends.includes(e.type) || e.type === 'epoch') && open) {
      Object.assign(open, {to: Date.parse(e.at), why: e.detail?.endsBecause ?? e.type});
      open = undefined;
    }
    if (e.type === 'acquired' || e.type === 'epoch') all.push(open = {leader: e.leaderId, token: e.fencingToken, from: Date.parse(e.at)});
  }
  return all.slice(-30);
}

// timeline draws the terms, and lists them in words.
export function timeline(events) {
  const all = terms(events);
  if (!all.length) return h('p', {class: 'dim'}, 'No term is known.');
  const last = events.at(-1), end = Math.max(Date.now(), Date.parse(last.at)), start = all[0].from, wide = 1000 / Math.max(end - start, 1);
  const s = (tag, props, ...children) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const words = t => `Token ${t.token}: ${t.leader} from ${clock(t.from)} ${t.to ? `to ${clock(t.to)}, ${t.why}` : 'until now'}`;
  const bars = all.map(t => s('rect', {class: t.to ? 'term past' : 'term', x: (t.from - start) * wide, y: 12, height: 28, rx: 2, width: Math.max(2, ((t.to ?? end) - t.from) * wide - 1)}, s('title', {}, words(t))));
  return h('div', {}, s('svg', {viewBox: '0 0 1000 56', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${all.length} terms, as listed below`}, s('line', {class: 'axis', x1: 0, x2: 1000, y1: 48, y2: 48}), ...bars),
    h('details', {}, h('summary', {}, 'The terms in words'), h('ul', {class: 'plain'}, all.toReversed().map(t => h('li', {}, words(t))))));
}
