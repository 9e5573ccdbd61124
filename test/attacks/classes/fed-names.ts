import { type AttackClass, type AttackRow, family } from "../attack.ts";

/** A file whose path reads as two words: the second is the secret outside, `.env`, or an option that writes. */
const outside = 'mkdir -p "{{D}}/s/x {{W}}/other"; echo x > "{{D}}/s/x {{W}}/other/secret.txt"';
const denied = 'mkdir -p {{D}}/s; echo x > "{{D}}/s/x .env"';
const option =
  'mkdir -p "{{D}}/s/x -oout"; cp words.txt {{D}}/s/x; cp words.txt "{{D}}/s/x -oout/$(basename {{D}})"';

const ways: readonly (readonly [id: string, command: string, title: string])[] = [
  ["find", "find {{D}}/s -type f | xargs cat", "find and xargs"],
  ["find-place", "find {{D}}/s -type f | xargs -n1 cat", "find and xargs, one by one"],
  ["find-head", "find {{D}}/s -name '*' -type f | xargs head -n 3", "find and xargs with head"],
  ["find-grep", "find {{D}}/s -type f | xargs grep .", "find and xargs with grep"],
  ["grep-list", "grep -rl . {{D}}/s | xargs cat", "grep and xargs"],
  ["rg-list", "rg --files -uu {{D}}/s | xargs cat", "rg and xargs"],
  ["substitution", "cat $(find {{D}}/s -type f)", "a substitution"],
  ["backquotes", "cat `find {{D}}/s -type f`", "backquotes"],
  ["for", "for f in $(find {{D}}/s -type f); do cat $f; done", "a loop over a substitution"],
  [
    "for-quoted",
    'for f in $(find {{D}}/s -type f); do cat "$f"; done',
    "a loop with quotes that come too late",
  ],
  ["while", "find {{D}}/s -type f | while read f; do cat $f; done", "a loop that reads"],
  [
    "while-process",
    "while read -r f; do cat $f; done < <(find {{D}}/s -type f)",
    "a loop that reads a process",
  ],
  ["variable", "f=$(find {{D}}/s -type f); cat $f", "a variable"],
  ["glob", "for f in {{D}}/s/*; do cat $f; done", "a loop over a pattern, without quotes"],
  ["glob-deep", "for f in {{D}}/s/*/*; do cat $f; done", "a loop over a deeper pattern"],
  [
    "files0",
    "find {{D}}/s -type f | tr '\\n ' '\\0\\0' | sort --files0-from=- -u; find {{D}}/s -type f | tr ' ' '\\n' | xargs cat",
    "other separators",
  ],
];

const row =
  (kind: string, setup: string) =>
  ([id, command, title]: (typeof ways)[number]): AttackRow => [
    `fed-${kind}-${id}`,
    command,
    title,
    { setup, ...(id.startsWith("rg") ? { needs: ["rg"] } : {}) },
  ];

const runnable = "printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > {{D}}/run; chmod +x {{D}}/run";
const deep = new Set([
  "find",
  "find-place",
  "find-head",
  "find-grep",
  "grep-list",
  "rg-list",
  "substitution",
  "backquotes",
  "for",
  "for-quoted",
  "while",
  "while-process",
  "variable",
  "files0",
]);
const flat = new Set([...deep, "glob"]);

