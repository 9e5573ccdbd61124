import type { Diagnostic, Place } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";

export const largestInstructionFile = 256 * 1024;
export const largestInstructions = 1024 * 1024;
export const deepestImport = 4;

/** Where an import is: the file and the place of the `@path` in it. */
export interface ImportSpot extends Place {
  readonly file: string;
}

export function heldBackDiagnostic(target: string, spot: ImportSpot | undefined, file: string): Diagnostic {
  return {
    severity: "warning",
    code: "outside-import",
    message: `${quote(target, 300)} is outside the project; it was held back.`,
    advice:
      "Allow instructions from outside of this project if you trust the file, or copy it into the project.",
    ...(spot ?? { file }),
  };
}

export function deniedImportDiagnostic(
  target: string,
  spot: ImportSpot | undefined,
  file: string,
): Diagnostic {
  return {
    severity: "warning",
    code: "denied-import",
    message: `A rule forbids reading ${quote(target, 300)}; it was left out.`,
    advice: "Remove the import, or change the deny rule; `retinue permissions list` shows where it is.",
    ...(spot ?? { file }),
  };
}

export function foreignOwnerDiagnostic(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "foreign-owner",
    message: "This file lies above the project and belongs to another user of the machine; it was not used.",
    advice: "Delete it, or change its owner to your user if you wrote it.",
    file,
  };
}

export function missingImportDiagnostic(path: string, spot: ImportSpot): Diagnostic {
  return {
    severity: "warning",
    code: "missing-import",
    message: `There is no file ${quote(path, 300)}; the import was left out.`,
    advice: "Write the path relative to this file, or put it in backticks if it is not an import.",
    ...spot,
  };
}

export function circularImportDiagnostic(path: string, spot: ImportSpot): Diagnostic {
  return {
    severity: "note",
    code: "circular-import",
    message: `${quote(path, 300)} leads back to this file; it is read once.`,
    advice: "Remove one of the imports.",
    ...spot,
  };
}

export function tooDeepDiagnostic(path: string, spot: ImportSpot): Diagnostic {
  return {
    severity: "warning",
    code: "import-too-deep",
    message: `${quote(path, 300)} is imported more than ${deepestImport} levels deep; it was left out.`,
    advice: "Import it from a file nearer to CLAUDE.md.",
    ...spot,
  };
}

export function largeFileDiagnostic(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "large-instructions",
    message: `This file has more than ${largestInstructionFile / 1024} KB; only the beginning is used.`,
    advice: "Shorten it: agents read all of it at every start.",
    file,
  };
}

export function totalSizeDiagnostic(file: string): Diagnostic {
  return {
    severity: "warning",
    code: "large-instructions",
    message: `All instruction files together have more than ${largestInstructions / 1024 / 1024} MB; this file was cut and those after it were left out.`,
    advice: "Shorten the files, or skip some with claudeMdExcludes.",
    file,
  };
}

export function unusableFileDiagnostic(file: string, why: string): Diagnostic {
  return {
    severity: "error",
    code: "unreadable-file",
    message: `This instruction file cannot be read (${why}).`,
    advice: "Check that it is a text file and that you may read it.",
    file,
  };
}

export function unclearPathsDiagnostic(file: string, place: Place): Diagnostic {
  return {
    severity: "warning",
    code: "unclear-paths",
    message: "`paths` is not a list of globs; the rule is used everywhere.",
    advice: 'Write `paths: ["src/**/*.ts"]`.',
    file,
    ...place,
  };
}
