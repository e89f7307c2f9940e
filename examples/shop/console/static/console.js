// Asks once a second how everything is, and shows it. Elements stay when they are updated, so that whoever is on a button stays there.

const MODES = {
  ok: 'Well',
  slow: 'Slow',
  failing: 'Failing',
  hanging: 'Hanging',
  down: 'Down',
};

// What to look for: by service and mode.
const EXPECT = {
  ok: () => 'It does what it is asked.',
  slow: () => 'Each call takes two seconds. Orders take longer; that is all.',
  failing: (name) => name === 'shipping'
    ? 'An order tries a few times, then its goods are set free and the money goes back.'
    : 'After three tries that fail its breaker opens. Orders wait, at no cost; nothing is lost. Make it well, and all of them go on.',
  hanging: (name) => name === 'shipping'
    ? 'Nobody knows whether the parcel has left, so nothing is undone either: after some tries the order stops, and a person is called.'
    : 'Each call takes its five seconds, in vain. What it did meanwhile is not done twice. After three calls its breaker opens.',
  down: (name) => name === 'payment'
    ? 'Its port is closed: no call reaches it. After three tries its breaker opens, and orders wait.'
    : 'Nobody calls for its work, so orders wait for it without a try; in a while an alert says so.',
};
const ABOUT = {
  stock: 'Goods: an agent in C, with libintact',
  payment: 'Cards: an HTTP service that knows nothing of Intact',
  shipping: 'Parcels: an agent in Python',
};
const STATES = { running: 'runs', killed: 'killed', stopped: 'stopped', died: 'died' };
const FIGURES = [
  ['pending', 'wait'],
  ['processing', 'in work'],
  ['compensating', 'are undone now'],
  ['compensated', 'undone'],
  ['error', 'need a person'],
];

const $ = (id) => document.getElementById(id);

function element(template) {
  return $(template).content.firstElementChild.cloneNode(true);
}

function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

function badge(node, value, kind) {
  text(node, value);
  node.dataset.kind = kind;
  node.hidden = !value;
}

// One element for each item, by its key: made once, then updated.
function show(list, items, key, make, update) {
  const there = new Map([...list.children].map((node) => [node.dataset.key, node]));
  items.forEach((item, i) => {
    let node = there.get(key(item));
    if (!node) {
      node = make(item);
      node.dataset.key = key(item);
    }
    there.delete(key(item));
    if (list.children[i] !== node) list.insertBefore(node, list.children[i] ?? null);
    update(node, item);
  });
  there.forEach((node) => node.remove());
}

function since(moment, now) {
  const s = Math.max(0, Math.round(now - moment));
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`;
}

let told;
function tell(words) {
  text($('told'), words);
  clearTimeout(told);
  told = setTimeout(() => text($('told'), ''), 6000);
}

async function act(path, body = {}) {
  try {
    const answer = await fetch(`/api/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const said = await answer.json();
    tell(answer.ok ? said.done : `Not done: ${said.error}`);
  } catch {
    tell('The console does not answer.');
  }
  look();
}

// ---- Services ----

function makeService(service) {
  const node = element('service-template');
  const { name } = service;
  text(node.querySelector('h3'), name);
  text(node.querySelector('.about'), ABOUT[name] ?? '');
  node.querySelector('.modes').setAttribute('aria-label', `How ${name} is to be`);
  for (const [mode, word] of Object.entries(MODES)) {
    const button = document.createElement('button');
    button.type = 'button';
    button.value = mode;
    text(button, word);
    button.addEventListener('click', () => act(`mode/${name}`, { mode }));
    node.querySelector('.modes').append(button);
  }
  const restock = node.querySelector('.restock');
  restock.hidden = name !== 'stock';
  restock.addEventListener('submit', (event) => {
    event.preventDefault();
    act(`restock/${restock.elements.sku.value}`, { number: restock.elements.number.valueAsNumber });
  });
  return node;
}

function updateService(node, { name, mode }, state) {
  node.dataset.mode = mode;
  for (const button of node.querySelectorAll('.modes button')) button.setAttribute('aria-pressed', button.value === mode);
  text(node.querySelector('.expect'), EXPECT[mode]?.(name) ?? '');
  const agent = state.agents.find((one) => one.agent === name);
  const breaker = agent?.breaker;
  const kind = { closed: 'good', open: 'bad', 'half-open': 'wait' };
  badge(node.querySelector('.breaker'), breaker ? `breaker ${breaker.state}` : agent ? 'no breaker' : '', kind[breaker?.state] ?? 'plain');
  const words = [];
  if (agent?.waiting) words.push(`${agent.waiting} ${agent.waiting === 1 ? 'order waits' : 'orders wait'} for it.`);
  if (breaker && breaker.state !== 'closed') {
    const opened = breaker.since ? `, since ${since(Date.parse(breaker.since) / 1000, state.now)}` : '';
    words.push(`Breaker ${breaker.state}${opened}: ${breaker.reason}.`);
  }
  if (agent && !agent.connected) words.push('No agent calls for its work.');
  text(node.querySelector('.waits'), words.join(' '));
}

