// Builds a component with StarlingMonkey that has no imports.
// Usage: node build.mjs PROJECT OUTPUT, with this file in the folder with node_modules.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { componentize } from "@bytecodealliance/componentize-js";

const [project, output] = process.argv.slice(2);
const { component } = await componentize(await readFile(join(project, "plugin.js"), "utf-8"), {
  witPath: join(project, "wit"),
  worldName: "without-randomness",
  disableFeatures: ["clocks", "fetch-event", "http", "random", "stdio"],
});
await writeFile(output, component);
