/* The first page of the console: signs in by the code in the address, and says for whom. */

interface Session {
  name: string;
  roles: string[];
}

async function session(): Promise<Session | undefined> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  const headers = { "Content-Type": "application/json", "Intact-Console": "1" };

  if (code !== null) {
    history.replaceState(null, "", "/");
    await fetch("/v1/session", { method: "POST", headers, body: JSON.stringify({ code }) });
  }
  const answer = await fetch("/v1/session");
  return answer.ok ? ((await answer.json()) as Session) : undefined;
}

const main = document.querySelector("main");
const who = await session();
if (main !== null)
  main.textContent = who === undefined ? "Not signed in: run intact console" : `Signed in as ${who.name}: ${who.roles.join(", ")}`;
export {};
