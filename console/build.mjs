// Bundles the console: `node build.mjs OUTDIR` writes OUTDIR/index.html and OUTDIR/assets/NAME-HASH.{js,css,svg,woff2}.
// The page has no inline script or style, so that the server can forbid both.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));

async function copyHashed(file, out) {
  const content = await readFile(join(HERE, file));
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase();
  const [, name, kind] = file.match(/([\w-]+)\.(\w+)$/);
  const asset = `assets/${name}-${hash}.${kind}`;
  await cp(join(HERE, file), join(out, asset));
  return `/${asset}`;
}

export async function bundle(out, { minify = true } = {}) {
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "assets"), { recursive: true });
  const { metafile } = await build({
    absWorkingDir: HERE,
    entryPoints: { console: "src/main.tsx" },
    outdir: join(out, "assets"),
    publicPath: "/assets/",
    bundle: true,
    minify,
    splitting: true,
    format: "esm",
    target: ["chrome110", "firefox115", "safari16.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file", ".svg": "file" },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  const outputs = Object.keys(metafile.outputs).map((path) => ({
    made: metafile.outputs[path],
    address: `/${relative(out, resolve(HERE, path))}`,
  }));
  const entry = outputs.find(({ made }) => made.entryPoint === "src/main.tsx");
  const style = outputs.find(({ address }) => /^\/assets\/console-\w+\.css$/.test(address));
  const chunks = entry.made.imports.filter((i) => i.kind === "import-statement").map((i) => `/${relative(out, resolve(HERE, i.path))}`);
  const fonts = outputs.filter(({ address }) => /inter-latin-.*\.woff2$/.test(address));
  const icon = await copyHashed("src/icon.svg", out);
  const head = [
    `<link rel="icon" type="image/svg+xml" href="${icon}">`,
    `<link rel="stylesheet" href="${style.address}">`,
    ...fonts.map(({ address }) => `<link rel="preload" as="font" type="font/woff2" crossorigin href="${address}">`),
    ...chunks.map((address) => `<link rel="modulepreload" href="${address}">`),
    `<script type="module" src="${entry.address}"></script>`,
  ];
  const page = await readFile(join(HERE, "index.html"), "utf8");
  await writeFile(join(out, "index.html"), page.replace("<!-- assets -->", head.join("\n    ")));
  return { entry: entry.address, style: style.address };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [out] = process.argv.slice(2);
  if (!out) {
    console.error("usage: node build.mjs OUTDIR");
    process.exit(2);
  }
  await bundle(resolve(out));
}
