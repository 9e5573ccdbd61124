import { operandsOf, rowWords } from "./row-samples.ts";
import type { ProgramTable, TableRow } from "./table-rows.ts";

/** What is laid out beside the files of the rows: what options and operands could reach, and should not without being named. */
export const sceneSetup = String.raw`
printf '#!/bin/sh\n' > probe.txt
chmod +x probe.txt
printf 'outside\n' > outside.txt
mkdir -p tree/deep tree/.hidden twin/deep
printf 'a\n' > tree/nested.txt
printf 'a\n' > tree/deep/deeper.txt
printf 'a\n' > tree/.hidden/concealed.txt
printf 'b\n' > twin/nested.txt
printf 'b\n' > twin/deep/deeper.txt
ln -s ../outside.txt tree/leads-out
ln -s ../outside.txt twin/leads-out
gzip -c a.txt > packed.txt.gz
bzip2 -c a.txt > packed.txt.bz2 || true
xz -c a.txt > packed.txt.xz || true
zstd -q -c a.txt > packed.txt.zst || true
tar -cf packed.tar a.txt
zip -q packed.zip a.txt || true
printf -- '--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-b 2\n+b 3\n' > change.patch
`;

/** One way to call a program: words before the options, and operands. */
interface Scene {
  readonly before?: string;
  readonly operands: string;
}

const scenes: ReadonlyMap<string, readonly Scene[]> = new Map(
  Object.entries<readonly Scene[]>({
    diff: [{ operands: "tree twin" }, { operands: "a.txt tree" }],
    tr: [{ operands: "probe.txt outside.txt" }],
    cmp: [{ operands: "a.txt b.txt" }],
    comm: [{ operands: "a.txt b.txt" }],
    join: [{ operands: "a.txt b.txt" }],
    uniq: [{ operands: "a.txt" }, { operands: "a.txt new.txt" }],
    xxd: [{ operands: "a.txt" }, { operands: "a.txt new.txt" }],
    touch: [{ operands: "new.txt" }, { operands: "tree/leads-out" }],
    mkdir: [{ operands: "new" }],
    rmdir: [{ operands: "empty" }],
    rm: [{ operands: "b.txt" }, { operands: "tree" }],
    unlink: [{ operands: "b.txt" }],
    shred: [{ operands: "b.txt" }],
    truncate: [{ before: "-s1", operands: "b.txt" }],
    tee: [{ operands: "new.txt" }],
    cp: [
      { operands: "a.txt new.txt" },
      { operands: "a.txt tree" },
      { before: "-r", operands: "tree new" },
      { before: "-t tree", operands: "a.txt" },
    ],
    mv: [{ operands: "b.txt new.txt" }, { operands: "tree new" }, { operands: "b.txt tree" }],
    ln: [{ operands: "b.txt new.txt" }, { operands: "b.txt tree" }],
    install: [
      { operands: "a.txt new.txt" },
      { operands: "a.txt tree" },
      { before: "-d", operands: "new new2" },
    ],
    chmod: [{ operands: "600 b.txt" }, { operands: "700 tree" }],
    chown: [{ operands: "0 b.txt" }, { operands: "0 tree" }],
    chgrp: [{ operands: "0 b.txt" }],
    split: [{ operands: "a.txt" }, { operands: "a.txt new" }],
    csplit: [{ operands: "a.txt 2" }],
    patch: [{ operands: "a.txt change.patch" }],
    gzip: [
      { operands: "a.txt" },
      { before: "-r -f", operands: "tree" },
      { before: "-d", operands: "packed.txt.gz" },
      { operands: "tree" },
    ],
    bzip2: [{ operands: "a.txt" }, { before: "-d", operands: "packed.txt.bz2" }],
    xz: [{ operands: "a.txt" }, { before: "-d", operands: "packed.txt.xz" }],
    zstd: [{ operands: "a.txt" }, { before: "-d", operands: "packed.txt.zst" }],
    zip: [{ operands: "new.zip a.txt" }, { operands: "new.zip tree" }],
    unzip: [{ operands: "packed.zip" }, { before: "-d new", operands: "packed.zip" }],
    less: [{ operands: "a.txt" }],
    more: [{ operands: "a.txt" }],
    rsync: [{ operands: "a.txt new.txt" }, { before: "-r", operands: "tree new" }],
    scp: [{ operands: "a.txt new.txt" }, { before: "-r", operands: "tree new" }],
    tar: [
      { before: "-cf new.tar", operands: "a.txt" },
      { before: "-cf new.tar", operands: "tree" },
      { before: "-xf packed.tar", operands: "" },
      { before: "-tf packed.tar", operands: "" },
    ],
    curl: [{ operands: "http://127.0.0.1:9/" }],
    wget: [{ before: "-t1 -T1", operands: "http://127.0.0.1:9/" }],
  }),
);

/** Ways to write a file into the value of an option. */
const fileForms = ["probe.txt", "@probe.txt"];
const requestForms = [
  ...fileForms,
  "x=@probe.txt",
  "x@probe.txt",
  "x=<probe.txt",
  "x=y;headers=@probe.txt",
  "<probe.txt",
];

function formsOf({ name }: ProgramTable): readonly string[] {
  return /^(?:curl|wget|rsync)$/.test(name) ? requestForms : fileForms;
}

function scenesOf(table: ProgramTable): readonly Scene[] {
  const own = scenes.get(table.name);
  if (own !== undefined || !table.readOnly) return own ?? [];
  const usual = operandsOf(table);
  const folder = usual.length === 0 ? [] : [...usual.slice(0, -1), "tree"];
  return [usual, folder].map((words) => ({ operands: words.join(" ") }));
}

/** Calls of a row in every scene of its program, with a file as its value in every form. */
export function sceneCalls(row: TableRow): readonly (readonly string[])[] {
  const { table, option, name, signs } = row;
  if (table.command[0] === "git") return [];
  const takesValue = /[:?]/.test(signs);
  const calls = scenesOf(table).flatMap(({ before = "", operands }, at) => {
    const values = !takesValue ? [""] : formsOf(table).slice(0, at === 0 ? undefined : 1);
    return values.map((value) => {
      const attached = name.length === 1 ? `${option}${value}` : `${option}=${value}`;
      const valued = signs.includes(":") ? [option, value] : [attached];
      const given = takesValue ? valued : [option];
      return [...table.command, ...split(before), ...given, ...split(operands)];
    });
  });
  return table.readOnly ? [...calls, rowWords(row)] : calls;
}

function split(text: string): readonly string[] {
  return text.split(" ").filter((word) => word !== "");
}
