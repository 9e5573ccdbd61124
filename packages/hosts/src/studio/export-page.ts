import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ExportedSession } from "@retinue/core/kernel/live/session-update.ts";

/** The built page, as it is served and as it is put into an export. */
export interface PageFiles {
  readonly script: string;
  readonly style: string;
}

/** Beside the built command, or in `dist/` seen from the source. */
export function loadPage(): PageFiles {
  for (const folder of ["../studio/", "../../../../dist/studio/"]) {
    try {
      const read = (name: string): string =>
        readFileSync(new URL(`${folder}${name}`, import.meta.url), "utf8");
      return { script: read("page.js"), style: read("page.css") };
    } catch {
      // The other place has it.
    }
  }
  throw new RetinueError("page-missing", "The page of the studio is not in this installation.", {
    advice: "Install the package again; in the repository, run `npm run build`.",
  });
}

/** What would hide or reorder the text around it. */
const hidden = /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** JSON for the page, in an event or in an element: no text in it can hide, reorder or end anything. */
export function pageJson(value: unknown): string {
  return JSON.stringify(value).replace(hidden, "\ufffd").replaceAll("<", "\\u003c");
}

/** The page of the studio with a session inside: one file that needs no network, and in which only its own script runs. */
export function exportPage(data: ExportedSession, { script, style }: PageFiles): string {
  const policy = [
    "default-src 'none'",
    `script-src '${digest(script)}'`,
    `style-src '${digest(style)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return [
    "<!DOCTYPE html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    "<title>Retinue session</title>",
    `<style>${style}</style>`,
    "</head>",
    '<body><div id="app"><p>This page needs its script: allow scripts for it, and open it again.</p></div>',
    `<script type="application/json" id="data">${pageJson(data)}</script>`,
    `<script>${script}</script>`,
    "</body>",
    "</html>",
    "",
  ].join("\n");
}

function digest(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
