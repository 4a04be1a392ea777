// ---- What the page shows of two results.

const NOTHING = '–';
function shown(x) {
  if (x === undefined || x === null) return NOTHING;
  const digits = Math.abs(x) >= 100 || Number.isInteger(x) ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  return x.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
const percent = x => x === undefined ? NOTHING : `${(100 * x).toFixed(1)} %`;

const LATENCIES = [['ttft', 'TTFT'], ['itl', 'ITL'], ['e2e', 'E2E']];
/** Name, where it is in a section, whether more is better, and how it is shown. */
const ROWS = [
  ...LATENCIES.flatMap(([key, name]) => ['mean', 'p50', 'p99'].map(part =>
    [`${name} ${part}, ms`, section => section[`${key}_${part}_ms`], false, shown])),
  ['requests served per second', section => section.responses_per_sec, true, shown],
  ['tokens per second', section => section.tokens_per_sec, true, shown],
  ['SLO met', section => section.slo_attainment, true, percent],
  ['refused', section => section.rejected_requests, false, shown],
  ['preemptions', section => section.preemption_count, false, shown],
  ['prompt tokens found in the cache', (section, data) => section === data.cluster
    ? data.kv.hit_rate : undefined, true, percent],
];

/** By how many per cent `b` is more than `a`; `undefined` if that cannot be said. */
function change(a, b) {
  return a === undefined || b === undefined || a === 0 ? undefined : 100 * (b / a - 1);
}
function signed(x, unit) {
  const text = Math.abs(x) >= 100 ? shown(Math.round(Math.abs(x))) : Math.abs(x).toFixed(1);
  return `${text === '0.0' ? '' : x > 0 ? '+' : '−'}${text} ${unit}`;
}

function show() {
  const { a, b } = results;
  $('problems').replaceChildren(...['a', 'b'].filter(side => results[side].error)
    .map(side => el('p', {}, `Strategy ${side.toUpperCase()}: ${results[side].error}`)));
  $('results').classList.remove('old');
  $('results').hidden = !(a.data && b.data);
  if ($('results').hidden) return;
  const classes = Object.keys(a.data.classes);
  const menu = $('class');
  const old = menu.value;
  menu.replaceChildren(el('option', { value: '' }, 'all'),
    ...classes.map(name => el('option', { value: name }, name)));
  menu.value = classes.includes(old) ? old : '';
  menu.closest('.row').hidden = classes.length < 2;
  $('headline').textContent = headline(a.data.cluster, b.data.cluster);
  $('warnings').replaceChildren(...warnings());
  showNumbers();
  drawCdf();
  drawCluster();
  showText();
}

function headline(a, b) {
  const words = part => {
    const [before, after] = [a, b].map(section => section[`ttft_${part}_ms`]);
    const share = change(before, after);
    if (share === undefined) return 'never';
    const sooner = Math.abs(share) < 1 ? 'equally soon'
      : `${shown(Math.round(Math.abs(share)))} % ${share < 0 ? 'sooner' : 'later'}`;
    return `${sooner} (${shown(after)} instead of ${shown(before)} ms)`;
  };
  return `With B the first token comes ${words('mean')} on average, and ${words('p99')} at p99.`;
}

/** What each side's reader must know; what holds for both is said once. */
function warnings() {
  const said = new Map();
  for (const side of ['a', 'b']) {
    const { data, warnings, notes } = results[side];
    const { saturation, unservable_requests: unservable } = data.cluster;
    const all = [...warnings, ...notes];
    if (unservable) all.unshift(`${shown(unservable)} requests can never fit the KV memory`);
    if (saturation === 'overloaded') {
      all.unshift('overloaded: requests arrive faster than they are served, so latencies grow '
        + 'with the run; lower the rate, or add instances');
    }
    for (const text of all) said.set(text, [...said.get(text) ?? [], side.toUpperCase()]);
  }
  return [...said].map(([text, sides]) => el('p', {}, `${sides.join(' and ')}: ${text}`));
}

function showNumbers() {
  const of = side => {
    const { data } = results[side];
    return [data.classes[$('class').value] ?? data.cluster, data];
  };
  $('numbers').replaceChildren(...ROWS.map(([name, get, more, show], at) => {
    const [a, b] = [get(...of('a')), get(...of('b'))];
    const points = show === percent && a !== undefined && b !== undefined;
    const by = points ? 100 * (b - a) : change(a, b);
    const tone = by === undefined || Math.abs(by) < 1 ? '' : (by > 0) === more ? 'better' : 'worse';
    const difference = by !== undefined ? signed(by, points ? 'points' : '%')
      : b > a ? `+${show(b)}` : NOTHING;
    return el('tr', { class: at < 9 && at % 3 === 0 || at === 9 ? 'first' : '' },
      ...[name, show(a), show(b)].map(text => el('td', {}, text)),
      el('td', { class: tone }, difference));
  }));
}

// ---- Charts.

function svg(tag, attributes = {}, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** Round numbers from `low` to `high`: some five of them, or decades and what lies between. */
function ticks(low, high, log) {
  const found = [];
  if (log) {
    const wide = Math.log10(high / low) > 3;
    for (let at = 10 ** Math.floor(Math.log10(low)); at <= high; at *= 10) {
      found.push(...(wide ? [1] : [1, 2, 5]).map(part => part * at));
    }
  } else {
    const rough = (high - low) / 5 || 1;
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = decade * [1, 2, 5, 10].find(part => part * decade >= rough);
    for (let at = 0; at <= high * 1.0001; at += step) found.push(at);
  }
  return found.filter(at => at >= low * 0.999 && at <= high * 1.001);
}
const brief = x => x >= 1000 ? `${+(x / 1000).toPrecision(3)}k` : String(+x.toPrecision(3));

/** The value of a line at `x`, between its points. */
function valueAt(points, x) {
  const after = points.findIndex(point => point[0] >= x);
  if (after <= 0) return after === 0 ? points[0][1] : points.at(-1)?.[1] ?? 0;
  const [[x0, y0], [x1, y1]] = [points[after - 1], points[after]];
  return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
}

/** Draws the lines `a` and `b` into `box`; returns what moves the cursor. */
function chart(box, { title, lines, x, y, log = false, height = 170, unit = '', suffix = '' }) {
  const width = Math.max(box.clientWidth, 200);
  const [left, right, top, bottom] = [40, width - 8, 24, height - 22];
  const scaled = at => log ? Math.log(Math.max(at, x[0])) : at;
  const along = at => left + (right - left) * (scaled(at) - scaled(x[0]))
    / (scaled(x[1]) - scaled(x[0]) || 1);
  const up = at => bottom - (bottom - top) * at / (y || 1);
  const about = { role: 'img', 'aria-label': title };
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, ...about });
  picture.append(svg('text', { x: 0, y: 12, class: 'title' }, title));
  for (const at of ticks(0, y, false)) {
    picture.append(svg('line', { class: 'grid', x1: left, x2: right, y1: up(at), y2: up(at) }),
      svg('text', { x: left - 5, y: up(at) + 4, 'text-anchor': 'end' }, brief(at) + suffix));
  }
  const marks = ticks(x[0], x[1], log);
  for (const at of marks) {
    const text = brief(at) + (at === marks.at(-1) ? unit : '');
    picture.append(svg('text', { x: along(at), y: height - 5, 'text-anchor': 'middle' }, text));
  }
  for (const side of ['a', 'b']) {
    const point = ([at, value]) => `${along(at).toFixed(1)} ${up(value).toFixed(1)}`;
    const path = lines[side].map(point);
    picture.append(svg('path', { class: side, d: path.length ? `M${path.join('L')}` : '' }));
  }
  const cursor = svg('line', { class: 'cursor', y1: top, y2: bottom, visibility: 'hidden' });
  const label = svg('text', { x: right, y: 12, 'text-anchor': 'end' });
  picture.append(cursor, label);
  box.replaceChildren(picture);
  const move = at => {
    cursor.setAttribute('visibility', 'visible');
    cursor.setAttribute('x1', along(at));
    cursor.setAttribute('x2', along(at));
    const values = ['a', 'b'].map(side => brief(valueAt(lines[side], at)) + suffix);
    label.textContent = `${brief(at)}${unit}: A ${values[0]}, B ${values[1]}`;
  };
  picture.onpointermove = event => {
    const bounds = picture.getBoundingClientRect();
    const part = ((event.clientX - bounds.left) * width / bounds.width - left) / (right - left);
    const at = scaled(x[0]) + Math.min(Math.max(part, 0), 1) * (scaled(x[1]) - scaled(x[0]));
    move(log ? Math.exp(at) : at);
  };
  return move;
}

