// Asks once a second how everything is, and shows it. Elements stay when they are updated, so that whoever is on a button stays there.

const MODES = {
  ok: 'Healthy',
  slow: 'Slow',
  failing: 'Failing',
  hanging: 'Hanging',
  down: 'Down',
};

// What each of their buttons does.
const WILL = {
  ok: (name) => `Make ${name} work normally`,
  slow: (name) => `Make every call of ${name} take two seconds`,
  failing: (name) => `Make every call of ${name} fail`,
  hanging: (name) => `Make ${name} take calls and not answer them`,
  down: (name) => `Kill ${name}; Healthy starts it again`,
};

// What to look for: by service and mode.
const EXPECT = {
  ok: () => 'Working normally.',
  slow: () => 'Every call takes two seconds. Orders take longer, and nothing else changes.',
  failing: (name) => name === 'shipping'
    ? 'The step is attempted a few times. Then the order is cancelled: its parcels are unpacked, its items are released and the payment is refunded.'
    : 'After three failed attempts its circuit breaker opens. Orders wait, and their attempts are not used up. Make it healthy, and all of them continue.',
  hanging: (name) => name === 'shipping'
    ? 'Nobody can tell whether the parcels were shipped, so nothing is undone either. After some attempts the order stops and needs attention.'
    : 'Every call times out after five seconds. What it did in the meantime is not done twice. After three calls its circuit breaker opens.',
  down: (name) => name === 'payment'
    ? 'Not running: its port is closed. After three failed attempts its circuit breaker opens, and orders wait.'
    : 'Not running: nobody asks for its work. Orders wait for it, and their attempts are not used up. After a while there is an alert.',
};
const ABOUT = {
  stock: 'The warehouse: an agent in C, with libintact',
  payment: 'Card payments: an HTTP service that knows nothing about Intact',
  shipping: 'Parcels and mail: an agent in Python',
};
const STATES = { running: 'running', killed: 'killed', stopped: 'stopped', died: 'died' };
const FIGURES = [
  ['pending', 'Waiting'],
  ['processing', 'In progress'],
  ['processed', 'Processed'],
  ['compensating', 'Being cancelled'],
  ['compensated', 'Cancelled'],
  ['error', 'Need attention'],
];
// What the operator can do about an order that has stopped: the button, and what it will do.
const CHOICES = {
  retry: ['Retry the order', () => 'Attempt what has failed again, now.'],
  supply: [(step) => `Mark ${step} as done`, (step) => `Step ${step} did take effect: record the output above, and continue.`],
  resolve: [(step) => `Mark ${step} as not done`, (step) => `Step ${step} did not take effect: the order can be retried, or cancelled.`],
  skip: [(step) => `Skip ${step}`, (step) => `Continue without step ${step}.`],
  undo: ['Cancel the order', () => 'Undo all that was done.'],
  close: ['Close the order', () => 'Leave it as it is. It is not listed here any more.'],
};

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
    tell(answer.ok ? said.done : `That did not work: ${said.error}`);
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
  node.querySelector('.modes').setAttribute('aria-label', `Mode of ${name}`);
  for (const [mode, word] of Object.entries(MODES)) {
    const button = document.createElement('button');
    button.type = 'button';
    button.value = mode;
    button.title = WILL[mode](name);
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
  badge(node.querySelector('.breaker'), breaker ? `circuit breaker ${breaker.state}` : agent ? 'no circuit breaker' : '', kind[breaker?.state] ?? 'plain');
  const words = [];
  if (agent?.waiting) words.push(`${agent.waiting} ${agent.waiting === 1 ? 'order is' : 'orders are'} waiting for it.`);
  if (breaker && breaker.state !== 'closed') {
    const opened = breaker.since ? ` for ${since(Date.parse(breaker.since) / 1000, state.now)}` : '';
    words.push(`Circuit breaker ${breaker.state}${opened}: ${breaker.reason}.`);
  }
  if (agent && !agent.connected) words.push('No agent is connected.');
  text(node.querySelector('.waits'), words.join(' '));
}

// ---- Processes ----

function makeProcess({ name, about }) {
  const node = element('process-template');
  text(node.querySelector('.name'), name);
  text(node.querySelector('.about'), about);
  for (const verb of ['kill', 'start']) {
    const button = node.querySelector(`.${verb}`);
    text(button, `${verb === 'kill' ? 'Kill' : 'Start'} ${name}`);
    button.addEventListener('click', () => act(`${verb}/${name}`));
  }
  return node;
}

