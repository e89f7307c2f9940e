// The smallest client: JSON there, text back, connections kept.

import { Agent, request } from "node:http";

export function poster(url) {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity, noDelay: true });
    const post = (path, body, type = "application/json", method = "POST") =>
        new Promise((resolve, reject) => {
            const headers = { "content-type": type, accept: "application/json", "content-length": Buffer.byteLength(body) };
            const r = request(url + path, { agent, method, headers }, (response) => {
                const parts = [];
                response.on("data", (part) => parts.push(part));
                response.on("error", reject);
                response.on("end", () => {
                    const text = Buffer.concat(parts).toString();
                    if (response.statusCode < 300) resolve(text);
                    else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 300)}`));
                });
            });
            r.on("error", reject);
            r.end(body);
        });
    post.close = () => agent.destroy();
    return post;
}