function drawCdf() {
  const metric = $('metric').value;
  const of = side => {
    const { curves } = results[side];
    const chosen = (curves.classes ?? {})[$('class').value] ?? curves;
    return (chosen[metric] ?? []).map((ms, percentile) => [ms, percentile]);
  };
  const lines = { a: of('a'), b: of('b') };
  const all = [...lines.a, ...lines.b].map(point => point[0]);
  const [low, high] = [Math.max(Math.min(...all), 0.01), Math.max(...all, 0.02)];
  const log = high / low > 20;
  chart($('cdf'), {
    title: 'Share that took at most this long', lines, x: [log ? low : 0, high], y: 100, log,
    height: 230, unit: ' ms', suffix: '%',
  });
}

// ---- The moving picture: what the instances did, bin by bin.

let moves = [];
let place;
let now = 0;
let end = 1;
let playing = false;

/** Waiting, running and the share of KV blocks of an instance at a time. */
function levels(side, instance, time) {
  const { moments, blocks, bin } = results[side];
  const all = moments[instance] ?? [];
  const at = time / bin;
  const [first, part] = [Math.floor(at), at % 1];
  const value = index => {
    const [from, to] = [all[first]?.[index] ?? 0, all[first + 1]?.[index] ?? 0];
    return from + (to - from) * part;
  };
  return [value(1), value(2), value(3) / blocks];
}

