'use strict';
const $ = id => document.getElementById(id);
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

// ---- Settings: all of them are in the address, and each is a flag and a field of the scenario.

const DEFAULTS = {
  workload: 'agentic-2048', rate: '10', requests: '8000', seed: '42',
  prompt: '512', output: '128', prefix: '0', instances: '4', kv: '4500', stale: '0',
  'a.strategy': 'round-robin', 'b.strategy': 'llm-d-1.0-precise',
};
const KINDS = { routing: 'Router', scheduler: 'Order', priority: 'Priority', admission: 'Gate' };
for (const side of 'ab') for (const kind in KINDS) DEFAULTS[`${side}.${kind}`] = '';
// Rates to start with: the cluster of the defaults is busy with them, and not overloaded.
const RATES = {
  'orthogonal-slo': 320, 'orthogonal-slo-32': 26, independent: 130, 'multi-turn-4x512': 10,
  'mixed-slo-multi-turn': 28, 'rag-4096': 300, 'agentic-2048': 10, 'saas-150x6000': 4,
  chatbot: 190, summarization: 11, contentgen: 17, multidoc: 1.6, distribution: 50,
};
const CLOCK = `grep -vE '"(wall|cpu)_seconds"'`;

let state = { ...DEFAULTS };
const isOwn = () => state.workload === 'distribution';

/** What a side's run is made of: flag, field of the scenario file and value. */
function parts(side) {
  const own = 'workload.distribution.';
  const at = isOwn() ? own : 'workload.';
  return [
    ['seed', 'seed', state.seed],
    ['num-instances', 'cluster.instances', state.instances],
    ['total-kv-blocks', 'engine.total_kv_blocks', state.kv],
    ['snapshot-refresh-interval', 'signals.snapshot_refresh_interval_us', state.stale * 1000],
    ['strategy', 'strategy', state[`${side}.strategy`]],
    ['routing-policy', 'routing.policy', state[`${side}.routing`]],
    ['scheduler', 'scheduler.policy', state[`${side}.scheduler`]],
    ['priority-policy', 'priority.policy', state[`${side}.priority`]],
    ['admission-policy', 'admission.policy', state[`${side}.admission`]],
    ['workload', isOwn() ? '' : 'workload.preset', state.workload],
    ['rate', `${at}rate`, state.rate],
    ['num-requests', `${at}num_requests`, state.requests],
    ...isOwn() ? [
      ['prompt-tokens', `${own}prompt_tokens.mean`, state.prompt],
      ['output-tokens', `${own}output_tokens.mean`, state.output],
      ['prefix-tokens', `${own}prefix_tokens`, state.prefix],
    ] : [],
  ].map(part => part.map(String)).filter(([, , value]) => value !== '');
}

const isPlain = text => /^[\w.%-]+$/.test(text);

function command(side) {
  const quoted = text => isPlain(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  const flags = parts(side).map(([flag, , value]) => `  --${flag} ${quoted(value)} \\\n`).join('');
  return `blis run \\\n${flags}  --quiet --format json | ${CLOCK}\n`;
}

function file(side) {
  let text = `# blis run scenario.yaml --quiet --format json | ${CLOCK}\n`;
  let above = [];
  for (const [, field, value] of parts(side)) {
    if (!field) continue;
    const path = field.split('.');
    let depth = 0;
    while (depth < path.length - 1 && path[depth] === above[depth]) depth++;
    for (; depth < path.length - 1; depth++) text += `${'  '.repeat(depth)}${path[depth]}:\n`;
    const written = isPlain(value) ? value : JSON.stringify(value);
    text += `${'  '.repeat(depth)}${path[depth]}: ${written}\n`;
    above = path.slice(0, -1);
  }
  return text;
}

function readAddress() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const known = Object.keys(DEFAULTS).filter(key => key in given).map(key => [key, given[key]]);
  state = { ...DEFAULTS, ...Object.fromEntries(known) };
}

// ---- Controls. Each writes its setting, and `sync` shows the settings again.

const syncs = [];
const sync = () => syncs.forEach(one => one());
function set(key, value) {
  state[key] = value;
  sync();
  later(update);
}
let timer;
const later = work => { clearTimeout(timer); timer = setTimeout(work, 80); };

