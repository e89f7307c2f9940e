// The console behind nginx, configured by the block that docs/console.md has: one signs in, pages are live, changes go
// through, and the cookie is for TLS alone if the browser uses TLS.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { heading, openPage, startBrowser, until } from "./kit.mjs";
import { freePort, startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const NGINX = "/usr/sbin/nginx";
const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

let browser;
let server;
let proxy;

// The block of the page, indented by four, that begins with `location`.
function block() {
  const text = readFileSync(`${ROOT}/docs/console.md`, "utf8");
  const found = /^ {4}location \/ \{\n(?: {4}.*\n)+? {4}\}\n/m.exec(text);
  assert.ok(found, "docs/console.md has a block for nginx");
  return found[0].replaceAll(/^ {4}/gm, "");
}

async function startNginx(folder, upstream) {
  const [http, https] = [freePort(), freePort()];
  mkdirSync(folder, { recursive: true });
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
    "-keyout", `${folder}/key.pem`, "-out", `${folder}/cert.pem`], { stdio: "ignore" });
  const location = block().replace("http://127.0.0.1:7420", upstream);
  assert.ok(location.includes(upstream), "the block passes to the server's address");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n");
  writeFileSync(`${folder}/nginx.conf`, `
daemon off;
pid ${folder}/pid;
error_log ${folder}/error.log;
${process.getuid() === 0 ? "user root;" : ""}
events { worker_connections 256; }
http {
access_log ${folder}/access.log;
${temporary}
server { listen 127.0.0.1:${http}; ${location} }
server { listen 127.0.0.1:${https} ssl; ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem; ${location} }
}
`);
  const nginx = spawn(NGINX, ["-p", folder, "-c", `${folder}/nginx.conf`], { stdio: "inherit" });
  await until(() => fetch(`http://127.0.0.1:${http}/healthz`).then((a) => a.status, () => 0), (status) => status === 200, "nginx");
  const stop = async () => {
    const ended = new Promise((done) => nginx.once("exit", done));
    nginx.kill("SIGTERM");
    await ended;
  };
  return { http: `http://127.0.0.1:${http}`, https: `https://localhost:${https}`, stop };
}

before(async () => {
  browser = await startBrowser();
  server = await startServer(INTACT, WORK, { args: ["--behind-proxy"] });
  await server.call("PUT", "/v1/workflows/rests", { intact: 1, workflow: "rests", steps: [{ name: "send", agent: "nobody", action: "send", undo: "none" }] });
  await server.call("POST", "/v1/tasks", { workflow: "rests", id: "r-1" });
  proxy = await startNginx(`${WORK}/nginx`, server.url);
});

after(async () => {
  await browser?.close();
  await proxy?.stop();
  await server?.stop();
});

for (const [scheme, cookie] of [["http", "intact_session"], ["https", "__Host-intact_session"]]) {
  test(`behind nginx, by ${scheme}`, async (t) => {
    const people = { admin: { token: server.token } };
    const page = await openPage(t, browser, { url: proxy[scheme] }, people, "/tasks", { isSignedIn: false, ignoreHTTPSErrors: true, expected: [/status of 401/] });
    await page.getByLabel("Token").fill(server.token);
    await page.keyboard.press("Enter");
    await heading(page, "Tasks");
    const [found] = await page.context().cookies();
    assert.deepEqual([found.name, found.secure, found.httpOnly], [cookie, scheme === "https", true]);
    await page.getByText("Live", { exact: true }).waitFor();
    await server.call("POST", "/v1/tasks", { workflow: "rests", id: `new-${scheme}` });
    await page.getByRole("button", { name: "1 new task: show" }).waitFor(); // nothing holds events back
    await page.goto(`${proxy[scheme]}/tasks/r-1`);
    await page.getByText("Live", { exact: true }).waitFor();
    const [label, done] = scheme === "http" ? ["Pause", "paused"] : ["Resume", null];
    await page.locator(".page-actions").getByRole("button", { name: "Actions" }).click();
    await page.getByRole("menuitem", { name: new RegExp(`^${label}`) }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("a test");
    await page.getByRole("dialog").getByRole("button", { name: label, exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const { paused_at } = await server.call("GET", "/v1/tasks/r-1");
    assert.equal(paused_at !== null, done === "paused");
    const { entries } = await server.call("GET", "/v1/audit?task=r-1&limit=1");
    assert.equal(entries[0].forwarded_for, "127.0.0.1", "the audit knows from where it came");
  });
}
