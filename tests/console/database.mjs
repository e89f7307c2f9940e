// A PostgreSQL server of its own in a folder, for nodes of one installation.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, openSync, readdirSync } from "node:fs";
import { dirname } from "node:path";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function programs() {
  const [newest] = readdirSync("/usr/lib/postgresql").sort((a, b) => Number(b) - Number(a));
  return `/usr/lib/postgresql/${newest}/bin`;
}

// PostgreSQL does not run as root: then it runs as the user that its package made.
const isRoot = process.getuid() === 0;
const AS = isRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"] : [];

export async function startDatabase(folder) {
  const bin = programs();
  mkdirSync(folder, { recursive: true });
  if (isRoot) {
    const id = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "ascii" }));
    chownSync(folder, id("-u"), id("-g"));
    for (let up = dirname(folder); up !== "/tmp" && up !== "/"; up = dirname(up)) chmodSync(up, 0o711); // its user has to get through
  }
  const run = (words, options) => execFileSync(words[0], words.slice(1), { cwd: folder, stdio: "pipe", ...options });
  run([...AS, `${bin}/initdb`, "-D", `${folder}/data`, "-U", "intact", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]);
  const log = openSync(`${folder}/log`, "a");
  const words = [...AS, `${bin}/postgres`, "-D", `${folder}/data`, "-k", folder, "-c", "listen_addresses=", "-c", "dynamic_shared_memory_type=mmap"];
  const server = spawn(words[0], words.slice(1), { cwd: folder, stdio: ["ignore", log, log] });
  const psql = (statement) => run(["psql", "-h", folder, "-U", "intact", "-d", "postgres", "-AtqX", "-c", statement], { encoding: "utf8" }).trim();
  for (let n = 0; ; n += 1) {
    try {
      psql("SELECT 1");
      break;
    } catch (cause) {
      if (n === 1200 || server.exitCode !== null) throw cause;
      await sleep(100);
    }
  }
  const stop = async () => {
    const ended = new Promise((done) => server.once("exit", done));
    server.kill("SIGQUIT"); // a killed one leaves shared memory behind
    await ended;
  };
  return { store: `host=${folder} user=intact dbname=postgres`, sql: psql, stop };
}
