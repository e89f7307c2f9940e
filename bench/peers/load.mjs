// What all peers are given to do, and how it is measured: so many tasks, so many of them in flight at any time.

const said = "three hundred bytes of payload are what figures are quoted with unless something else is said, so here they are: ";

// The same bytes as those of bench/load.c and bench/agent.c.
export const input = {
    sku: "widget",
    quantity: 1,
    text:
        said +
        "an order, its customer, a card, an address, whatever a shop is likely to send along when somebody has pressed the button at last and waits",
};
export const output = {
    id: "0123456789abcdef",
    text:
        said +
        "a receipt, a parcel's number, an address, whatever a service is likely to answer with when it was asked to do something and did so without much ado",
    n: 12345,
};

// A step of a worker in JavaScript. `hands` is for who calls the worker: they can be held, so that all tasks wait for their first step, and
// they count what was done.
let done = 0;
let gate;
let letGo;
export const hands = {
    hold: () => void (gate = new Promise((resolve) => (letGo = resolve))),
    release: () => letGo(),
    steps: () => done,
};
export async function step() {
    if (gate) await gate;
    done++;
    return output;
}

// Does `one(i)` for so many i; it returns when the task has ended, durably. A closed loop: who waits longer asks less often. So its rate says
// what the peer can do with so many in flight, and its percentiles are worth something with one in flight alone.
export async function closedLoop(tasks, inFlight, one) {
    const ms = new Float64Array(tasks);
    let next = 0;
    const lane = async () => {
        while (next < tasks) {
            const i = next++;
            const start = performance.now();
            await one(i);
            ms[i] = performance.now() - start;
        }
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: Math.min(inFlight, tasks) }, lane));
    const seconds = (performance.now() - start) / 1000;
    ms.sort();
    return { seconds, p50_ms: ms[Math.floor(tasks / 2)], p99_ms: ms[Math.floor((tasks * 99) / 100)] };
}
