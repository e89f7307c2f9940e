// Bundles the console. Usage: node build.mjs OUTDIR
// Writes OUTDIR/index.html and OUTDIR/assets/NAME-HASH.EXTENSION, after `npm ci --ignore-scripts` beside this file.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (out === undefined) throw new Error("usage: node build.mjs OUTDIR");
rmSync(join(out, "assets"), { recursive: true, force: true });
mkdirSync(join(out, "assets"), { recursive: true });
const result = await build({
  absWorkingDir: here,
  entryPoints: { main: "src/main.ts", style: "src/main.css" },
  outdir: join(out, "assets"),
  entryNames: "[name]-[hash]",
  bundle: true,
  format: "esm",
  splitting: true,
  minify: true,
  target: "es2022",
  metafile: true,
  logLevel: "warning",
});
const named = (source) =>
  basename(Object.entries(result.metafile.outputs).find(([, made]) => made.entryPoint === source)[0]);
const page = readFileSync(join(here, "index.html"), "utf8")
  .replace("@main@", `/assets/${named("src/main.ts")}`)
  .replace("@style@", `/assets/${named("src/main.css")}`);
writeFileSync(join(out, "index.html"), page);