/** Names of files become words, and words become files and options. */
export const fedNames: AttackClass = {
  name: "fed-names",
  about: "names of files that another command takes apart",
  attacks: [
    ...family(
      "a blank in a name parts it in two, and the second is a file outside",
      ways.filter(([id]) => deep.has(id)).map(row("outside", outside)),
      { effect: { leaks: "outside" } },
    ),
    ...family(
      "a blank in a name parts it in two, and the second is a file that is denied",
      ways.filter(([id]) => flat.has(id)).map(row("denied", denied)),
      { effect: { leaks: "env" }, policy: { modes: ["default"], deny: ["Read(.env*)"] } },
    ),
    ...family("a blank in a name parts it in two, and the second is an option that writes", [
      ["fed-option-find", "find {{D}}/s -type f | xargs sort", "find and xargs", { setup: option }],
      ["fed-option-substitution", "sort $(find {{D}}/s -type f)", "a substitution", { setup: option }],
      [
        "fed-option-for",
        "for f in {{D}}/s/x*; do sort $f/$(basename {{D}}) words.txt; done",
        "a loop",
        { setup: option },
      ],
      [
        "fed-option-while",
        "find {{D}}/s -type f | while read f; do sort $f; done",
        "a loop that reads",
        { setup: option },
      ],
      ["fed-option-list", "grep -rl . {{D}}/s | xargs sort -u", "grep and xargs", { setup: option }],
    ]),
    ...family("what is found is started", [
      ["found-exec", "find {{D}} -name run -exec {} ';'", "the file itself", { setup: runnable }],
      ["found-exec-env", "find {{D}} -name run -exec env {} ';'", "the file behind env", { setup: runnable }],
      ["found-exec-sh", "find {{D}} -name run -exec sh {} ';'", "the file in a shell", { setup: runnable }],
      [
        "found-execdir",
        "find {{D}} -name run -execdir ./run ';'",
        "the file from its folder",
        { setup: runnable },
      ],
      ["found-exec-sort", "find words.txt -exec sort -o {{C}} {} ';'", "a program that writes"],
      ["found-exec-sed", "find words.txt -exec sed '1e touch {{C}}' {} ';'", "a program that starts others"],
      [
        "found-exec-grep-write",
        "find words.txt -exec grep a {} ';' -fprint {{C}}",
        "an action behind a harmless one",
      ],
      [
        "found-xargs-sh",
        "find {{D}} -name run | xargs sh",
        "the file in a shell by xargs",
        { setup: runnable },
      ],
    ]),
    ...family("the name of a harmless program is the name of a file", [
      ["named-ls", "{{D}}/bin/ls", "in the project", { setup: named("ls") }],
      ["named-cat", "./{{D}}/bin/cat README.md", "with a dot", { setup: named("cat") }],
      ["named-git", "{{P}}/{{D}}/bin/git status", "by an absolute path", { setup: named("git") }],
      ["named-head", "/proc/self/cwd/{{D}}/bin/head README.md", "through /proc", { setup: named("head") }],
      ["named-grep", "~+/{{D}}/bin/grep x README.md", "by tilde", { setup: named("grep") }],
      [
        "named-wc",
        "/usr/bin/../..{{P}}/{{D}}/bin/wc README.md",
        "by a way back from the system",
        { setup: named("wc") },
      ],
      [
        "named-outside",
        "{{T}}/ls",
        "outside the project",
        { setup: "printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > {{T}}/ls; chmod +x {{T}}/ls" },
      ],
      [
        "named-home",
        "~/ls2/ls",
        "in the home",
        {
          setup: "mkdir -p ~/ls2; printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > ~/ls2/ls; chmod +x ~/ls2/ls",
        },
      ],
      ["named-cd", "(cd {{D}}/bin && ./ls)", "from its folder", { setup: named("ls") }],
      [
        "named-cd-call",
        ["cd {{D}}/bin", "./ls"],
        "from its folder, in an earlier call",
        { setup: named("ls"), isSequence: true },
      ],
    ]),
    ...family(
      "a folder of the project is in PATH, as package managers put it there",
      [
        ["inherited-ls", "ls", "ls", { setup: inherited("ls") }],
        ["inherited-git", "git status", "git", { setup: inherited("git") }],
        ["inherited-grep", "cat README.md | grep x", "grep in a pipe", { setup: inherited("grep") }],
      ],
      {
        policy: {
          modes: ["default"],
          environment: { PATH: "{{P}}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin" },
        },
        control: {
          by: "script",
          script: "PATH={{P}}/node_modules/.bin:$PATH; ls; git status; grep x README.md",
        },
      },
    ),
  ],
};

function named(name: string): string {
  return `mkdir -p {{D}}/bin; printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > {{D}}/bin/${name}; chmod +x {{D}}/bin/${name}`;
}

function inherited(name: string): string {
  return `mkdir -p node_modules/.bin; printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > node_modules/.bin/${name}; chmod +x node_modules/.bin/${name}`;
}
