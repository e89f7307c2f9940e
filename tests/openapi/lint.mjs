// Lints an OpenAPI document with Redocly's rules: lint.mjs FILE. Prints what is wrong; 0 only if
// nothing is, not even a warning. NODE_PATH is not looked at for modules of this kind: the
// library is found from the folder named in LINT_HOME.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.LINT_HOME}/`);
const { createConfig, lint, formatProblems, getTotals } = require('@redocly/openapi-core');
const { version } = require('@redocly/openapi-core/package.json');

const config = await createConfig({
  extends: ['recommended'],
  rules: {
    // Not in the recommended set, and worth having here.
    'no-invalid-media-type-examples': 'error',
    'no-invalid-parameter-examples': 'error',
    'no-invalid-schema-examples': 'error',
    'no-required-schema-properties-undefined': 'error',
    'operation-description': 'error',
    'operation-singular-tag': 'error',
    'operation-tag-defined': 'error',
    'parameter-description': 'error',
    'tags-alphabetical': 'off', // they are in the order in which one needs them
    // The server listens on loopback if nothing else is said, and that is what the example says.
    'no-server-example.com': 'off',
  },
});
let problems;
try {
  problems = await lint({ ref: process.argv[2], config });
} catch (e) {
  console.log(String(e.message)); // it is no YAML, and the rest of `e` is all of the document
  process.exit(1);
}
const totals = getTotals(problems);
formatProblems(problems, { format: 'stylish', totals, version });
console.log(`lint: ${totals.errors} errors, ${totals.warnings} warnings`);
process.exit(totals.errors + totals.warnings + totals.ignored > 0 ? 1 : 0);