function drawCluster() {
  end = Math.max(...['a', 'b'].map(side => results[side].data.run.simulated_seconds), 0.001);
  for (const side of ['a', 'b']) {
    const { moments } = results[side];
    results[side].bin = moments.find(all => all.length > 1)?.[1][0] ?? end;
  }
  const sums = side => {
    const { moments, bin, data } = results[side];
    const count = Math.max(1, ...moments.map(all => all.length));
    return Array.from({ length: count }, (_, at) => {
      const all = data.instances.map((_, instance) => levels(side, instance, at * bin));
      return [at * bin, ...[0, 1, 2].map(index => all.reduce((sum, one) => sum + one[index], 0))];
    });
  };
  const totals = { a: sums('a'), b: sums('b') };
  const count = results.a.data.instances.length;
  const share = 100 / count;
  moves = [['waiting', 'Waiting', 1], ['running', 'Running', 1], ['blocks', 'KV in use', share]]
    .map(([id, title, scale], index) => {
      const line = side => totals[side].map(point => [point[0], point[index + 1] * scale]);
      const lines = { a: line('a'), b: line('b') };
      const most = id === 'blocks' ? 100
        : Math.max(...[...lines.a, ...lines.b].map(point => point[1]), 1);
      const suffix = id === 'blocks' ? '%' : '';
      return chart($(id), { title, lines, x: [0, end], y: most, unit: ' s', suffix });
    });
  const most = [0, 1].map(index => Math.max(1, ...['a', 'b'].flatMap(side =>
    results[side].moments.flat().map(moment => moment[index + 1]))));
  moves.push(picture('a', most), picture('b', most));
  // It starts where most requests are inside, and stays there in later runs.
  const inside = point => point[1] + point[2];
  const busiest = [...totals.a, ...totals.b].reduce((x, y) => inside(y) > inside(x) ? y : x)[0];
  moveTo(place === undefined ? busiest : place * end);
}

