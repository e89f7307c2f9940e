// A client that submits a task for each line of standard input, its id, and prints what became of it as JSON. A line
// "signal TASK NAME KEY DATA" sends a signal.
import { createInterface } from "node:readline";
import { Client, IntactError } from "intact-client";

const client = new Client({ timeoutMs: 20_000 });
for await (const line of createInterface({ input: process.stdin })) {
  let told;
  try {
    const [, task, name, key, data] = /^signal (\S+) (\S+) (\S+) (.*)$/.exec(line) ?? [];
    if (task) {
      told = await client.signal(task, name, JSON.parse(data), key);
    } else {
      const { id } = await client.submit("w", { id: line.trim(), input: {} });
      told = { id, installation: client.installation };
    }
  } catch (e) {
    if (!(e instanceof IntactError)) throw e;
    told = { error: e.name, message: e.message };
  }
  console.log(JSON.stringify(told));
}
client.close();
