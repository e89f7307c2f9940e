// Makes the types of the API from docs/openapi.yaml and checks the sources against them: `node check.mjs [OPENAPI]`.
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const HERE = dirname(fileURLToPath(import.meta.url));
const document = resolve(process.argv[2] ?? join(HERE, "../docs/openapi.yaml"));
const types = astToString(await openapi(pathToFileURL(document)));
const target = join(HERE, "src/api/openapi.d.ts");
if ((await readFile(target, "utf8").catch(() => "")) !== types) await writeFile(target, types);
const { status } = spawnSync(process.execPath, [join(HERE, "node_modules/typescript/bin/tsc"), "-p", join(HERE, "tsconfig.json")], { stdio: "inherit" });
process.exit(status ?? 1);
