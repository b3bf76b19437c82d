// Typesets every example and its derivatives with KaTeX, which has to accept all of it, and writes pages to look at.
//
//     node typeset.mjs path/to/gradix examples target/typeset

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import katex from "katex";

const [gradix, examples, pages] = process.argv.slice(2);
const own = dirname(fileURLToPath(import.meta.url));
const modes = [["derive"], ["derive", "--inline"], ["derive", "--mode", "forward"]];

let failed = 0;
const page = [];
for (const file of readdirSync(examples).filter((name) => name.endsWith(".gx")).sort()) {
  page.push(`<h2>${file}</h2>`);
  for (const [command, ...options] of modes) {
    let latex;
    try {
      latex = execFileSync(gradix, [command, join(examples, file), ...options, "--format", "latex"], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      });
    } catch (error) {
      // What is too large to be written inline is no mistake of the mathematics.
      if (options.includes("--inline") && String(error.stderr).includes("too-large")) continue;
      throw error;
    }
    try {
      page.push(katex.renderToString(latex, { displayMode: true, throwOnError: true, strict: "error", maxExpand: 1_000_000 }));
    } catch (error) {
      failed += 1;
      console.error(`${file} ${options.join(" ")}: ${error.message}\n${latex}`);
    }
  }
}
mkdirSync(pages, { recursive: true });
cpSync(join(own, "node_modules/katex/dist/katex.min.css"), join(pages, "katex.min.css"));
cpSync(join(own, "node_modules/katex/dist/fonts"), join(pages, "fonts"), { recursive: true });
const head = '<!doctype html><meta charset="utf-8"><title>Examples</title><link rel="stylesheet" href="katex.min.css">';
writeFileSync(join(pages, "index.html"), `${head}\n${page.join("\n")}\n`);
console.log(`${page.length} pieces in ${join(pages, "index.html")}, ${failed} that KaTeX refuses`);
process.exit(failed === 0 ? 0 : 1);
