// For development: `node dev.mjs OUTDIR URL [PORT]` serves the built console in place of that of the running server at URL. All but
// the pages is forwarded, so one signs in at the server as always.
import { createServer, request as call } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize, resolve } from "node:path";

const KINDS = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
  + "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const [out, server, port = "0"] = process.argv.slice(2);
if (!server) {
  console.error("usage: node dev.mjs OUTDIR URL [PORT]");
  process.exit(2);
}
const { host, origin } = new URL(server);
const folder = resolve(out);

// To the server it is a page of its own that asks.
function forward(from, to) {
  const headers = { ...from.headers, host, ...(from.headers.origin ? { origin } : {}) };
  const sent = call(origin + from.url, { method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    answer.pipe(to);
  });
  sent.on("error", () => (to.headersSent ? to.destroy() : to.writeHead(502).end()));
  to.on("close", () => sent.destroy());
  from.pipe(sent);
}

async function answerFile(path, to) {
  const inside = normalize(join(folder, path));
  const isAsset = path.startsWith("/assets/") && inside.startsWith(folder);
  const content = await readFile(isAsset ? inside : join(folder, "index.html")).catch(() => null);
  if (!content) return to.writeHead(404).end();
  to.writeHead(200, { "Content-Type": KINDS[isAsset ? extname(inside) : ".html"], "Content-Security-Policy": POLICY, "Cache-Control": "no-cache" });
  return to.end(content);
}

const listener = createServer((from, to) => {
  const { pathname } = new URL(from.url, "http://x");
  return pathname.startsWith("/v1/") ? forward(from, to) : answerFile(pathname, to);
});
listener.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}`));