// ---- Processes ----

function makeProcess({ name, about }) {
  const node = element('process-template');
  text(node.querySelector('.name'), name);
  text(node.querySelector('.about'), about);
  for (const verb of ['kill', 'start']) {
    const button = node.querySelector(`.${verb}`);
    button.setAttribute('aria-label', `${verb === 'kill' ? 'Kill' : 'Start'} ${name}`);
    button.addEventListener('click', () => act(`${verb}/${name}`));
  }
  return node;
}

function updateProcess(node, process, state) {
  const runs = process.state === 'running';
  badge(node.querySelector('.badge'), runs ? `runs, pid ${process.pid}` : `${STATES[process.state]} ${since(process.since, state.now)} ago`, runs ? 'good' : 'bad');
  node.querySelector('.leads').hidden = state.leader !== process.name;
  // Whoever has just killed it goes on to start it: the focus stays at this place.
  const [kill, start] = [node.querySelector('.kill'), node.querySelector('.start')];
  const focused = [kill, start].includes(document.activeElement);
  kill.hidden = !runs;
  start.hidden = runs;
  if (focused) (runs ? kill : start).focus();
}

// ---- Orders that need a person, and alerts ----

function makeError(task) {
  const node = element('error-template');
  const form = node.querySelector('form');
  const { step } = form.elements;
  for (const one of task.steps) step.add(new Option(`${one.name} (${one.state})`, one.name));
  if (task.step) step.value = task.step;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const verb = event.submitter?.value ?? 'retry';
    const body = { reason: form.elements.reason.value };
    if (['skip', 'supply', 'resolve'].includes(verb)) body.step = step.value;
    if (verb === 'supply') body.output = form.elements.output.value;
    act(`operator/${verb}/${task.id}`, body);
  });
  return node;
}

function updateError(node, task) {
  text(node.querySelector('h3'), task.id);
  text(node.querySelector('.why'), task.why);
}

function makeAlert(alert) {
  const node = element('alert-template');
  const button = node.querySelector('button');
  button.setAttribute('aria-label', `I know of: ${alert.summary}`);
  button.addEventListener('click', () => act(`alerts/${alert.id}/acknowledge`, { reason: 'seen on the console' }));
  return node;
}

function updateAlert(node, alert, state) {
  text(node.querySelector('.name'), alert.summary);
  badge(node.querySelector('.badge'), alert.state, { open: 'bad', acknowledged: 'wait', resolved: 'good' }[alert.state]);
  text(node.querySelector('.about'), `${since(Date.parse(alert.opened_at) / 1000, state.now)} ago. ${alert.story ?? ''}`);
  node.querySelector('button').hidden = alert.state !== 'open';
}

// ---- All of it ----

function makeEntry(entry) {
  const node = document.createElement('li');
  node.dataset.who = entry.who;
  const time = document.createElement('time');
  const moment = new Date(entry.at * 1000);
  time.dateTime = moment.toISOString();
  text(time, moment.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' }));
  const who = document.createElement('strong');
  text(who, entry.who);
  node.append(time, ' ', who, ' ', entry.text);
  return node;
}

function makeFigure([, words]) {
  const node = document.createElement('div');
  const [name, value] = [document.createElement('dt'), document.createElement('dd')];
  text(name, words);
  node.append(value, name);
  return node;
}

function update(state) {
  $('shop').href = state.shop;
  text($('trouble'), state.trouble ?? '');
  $('trouble').hidden = !state.trouble;
  show($('figures'), FIGURES, ([key]) => key, makeFigure, (node, [key]) => {
    text(node.firstChild, String(state.tasks[key] ?? '–'));
    node.dataset.some = state.tasks[key] > 0;
  });
  show($('services'), state.services, (one) => one.name, makeService, (node, one) => updateService(node, one, state));
  show($('processes'), state.processes, (one) => one.name, makeProcess, (node, one) => updateProcess(node, one, state));
  show($('errors'), state.errors, (one) => `${one.id} ${one.step}`, makeError, updateError);
  show($('alerts'), state.alerts.slice(0, 8), (one) => one.id, makeAlert, (node, one) => updateAlert(node, one, state));
  show($('feed'), state.feed.slice(-60).reverse(), (one) => String(one.id), makeEntry, () => {});
  $('no-errors').hidden = state.errors.length > 0;
  $('no-alerts').hidden = state.alerts.length > 0;
}

let asks = false;
async function look() {
  if (asks) return;
  asks = true;
  try {
    const answer = await fetch('/api/state');
    if (!answer.ok) throw new Error(answer.statusText);
    update(await answer.json());
  } catch {
    text($('trouble'), 'The console does not answer. Is ./run shop still running?');
    $('trouble').hidden = false;
  } finally {
    asks = false;
  }
}

$('kill-leader').addEventListener('click', () => act('kill-leader'));
look();
setInterval(() => document.hidden || look(), 1000);
