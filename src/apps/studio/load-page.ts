import { readFileSync } from "node:fs";
import { RetinueError } from "../../foundation/retinue-error.ts";

/** The built page, as it is served and as it is put into an export. */
export interface PageFiles {
  readonly script: string;
  readonly style: string;
}

/** Beside the built command, or in `dist/` seen from the source. */
export function loadPage(): PageFiles {
  for (const folder of ["../studio/", "../../../dist/studio/"]) {
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