/** Three bars for each instance; returns what moves them to a time. */
function picture(side, most) {
  const box = $(`picture-${side}`);
  const width = Math.max(box.clientWidth, 200);
  const { instances } = results[side].data;
  const tall = instances.length > 12 ? 14 : 18;
  const left = 22;
  const part = (width - left) / 3;
  const height = 20 + instances.length * tall;
  const drawing = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
  const title = svg('text', { x: 0, y: 12, class: `title ${side}` });
  drawing.append(title);
  const bars = instances.map((_, instance) => {
    const y = 20 + instance * tall;
    drawing.append(svg('text', { x: left - 6, y: y + tall - 4, 'text-anchor': 'end' }, instance));
    return ['waiting', 'running', 'kv'].map((name, index) => {
      const place = { x: left + index * part, y, height: tall - 3 };
      const bar = svg('rect', { ...place, class: name, width: 0 });
      const end = { x: place.x + part - 9, y: y + tall - 6, 'text-anchor': 'end', class: 'on' };
      const text = svg('text', end);
      drawing.append(svg('rect', { ...place, class: 'track', width: part - 6 }), bar, text);
      return [bar, text];
    });
  });
  box.replaceChildren(drawing);
  return time => {
    const sums = [0, 0, 0];
    bars.forEach((row, instance) => levels(side, instance, time).forEach((value, index) => {
      sums[index] += value;
      const [bar, text] = row[index];
      const share = Math.min(value / (most[index] ?? 1), 1);
      bar.setAttribute('width', (share * (part - 6)).toFixed(1));
      text.textContent = index === 2 ? `${Math.round(100 * value)} %` : Math.round(value);
    }));
    const kv = Math.round(100 * sums[2] / instances.length);
    title.textContent = `${side.toUpperCase()}: ${Math.round(sums[0])} waiting, `
      + `${Math.round(sums[1])} running, KV ${kv} %`;
    drawing.setAttribute('aria-label', title.textContent);
  };
}

function moveTo(time) {
  now = time;
  place = time / end;
  $('scrub').value = place;
  $('clock').textContent = `${time.toFixed(1)} s`;
  $('scrub').setAttribute('aria-valuetext', $('clock').textContent);
  moves.forEach(move => move(time));
}

function play(on) {
  playing = on;
  $('play').textContent = on ? 'Pause' : 'Play';
  let last;
  const frame = at => {
    if (!playing) return;
    // A run takes twelve seconds to watch, however long it is.
    const time = now + end * Math.min(at - (last ?? at), 100) / 12000;
    last = at;
    moveTo(Math.min(time, end));
    if (time >= end) play(false);
    else requestAnimationFrame(frame);
  };
  if (on) requestAnimationFrame(frame);
}

// ---- The same in a terminal.

const FORMS = {
  command: ['run.sh', command], file: ['scenario.yaml', file],
  output: ['output.json', side => results[side].output],
};
let form = 'command';
function showText() {
  for (const name in FORMS) $(name).setAttribute('aria-pressed', name === form);
  $('text').textContent = FORMS[form][1]($('side').value);
}

/** Copies a text; without the newer interface, which pages of a plain host do not have. */
function copy(button, text) {
  const [label, area] = [button.textContent, el('textarea')];
  area.value = text;
  document.body.append(area);
  area.select();
  button.textContent = document.execCommand('copy') ? 'Copied' : 'Cannot copy';
  area.remove();
  setTimeout(() => { button.textContent = label; }, 1500);
}

function watchResults() {
  $('class').onchange = () => { showNumbers(); drawCdf(); };
  $('metric').onchange = drawCdf;
  $('side').onchange = showText;
  for (const name in FORMS) $(name).onclick = () => { form = name; showText(); };
  $('copy').onclick = () => copy($('copy'), $('text').textContent);
  $('link').onclick = () => copy($('link'), location.href);
  $('save').onclick = () => {
    const href = URL.createObjectURL(new Blob([$('text').textContent]));
    el('a', { href, download: FORMS[form][0] }).click();
  };
  $('play').onclick = () => { if (now >= end) moveTo(0); play(!playing); };
  $('scrub').oninput = () => { play(false); moveTo($('scrub').value * end); };
  let size = innerWidth;
  onresize = () => {
    if (innerWidth === size || $('results').hidden) return;
    size = innerWidth;
    drawCdf();
    drawCluster();
  };
}
