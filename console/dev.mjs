// Serves the built console before a running server, signed in with one token: `node dev.mjs OUTDIR URL [PORT]`, the token
// in INTACT_TOKEN. /v1 is forwarded. What older servers lack (sessions, the last hour) is played here, for development.
import { createServer, request as call } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const KINDS = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2" };
export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
  + "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const STEP_MS = 10_000;

async function bodyOf(request) {
  let text = "";
  for await (const part of request) text += part;
  return text;
}

// The ring of the last hour, from the counters of /v1/stats.
function ring(server, token) {
  const series = [];
  let last;
  const look = async () => {
    const answer = await fetch(`${server}/v1/stats`, { headers: { Authorization: `Bearer ${token}` } }).catch(() => null);
    const { counters } = answer?.ok ? await answer.json() : {};
    if (!counters) return;
    const names = ["submitted", "processed", "compensated", "error"];
    if (last) series.push({ at: new Date().toISOString(), ...Object.fromEntries(names.map((n) => [n, counters[n] - last[n]])), p50_ms: null, p99_ms: null });
    last = counters;
    if (series.length > 360) series.shift();
  };
  const timer = setInterval(look, STEP_MS);
  timer.unref();
  look();
  return () => ({ at: new Date().toISOString(), window: "1h", resolution: "10s", series });
}

// `people`: who may sign in, by token; `code`: signs in as the first of them, once.
export function serve(out, server, token, { port = 0, people = { [token]: { name: "admin", roles: ["admin"] } }, isSignedIn = true, code = null } = {}) {
  const overview = ring(server, token);
  let signedIn = isSignedIn ? token : null;
  const forward = (from, to) => {
    const headers = { ...from.headers, host: new URL(server).host, authorization: `Bearer ${signedIn}` };
    for (const told of ["origin", "referer", "cookie", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"]) delete headers[told];
    const sent = call(server + from.url, { method: from.method, headers }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
    });
    sent.on("error", () => (to.headersSent ? to.destroy() : to.writeHead(502).end()));
    to.on("close", () => sent.destroy());
    from.pipe(sent);
  };
  const json = (to, status, body) => to.writeHead(status, { "Content-Type": "application/json" }).end(body ? JSON.stringify(body) : "");
  const refused = (to) => to.writeHead(401, { "Content-Type": "application/problem+json" }).end(JSON.stringify({
    type: "urn:intact:problem:unauthenticated", title: "Unauthorized", status: 401, detail: "the token is missing, unknown or expired",
  }));
  const tokenOf = (given) => {
    const isGood = code !== null && given === code;
    if (isGood) code = null;
    return isGood ? token : undefined;
  };
  const session = async (from, to) => {
    if (from.method === "DELETE") signedIn = null;
    if (from.method === "POST") {
      const given = from.headers.authorization?.replace(/^Bearer /, "") ?? tokenOf(JSON.parse(await bodyOf(from)).code);
      if (!people[given]) return refused(to);
      signedIn = given;
    }
    if (from.method === "DELETE") return json(to, 204);
    if (!signedIn) return refused(to);
    const { name, roles, groups = [] } = people[signedIn];
    return json(to, from.method === "POST" ? 201 : 200, { name, person: name, groups, roles, expires_at: new Date(Date.now() + 12 * 3600_000).toISOString() });
  };
  const file = async (path, to) => {
    const inside = normalize(join(out, path));
    const isAsset = path.startsWith("/assets/") && inside.startsWith(out);
    const content = await readFile(isAsset ? inside : join(out, "index.html")).catch(() => null);
    if (!content) return to.writeHead(404).end();
    to.writeHead(200, { "Content-Type": KINDS[isAsset ? extname(inside) : ".html"], "Content-Security-Policy": POLICY, "Cache-Control": "no-cache" });
    to.end(content);
  };
  const listener = createServer((from, to) => {
    const { pathname } = new URL(from.url, "http://x");
    if (from.method !== "GET" && pathname.startsWith("/v1/") && from.headers["intact-console"] !== "1")
      return json(to, 403, { type: "urn:intact:problem:foreign", title: "Forbidden", status: 403, detail: "the header Intact-Console is missing" });
    if (pathname === "/v1/session") return session(from, to);
    if (pathname === "/v1/overview") return signedIn ? json(to, 200, overview()) : refused(to);
    if (pathname.startsWith("/v1/")) return signedIn ? forward(from, to) : refused(to);
    return file(pathname, to);
  });
  return new Promise((done) => listener.listen(port, "127.0.0.1", () => done({
    url: `http://127.0.0.1:${listener.address().port}`,
    stop: () => { listener.closeAllConnections(); listener.close(); },
  })));
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [out, server, port = "0"] = process.argv.slice(2);
  if (!server || !process.env.INTACT_TOKEN) {
    console.error("usage: INTACT_TOKEN=... node dev.mjs OUTDIR URL [PORT]");
    process.exit(2);
  }
  console.log((await serve(resolve(out), server, process.env.INTACT_TOKEN, { port: Number(port) })).url);
}
