import { oddNames, quotedCommands } from "./benign/quoting.ts";
import { readingCommands } from "./benign/reading.ts";
import { shellCommands } from "./benign/shell.ts";
import type { BenignCommand, BenignGroup } from "./run-benign.ts";

const allow = (command: string, more: Partial<BenignCommand> = {}): BenignCommand => ({
  command,
  expect: "allow",
  ...more,
});

/** Everyday commands by the policy under which they are tried. */
export const benignGroups: readonly BenignGroup[] = [
  { name: "reading", commands: readingCommands },
  { name: "shell", commands: shellCommands },
  { name: "quoting", setup: oddNames, commands: quotedCommands },
  {
    name: "granted",
    policy: {
      allow: [
        "Bash(npm test)",
        "Bash(npm run *)",
        "Bash(make *)",
        "Bash(git commit *)",
        "Bash(git add:*)",
        "Bash(mkdir *)",
        "Bash(node *)",
      ],
    },
    commands: [
      allow("npm test", { needs: ["npm"], varies: true }),
      allow("npm test 2>&1 | tail -20", { needs: ["npm"], varies: true }),
      allow("npm run build", { needs: ["npm"], varies: true }),
      allow("npm run build && npm test", { needs: ["npm"], varies: true }),
      allow("CI=1 npm test", { needs: ["npm"], varies: true }),
      allow("make test"),
      allow("make test VERBOSE=1"),
      allow("timeout 60 make test"),
      allow("git add src/a.ts && git commit -m 'Change a'", { varies: true }),
      allow("git commit --allow-empty -m \"$(cat <<'EOF'\nA title\n\nA body.\nEOF\n)\"", { varies: true }),
      allow("mkdir -p d/benign/x", { varies: true }),
      allow("node -p '1 + 1'", { needs: ["node"] }),
    ],
  },
  {
    name: "edits",
    policy: { modes: ["acceptEdits"] },
    commands: [
      allow("mkdir -p d/made/sub", { varies: true }),
      allow("touch d/made/x.ts", { varies: true }),
      allow("cp src/a.ts d/made/a.ts", { varies: true }),
      allow("mv d/made/a.ts d/made/b.ts", { varies: true }),
      allow("rm d/made/b.ts", { varies: true }),
      allow("echo text > d/made/out.txt", { varies: true, expect: "either" }),
      allow("sed -i s/a/b/ d/made/x.ts", { varies: true, expect: "either" }),
    ],
  },
  {
    name: "denied files elsewhere",
    policy: { deny: ["Read(.env*)", "Read(**/*.pem)"] },
    commands: [
      allow("cat README.md"),
      allow("ls -la", { varies: true }),
      allow("grep -rn TODO src"),
      allow("git status --short"),
      allow("git log --oneline -5"),
      allow("git diff --stat"),
      allow("git diff src/a.ts"),
      allow("git show HEAD:src/a.ts"),
      allow("find . -name '*.ts'"),
      allow("head -5 package.json"),
      allow("wc -l src/*.ts"),
      allow("cat src/*.ts | wc -l"),
    ],
  },
];
