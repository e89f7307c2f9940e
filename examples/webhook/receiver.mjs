// A receiver of webhooks with the packages standardwebhooks and cloudevents. See docs/webhooks.md.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";
import { HTTP } from "cloudevents";

const webhook = new Webhook(readFileSync("shop-secret", "utf8").trim());

createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts).toString();
    try {
        webhook.verify(body, request.headers); // throws
        const event = HTTP.toEvent({ headers: request.headers, body });
        for (const one of [event].flat()) console.log(one.id, one.type, one.subject);
        response.writeHead(204).end();
    } catch (error) {
        response.writeHead(401).end(String(error));
    }
}).listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening"));