/** A number with a slider: linear, or with equal steps for equal factors. */
function slider(box, key, label, low, high, { log, unit = '', help, only = () => true } = {}) {
  const number = el('input', { type: 'text', inputmode: 'decimal', class: 'number', name: key });
  const steps = log ? 200 : (high - low);
  const range = el('input', { type: 'range', min: 0, max: steps, 'aria-label': label });
  const value = at => log
    ? Number((low * (high / low) ** (at / steps)).toPrecision(low < 1 ? 3 : 2)) : low + Number(at);
  const place = x => log ? steps * Math.log(x / low) / Math.log(high / low) : x - low;
  const percent = () => key === 'rate' && state[key].endsWith('%');
  range.oninput = () => set(key, percent() ? `${range.value}%` : String(value(range.value)));
  number.onchange = () => set(key, number.value.trim() + (percent() ? '%' : ''));
  const units = key === 'rate'
    ? el('select', { class: 'unit', 'aria-label': 'Unit of the rate' },
      el('option', { value: '' }, 'per second'), el('option', { value: '%' }, '% of saturation'))
    : el('span', {}, unit);
  units.onchange = () => set(key, units.value ? '80%' : String(RATES[state.workload]));
  const line = el('label', { class: 'field' },
    el('span', {}, el('span', {}, label), el('span', {}, number, ' ', units)), range,
    ...help ? [el('small', {}, help)] : []);
  box.append(line);
  syncs.push(() => {
    line.hidden = !only();
    number.value = state[key].replace('%', '');
    range.max = percent() ? 150 : steps;
    range.value = percent() ? parseFloat(state[key]) : place(Number(state[key]));
    if (key === 'rate') units.value = percent() ? '%' : '';
  });
}

