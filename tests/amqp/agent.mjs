// An agent behind a queue, with the npm package rhea. Usage: node agent.mjs PORT QUEUE
import { createRequire } from "node:module";

const rhea = createRequire(process.env.RHEA + "/")("rhea");
const [port, queue] = process.argv.slice(2);
const done = new Map(); // by idempotency key: a real agent keeps it in its database

const connection = rhea.connect({ host: "127.0.0.1", port: Number(port), username: "intact", password: process.env.BROKER_PASSWORD });
const senders = new Map();
const waiting = new Map();
const durable = 2;

function sender(address) {
    if (!senders.has(address)) senders.set(address, connection.open_sender({ target: { address, durable } }));
    return senders.get(address);
}

connection.on("accepted", ({ delivery }) => {
    waiting.get(delivery)?.accept();
    waiting.delete(delivery);
});
connection.open_receiver({ source: { address: `/queue/${queue}`, durable }, autoaccept: false, credit_window: 10 });
connection.on("message", ({ message, delivery }) => {
    const request = JSON.parse(message.body.content);
    if (!done.has(request.idempotency_key)) done.set(request.idempotency_key, { output: { charged: request.input.amount } });
    const reply = { correlation_id: message.correlation_id, body: JSON.stringify(done.get(request.idempotency_key)), durable: true };
    const to = sender(message.reply_to);
    const answer = () => {
        const sent = to.send(reply);
        waiting.set(sent, delivery); // the request is done when the broker has the reply
    };
    if (to.sendable()) answer();
    else to.once("sendable", answer);
});
