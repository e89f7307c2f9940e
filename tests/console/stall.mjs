// A proxy in front of a server that passes bytes on, holds them back for good, or cuts connections.
import { connect, createServer } from "node:net";

export async function startProxy(target) {
  const { hostname, port } = new URL(target);
  const pairs = new Set();
  let isHeld = false;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const pair = { near, far, isDead: isHeld, asked: "" };
    pairs.add(pair);
    near.on("data", (bytes) => { pair.asked = bytes.toString("latin1", 0, 200); });
    const pass = (from, to) => {
      from.on("data", (bytes) => { if (!pair.isDead) to.write(bytes); });
      from.on("error", () => {});
      from.on("close", () => { to.destroy(); pairs.delete(pair); });
    };
    pass(near, far);
    pass(far, near);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const cut = () => { for (const { near, far } of pairs) { near.destroy(); far.destroy(); } };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    // Connections stay open, and nothing more comes through those that there are, as if a firewall had forgotten them.
    hold: () => { isHeld = true; for (const pair of pairs) pair.isDead = true; },
    // Only those whose latest request was for this.
    holdAlone: (what) => { for (const pair of pairs) if (what.test(pair.asked)) pair.isDead = true; },
    pass: () => { isHeld = false; }, // new ones
    cut,
    stop: () => { cut(); server.close(); },
  };
}
