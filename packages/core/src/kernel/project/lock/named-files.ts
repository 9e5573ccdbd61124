// @io
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { isWithin } from "@retinue/config/plugins/plugin.ts";

export interface NamedFilesPlace {
  /** Folders from which a word of a command may be meant: where it starts, the project, the plugin. */
  readonly bases: readonly string[];
  /** What is outside these folders is not counted. */
  readonly roots: readonly string[];
}

/**
 * The files of the project or the plugin that a command names: a script that it starts is as much of it as its own words. A file
 * too many does no harm and a missing one does, so a word counts in every way in which it may be meant: below a folder that another
 * word names, behind a variable, after `=`, and inside a quoted command.
 */
export function namedFiles(command: string, { bases, roots }: NamedFilesPlace): readonly string[] {
  const words = [...new Set(wordsOf(command))].slice(0, maxWords);
  const pathsOf = (word: string, folders: readonly string[]): readonly string[] => [
    ...(isAbsolute(word) ? [word] : []),
    ...folders.map((folder) => resolve(folder, word.replace(/^\/+/, ""))),
  ];
  const folders = words.flatMap((word) => pathsOf(word, bases).filter((path) => kindOf(path) === "folder"));
  const within = roots.flatMap((root) => realPathOf(root) ?? []);
  const every = [...new Set([...bases, ...folders])].slice(0, maxFolders);
  return words.flatMap((word) =>
    [...new Set(pathsOf(word, every))].filter((path) => {
      const real = kindOf(path) === "file" ? realPathOf(path) : undefined;
      if (real === undefined) return false;
      // A link that leads out is a part of the project as well: what it was may have been another file.
      return within.some((root) => isWithin(root, real)) || roots.some((root) => isWithin(root, path));
    }),
  );
}

/** More words than a command has in practice. */
const maxWords = 400;
const maxFolders = 40;

/** Quotes join what is beside them, as in a shell: `"$CLAUDE_PROJECT_DIR"/guard.sh` is one word. */
const shellWord = /(?:"(?:\\[\s\S]|[^"\\])*"|'[^']*'|\\[\s\S]|[^\s;|&<>()"'`\\])+/g;
const variable = /\$\{[^}]*\}|\$\w+/g;

function wordsOf(command: string, depth = 0): readonly string[] {
  return (command.match(shellWord) ?? []).flatMap((written) => {
    const word = written.replace(/\\([\s\S])/g, "$1").replace(/["']/g, "");
    const forms = [word, written.replace(/["']/g, "")].flatMap((form) => [
      form,
      ...form.split(/[=,:@]/),
      form.replace(/^-\w/, ""),
    ]);
    const plain = forms.map((form) => form.replace(variable, "")).filter((form) => !/^[/.]*$|\0/.test(form));
    // A command in quotes, as for `bash -c`.
    const inner = depth < 3 && /[\s;|&<>()]/.test(word) ? wordsOf(word, depth + 1) : [];
    return [...plain, ...inner];
  });
}

function kindOf(path: string): "file" | "folder" | "none" {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.isFile() === true) return "file";
    return found?.isDirectory() === true ? "folder" : "none";
  } catch {
    return "none";
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