function updateProcess(node, process, state) {
  const runs = process.state === 'running';
  badge(node.querySelector('.badge'), runs ? `running, pid ${process.pid}` : `${STATES[process.state]} ${since(process.since, state.now)} ago`, runs ? 'good' : 'bad');
  node.querySelector('.leads').hidden = state.leader !== process.name;
  // Whoever has just killed it goes on to start it: the focus stays at this place.
  const [kill, start] = [node.querySelector('.kill'), node.querySelector('.start')];
  const focused = [kill, start].includes(document.activeElement);
  kill.hidden = !runs;
  start.hidden = runs;
  if (focused) (runs ? kill : start).focus();
}

// ---- Orders in progress ----

function makeWaiting(order) {
  const node = element('waiting-template');
  text(node.querySelector('.name'), order.id);
  return node;
}

function updateWaiting(node, order, state) {
  badge(node.querySelector('.badge'), since(Date.parse(order.submitted_at) / 1000, state.now), 'wait');
  text(node.querySelector('.about'), order.why);
}

// ---- Orders that need attention, and alerts ----

function makeChoice(verb, form) {
  const [name, what] = CHOICES[verb];
  const button = document.createElement('button');
  button.type = 'submit';
  button.value = verb;
  if (verb === 'retry') button.className = 'strong';
  const [term, description] = [document.createElement('dt'), document.createElement('dd')];
  term.append(button);
  const say = () => {
    const step = form.elements.step.value;
    text(button, typeof name === 'string' ? name : name(step));
    text(description, what(step));
  };
  form.elements.step.addEventListener('change', say);
  say();
  return [term, description];
}

function makeError(task) {
  const node = element('error-template');
  const form = node.querySelector('form');
  const { step } = form.elements;
  for (const one of task.steps) step.add(new Option(`${one.name} (${one.state})`, one.name));
  if (task.step) step.value = task.step;
  node.querySelector('.choices').append(...Object.keys(CHOICES).flatMap((verb) => makeChoice(verb, form)));
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
  const form = node.querySelector('form');
  form.querySelector('button').setAttribute('aria-label', `Acknowledge: ${alert.summary}`);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    act(`alerts/${alert.id}/acknowledge`, { reason: form.elements.reason.value });
  });
  return node;
}

function updateAlert(node, alert, state) {
  text(node.querySelector('.name'), alert.summary);
  badge(node.querySelector('.badge'), alert.state, { open: 'bad', acknowledged: 'wait', resolved: 'good' }[alert.state]);
  text(node.querySelector('.about'), `${since(Date.parse(alert.opened_at) / 1000, state.now)} ago. ${alert.story ?? ''}`);
  node.querySelector('form').hidden = alert.state !== 'open';
}

// ---- All of it ----

function makeEntry(entry) {
  const node = document.createElement('li');
  node.dataset.who = entry.who;
  const time = document.createElement('time');
  const moment = new Date(entry.at * 1000);
  time.dateTime = moment.toISOString();
  text(time, moment.toLocaleTimeString('en-GB'));
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

function makeStaff([person, url]) {
  const node = document.createElement('a');
  node.className = 'button';
  node.target = '_blank';
  node.rel = 'noopener';
  node.href = url;
  text(node, `Decide as ${person}`);
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
  show($('waiting'), state.waiting, (one) => one.id, makeWaiting, (node, one) => updateWaiting(node, one, state));
  show($('staff'), Object.entries(state.staff), ([person]) => person, makeStaff, () => {});
  show($('errors'), state.errors, (one) => `${one.id} ${one.step}`, makeError, updateError);
  show($('alerts'), state.alerts.slice(0, 8), (one) => one.id, makeAlert, (node, one) => updateAlert(node, one, state));
  show($('feed'), state.feed.slice(-60).reverse(), (one) => String(one.id), makeEntry, () => {});
  $('no-waiting').hidden = state.waiting.length > 0;
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

$('remind').addEventListener('click', () => act('remind'));
$('kill-leader').addEventListener('click', () => act('kill-leader'));
look();
setInterval(() => document.hidden || look(), 1000);