/** A menu whose choice may have parameters, `name[parameter=value]`. */
function menu(box, key, label, choices, none) {
  const select = el('select', { name: key });
  if (none) select.append(el('option', { value: '' }, none));
  for (const { name } of choices) select.append(el('option', { value: name }, name));
  const help = el('small');
  const given = el('input', { type: 'text', 'aria-label': `Parameters of ${label}` });
  box.append(el('label', { class: 'field choice' }, label, select, help), given);
  const split = () => state[key].match(/^([^[]*)\[?(.*?)\]?$/);
  select.onchange = () => {
    if (key === 'workload' && !state.rate.endsWith('%')) state.rate = String(RATES[select.value]);
    set(key, select.value);
  };
  given.onchange = () => {
    const parameters = given.value.trim();
    set(key, split()[1] + (parameters ? `[${parameters}]` : ''));
  };
  syncs.push(() => {
    const [, name, parameters] = split();
    const chosen = choices.find(choice => choice.name === name);
    if (name && !chosen) select.append(el('option', { value: name }, name));
    select.value = name;
    help.textContent = chosen?.help ?? '';
    const all = chosen?.params ?? [];
    given.hidden = all.length === 0;
    given.value = parameters;
    given.placeholder = given.title = all.map(one => `${one.name}=${one.default}`).join(',');
  });
}

function controls(lists) {
  const own = { name: 'distribution', help: 'Your own lengths, arrivals at equal intervals' };
  menu($('traffic'), 'workload', 'Workload', [...lists.workloads, own]);
  for (const [key, label, low, high] of [['prompt', 'Prompt', 16, 6000],
    ['output', 'Output', 16, 4000], ['prefix', 'Shared prefix', 0, 6000]]) {
    slider($('traffic'), key, label, low, high, { unit: 'tokens', only: isOwn });
  }
  slider($('traffic'), 'rate', 'Rate', 0.1, 1000,
    { log: true, help: 'Requests; conversations where the workload has them' });
  slider($('traffic'), 'requests', 'Requests', 100, 100000, { log: true });
  slider($('traffic'), 'seed', 'Seed', 1, 100);
  slider($('cluster'), 'instances', 'Instances', 1, 32);
  slider($('cluster'), 'kv', 'KV memory', 500, 100000,
    { log: true, unit: 'blocks', help: 'Of 16 tokens, each instance' });
  slider($('cluster'), 'stale', "Router's view", 0, 5000,
    { unit: 'ms', help: 'How old it may get before it is refreshed' });
  for (const side of 'ab') {
    menu($(side), `${side}.strategy`, 'Strategy', lists.strategies, 'none: choose below');
    for (const [key, label] of Object.entries(KINDS)) {
      const kind = lists.policies.find(kind => kind.yaml_key === key);
      // Combinations need members, which a menu cannot name.
      const single = kind.policies.filter(policy => !policy.name.endsWith('-of'));
      menu($(side), `${side}.${key}`, label, single, "the strategy's");
    }
  }
}

// ---- Running: one worker for each side.

const work = () => {
  let ready;
  onmessage = async ({ data: { module, question } }) => {
    if (module) {
      let told = 0;
      const progress = closed => {
        if (performance.now() < told + 50) return;
        told = performance.now();
        postMessage({ closed: Number(closed) });
      };
      ready = WebAssembly.instantiate(module, { page: { progress } });
      return;
    }
    const { exports } = await ready;
    const bytes = new TextEncoder().encode(JSON.stringify(question));
    const at = exports.question(bytes.length);
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    try {
      const length = exports.ask();
      const answer = new Uint8Array(exports.memory.buffer, exports.answered(), length);
      postMessage({ answer: new TextDecoder().decode(answer) });
    } catch (error) {
      const answer = JSON.stringify({ error: `the simulator stopped: ${error}` });
      postMessage({ answer, dead: true });
    }
  };
};

const WORKER = URL.createObjectURL(new Blob([`(${work})()`], { type: 'text/javascript' }));

class Runner {
  constructor(module) {
    this.module = module;
    this.start();
  }
  start() {
    this.busy = false;
    this.worker = new Worker(WORKER);
    this.worker.postMessage({ module: this.module });
  }
  /** Drops what it was asked before: a worker does not listen while it computes. */
  stop() {
    if (!this.busy) return;
    this.worker.terminate();
    this.start();
  }
  ask(question, progress = () => {}) {
    this.busy = true;
    return new Promise(resolve => {
      this.worker.onmessage = ({ data }) => {
        if (data.closed !== undefined) return progress(data.closed);
        if (data.dead) this.stop();
        this.busy = false;
        resolve(JSON.parse(data.answer));
      };
      this.worker.postMessage({ question });
    });
  }
}

let runners;
let turns = 0;
let known = {};
let results = {};

function tell(text, share) {
  $('status').textContent = text;
  $('progress').classList.toggle('done', share === null);
  if (share === undefined) $('progress').removeAttribute('value');
  else $('progress').value = share ?? 1;
}

async function update() {
  const turn = ++turns;
  runners.forEach(runner => runner.stop());
  history.replaceState(null, '', `#${new URLSearchParams(state)}`);
  $('results').classList.add('old');
  document.body.dataset.state = 'busy';
  if (state.rate.endsWith('%')) {
    tell('Measuring how much this cluster can serve …');
    const settled = await runners[0].ask({ ask: 'settle', scenario: file('a'), known });
    Object.assign(known, settled.known);
  }
  const started = performance.now();
  const closed = [0, 0];
  const run = (side, index) => {
    const progress = count => {
      closed[index] = count;
      tell('Simulating …', (closed[0] + closed[1]) / 2 / Number(state.requests));
    };
    return runners[index].ask({ ask: 'run', scenario: file(side), known }, progress);
  };
  tell('Simulating …', 0);
  const [a, b] = await Promise.all(['a', 'b'].map(run));
  if (turn !== turns) return;
  const seconds = (performance.now() - started) / 1000;
  for (const answer of [a, b]) if (answer.output) answer.data = JSON.parse(answer.output);
  results = { a, b };
  tell(a.data && b.data ? summary(seconds) : 'This cannot be simulated:', null);
  show();
  document.body.dataset.seconds = seconds;
  document.body.dataset.state = 'done';
}

function summary(seconds) {
  const all = results.a.data.cluster.injected_requests + results.b.data.cluster.injected_requests;
  const saturation = results.a.data.run.saturation_per_sec;
  const share = saturation ? `; the cluster saturates at ${saturation} a second` : '';
  return `${shown(all)} requests simulated in ${seconds.toFixed(2)} s${share}`;
}

async function begin() {
  readAddress();
  const packed = Uint8Array.from(atob($('wasm').textContent.trim()), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
  runners = [new Runner(module), new Runner(module)];
  controls(await runners[0].ask({ ask: 'lists' }));
  sync();
  if (matchMedia('(max-width: 860px)').matches) $('settings').open = false;
  $('swap').onclick = () => {
    const other = key => key.replace(/^[ab]\./, side => side === 'a.' ? 'b.' : 'a.');
    state = Object.fromEntries(Object.keys(state).map(key => [key, state[other(key)]]));
    sync();
    update();
  };
  $('reset').onclick = () => { state = { ...DEFAULTS }; sync(); update(); };
  onhashchange = () => { readAddress(); sync(); update(); };
  $('settings').closest('form').onsubmit = event => event.preventDefault();
  watchResults();
  await update();
}
begin().catch(error => tell(`The playground cannot start in this browser: ${error}`, null));
