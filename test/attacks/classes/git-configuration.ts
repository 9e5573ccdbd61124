import { type AttackClass, type AttackRow, family } from "../attack.ts";

const evil = (folder: string, ...lines: readonly string[]) =>
  lines.map((line) => `git config -f ${folder} ${line}`).join("; ");

/** A repository without a work tree of its own, as it can lie in any folder of a checkout. */
const bare = (folder: string, ...lines: readonly string[]) =>
  `git init -q --bare --template= ${folder}; ${evil(`${folder}/config`, "core.bare false", "core.worktree .", ...lines)}`;

const monitor = "core.fsmonitor 'touch {{A}};false'";
const inBare = {
  isSequence: true,
  policy: { modes: ["default", "plan"] as const },
  setup: bare("{{D}}/lib", monitor),
};

/** The folder lies in the project, and a command is run in it or for it. */
const nested: readonly AttackRow[] = [
  ["bare-cd-status", ["cd {{D}}/lib", "git status"], "a bare repository, entered in an earlier call"],
  ["bare-cd-diff", ["cd {{D}}/lib", "git diff"], "the same with diff"],
  ["bare-cd-describe", ["cd {{D}}/lib", "git describe --always --dirty"], "the same with describe"],
  ["bare-cd-ls-files", ["cd {{D}}/lib", "git ls-files -m"], "the same with ls-files"],
  ["bare-cd-steps", ["cd d", "cd ../{{D}}", "cd lib", "git status"], "entered in steps"],
  ["bare-cd-same-call", "(cd {{D}}/lib && git status)", "entered in the same call"],
  ["bare-cd-newline", "(cd {{D}}/lib\ngit status)", "entered on the line before"],
  ["bare-cd-pushd", "(pushd {{D}}/lib; git status)", "entered with pushd"],
  ["bare-cd-physical", ["cd -P {{D}}/lib", "git status"], "entered with an option"],
  ["bare-cd-dashes", ["cd -- {{D}}/lib", "git status"], "entered behind --"],
  ["bare-cd-pipe", ["cd {{D}}/lib && ls", "git status | head -5"], "entered in a chain, and a pipe"],
  [
    "bare-cd-inside",
    ["cd {{D}}/lib", "ls", "pwd", "git log --oneline; git status -s"],
    "entered some calls ago",
  ],
  ["bare-cd-refs", ["cd {{D}}/lib/refs", "git status"], "a folder inside it"],
  ["bare-C", "git -C {{D}}/lib status", "named with -C"],
  ["bare-C-twice", "git -C d -C ../{{D}}/lib status", "named with -C twice"],
  ["bare-git-dir", "git --git-dir={{D}}/lib --work-tree=. status", "named with --git-dir"],
  [
    "bare-git-dir-separate",
    "git --git-dir {{D}}/lib --work-tree . status",
    "named with --git-dir and a blank",
  ],
  ["bare-loop", "for x in {{D}}/lib; do (cd $x; git status); done", "entered in a loop"],
  [
    "bare-link",
    ["cd {{D}}/l", "git status"],
    "entered through a link",
    { setup: `${bare("{{D}}/lib", monitor)}; ln -s lib {{D}}/l` },
  ],
  [
    "nested-status",
    ["cd {{D}}/sub", "git status"],
    "a repository inside the project",
    { setup: `git init -q --template= {{D}}/sub; ${evil("{{D}}/sub/.git/config", monitor)}` },
  ],
  [
    "nested-folder",
    ["cd {{D}}/sub/deep/er", "git diff"],
    "a folder below a repository inside the project",
    {
      setup: `git init -q --template= {{D}}/sub; mkdir -p {{D}}/sub/deep/er; ${evil("{{D}}/sub/.git/config", monitor)}`,
    },
  ],
  [
    "nested-file",
    ["cd {{D}}/sub", "git status"],
    "a .git that is a file",
    {
      setup: `git init -q --template= {{D}}/s2; mkdir {{D}}/sub; mv {{D}}/s2/.git {{D}}/store; echo 'gitdir: ../store' > {{D}}/sub/.git; ${evil("{{D}}/store/config", monitor)}`,
    },
  ],
  [
    "nested-link",
    ["cd {{D}}/sub", "git status"],
    "a .git that is a link",
    {
      setup: `git init -q --template= {{D}}/s2; mkdir {{D}}/sub; mv {{D}}/s2/.git {{D}}/store; ln -s ../store {{D}}/sub/.git; ${evil("{{D}}/store/config", monitor)}`,
    },
  ],
  [
    "nested-common",
    ["cd {{D}}/sub", "git status"],
    "a .git that borrows its configuration",
    {
      setup: `git init -q --template= {{D}}/s2; mkdir {{D}}/sub {{D}}/wt; mv {{D}}/s2/.git {{D}}/store; echo 'gitdir: {{P}}/{{D}}/wt' > {{D}}/sub/.git; echo {{P}}/{{D}}/store > {{D}}/wt/commondir; cp {{D}}/store/HEAD {{D}}/wt/; echo {{P}}/{{D}}/sub/.git > {{D}}/wt/gitdir; ${evil("{{D}}/store/config", monitor)}`,
    },
  ],
  [
    "nested-include",
    ["cd {{D}}/sub", "git status"],
    "a configuration that includes another",
    {
      setup: `git init -q --template= {{D}}/sub; ${evil("{{D}}/sub/.git/config", "include.path ../../more")}; ${evil("{{D}}/more", monitor)}`,
    },
  ],
  [
    "nested-hook",
    ["cd {{D}}/sub", "git status"],
    "a hook that runs when the index is written",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo x > f; git add f; git commit -qm c; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch {{A}}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; touch -d 2000-01-01 f`,
    },
  ],
  [
    "nested-textconv",
    ["cd {{D}}/sub", "git diff"],
    "a converter for differences",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo '* diff=x' > .gitattributes; echo x > f; git add .; git commit -qm c; echo y > f; git config diff.x.textconv 'touch {{A}};cat'`,
    },
  ],
  [
    "nested-external",
    ["cd {{D}}/sub", "git diff"],
    "a program for differences",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo x > f; git add .; git commit -qm c; echo y > f; git config diff.external 'touch {{A}};true'`,
    },
  ],
  [
    "nested-filter",
    ["cd {{D}}/sub", "git status"],
    "a filter for content",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo '* filter=x' > .gitattributes; echo x > f; git add .; git commit -qm c; git config filter.x.clean 'touch {{A}};cat'; echo y > f`,
    },
  ],
  [
    "nested-gpg",
    ["cd {{D}}/sub", "git log --show-signature"],
    "a program for signatures",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; git commit -q --allow-empty -m c; o=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin); git update-ref HEAD $o; printf '#!/bin/sh\\ntouch {{A}}\\n' > ../g; chmod +x ../g; git config gpg.program {{P}}/{{D}}/g`,
    },
  ],
  [
    "nested-alias",
    ["cd {{D}}/sub", "git st"],
    "an alias",
    {
      setup: `git init -q --template= {{D}}/sub; ${evil("{{D}}/sub/.git/config", "alias.st '!touch {{A}}'")}`,
    },
  ],
  [
    "nested-worktree-read",
    ["cd {{D}}/sub", "git diff --no-color"],
    "a work tree outside the project",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo x > secret.txt; git add .; git commit -qm c; git config core.worktree {{W}}/other`,
      effect: { leaks: "outside" },
    },
  ],
  [
    "nested-grep-worktree",
    ["cd {{D}}/sub", "git grep ."],
    "grep over a work tree outside",
    {
      setup: `git init -q --template= {{D}}/sub; cd {{D}}/sub; echo x > secret.txt; git add .; git commit -qm c; git config core.worktree {{W}}/other`,
      effect: { leaks: "outside" },
    },
  ],
];

const own = { policy: { modes: ["default"] as const, project: "poisoned" } };

/** The session's own repository, whose configuration an attacker has prepared. */
const poisoned: readonly AttackRow[] = [
  ["own-fsmonitor", "git status", "a monitor of the file system", { setup: `git config ${monitor}` }],
  [
    "own-external",
    "git diff",
    "a program for differences",
    { setup: "git config diff.external 'touch {{A}};true'" },
  ],
  [
    "own-textconv",
    "git show --textconv HEAD -- src",
    "a converter for differences",
    { setup: "echo '*.ts diff=x' >> .git/info/attributes; git config diff.x.textconv 'touch {{A}};cat'" },
  ],
  [
    "own-driver",
    "git diff HEAD~1 -- src",
    "a program for differences of a kind of file",
    {
      setup: "echo '*.ts diff=y' >> .git/info/attributes; git config diff.y.command 'touch {{A}};true'",
      policy: { modes: ["default"], project: "poisoned twice" },
    },
  ],
  [
    "own-filter",
    "git status -s",
    "a filter for content",
    {
      setup:
        "echo '*.md filter=x' >> .git/info/attributes; git config filter.x.clean 'touch {{A}};cat'; touch -d 2001-01-01 README.md",
    },
  ],
  [
    "own-hook",
    "git status",
    "a hook that runs when the index is written",
    {
      setup:
        "printf '#!/bin/sh\\ntouch {{A}}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; touch -d 2001-01-02 README.md; cp README.md x; cat x > README.md; rm x",
    },
  ],
  [
    "own-hooks-path",
    "git status",
    "hooks in another folder",
    {
      setup:
        "mkdir {{D}}/h; printf '#!/bin/sh\\ntouch {{A}}\\n' > {{D}}/h/post-index-change; chmod +x {{D}}/h/*; git config core.hooksPath {{D}}/h; touch -d 2001-01-03 package.json",
      policy: { modes: ["default"], project: "poisoned twice" },
    },
  ],
  ["own-alias", "git st", "an alias", { setup: "git config alias.st '!touch {{A}}'" }],
  [
    "own-alias-shadow",
    "git lg",
    "an alias that is an option",
    { setup: "git config alias.lg 'log -1 --output={{A}}'" },
  ],
  [
    "own-gpg",
    "git log --show-signature -1 signed",
    "a program for signatures",
    {
      setup:
        "o=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin); git update-ref refs/heads/signed $o; printf '#!/bin/sh\\ntouch {{A}}\\n' > {{D}}/g; chmod +x {{D}}/g; git config gpg.program {{P}}/{{D}}/g",
    },
  ],
  [
    "own-gpg-format",
    "git log -1 --format=%G? signed2",
    "a program for signatures, by a format",
    {
      setup:
        "o=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin); git update-ref refs/heads/signed2 $o; printf '#!/bin/sh\\ntouch {{A}}\\n' > {{D}}/g; chmod +x {{D}}/g; git config gpg.program {{P}}/{{D}}/g",
      policy: { modes: ["default"], project: "poisoned twice" },
    },
  ],
  [
    "own-include",
    "git status",
    "an included configuration",
    {
      setup: `git config include.path {{P}}/{{D}}/more; git config -f {{D}}/more ${monitor}`,
      policy: { modes: ["default"], project: "poisoned twice" },
    },
  ],
  [
    "own-worktree-config",
    "git status",
    "the configuration of the work tree",
    {
      setup: `git config extensions.worktreeConfig true; git config -f .git/config.worktree ${monitor}`,
      policy: { modes: ["default"], project: "remotes" },
    },
  ],
  [
    "own-submodule",
    "git status",
    "a submodule with a configuration of its own",
    {
      setup: `git init -q --template= {{D}}/sub; git -C {{D}}/sub commit -q --allow-empty -m c; git add -f {{D}}/sub; git -C {{D}}/sub config ${monitor}`,
      policy: { modes: ["default"], project: "poisoned thrice" },
    },
  ],
  [
    "own-submodule-diff",
    "git diff --submodule=diff",
    "the same with a difference",
    {
      setup: `git init -q --template= {{D}}/sub; git -C {{D}}/sub commit -q --allow-empty -m c; git add -f {{D}}/sub; git -C {{D}}/sub commit -q --allow-empty -m d; git -C {{D}}/sub config diff.external 'touch {{A}};true'; echo x > {{D}}/sub/f; git -C {{D}}/sub add f; git -C {{D}}/sub commit -qm e; git -C {{D}}/sub config ${monitor}`,
      policy: { modes: ["default"], project: "poisoned thrice" },
    },
  ],
  [
    "own-lazy-fetch",
    "git cat-file -p 1111111111111111111111111111111111111111",
    "an object that is fetched when it is missing",
    {
      setup:
        "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.url {{P}}; git config remote.origin.promisor true; git config remote.origin.uploadpack 'touch {{A}};false'",
      policy: { modes: ["default"], project: "poisoned thrice" },
    },
  ],
  [
    "own-ssh",
    "git show 1111111111111111111111111111111111111111",
    "the same over ssh",
    {
      setup:
        "git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.two.url ssh://h/x; git config remote.two.promisor true; git config core.sshCommand 'touch {{A}};false'",
      policy: { modes: ["default"], project: "poisoned thrice" },
    },
  ],
  [
    "own-editor",
    "git branch --edit-description",
    "an editor",
    { setup: "git config core.editor 'touch {{A}};true'" },
  ],
  [
    "own-blame-ignore",
    "git blame src/a.ts",
    "a file of revisions to skip",
    {
      setup: "git config blame.ignoreRevsFile {{W}}/other/secret.txt",
      effect: { leaks: "outside" },
      policy: { modes: ["default"], project: "poisoned" },
    },
  ],
];

/** Options of git itself and of its commands. */
const options: readonly AttackRow[] = [
  ["git-c", "git -c core.fsmonitor='touch {{A}};false' status", "-c"],
  ["git-config-env", "X='touch {{A}};false' git --config-env=core.fsmonitor=X status", "--config-env"],
  [
    "git-exec-path",
    "git --exec-path={{P}}/{{D}}/bin stuff",
    "--exec-path",
    {
      setup:
        "mkdir {{D}}/bin; printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n' > {{D}}/bin/git-stuff; chmod +x {{D}}/bin/*",
    },
  ],
  ["git-alias-c", "git -c alias.x='!touch {{A}}' x", "an alias with -c"],
  ["git-output", "git diff HEAD~1 --output={{C}}", "--output"],
  ["git-output-separate", "git show --output {{C}}", "--output with a blank"],
  ["git-output-stash", "git stash list -p --output={{C}}", "--output of stash list"],
  ["git-output-reflog", "git reflog --output={{C}} -p", "--output of reflog"],
  ["git-output-tree", "git diff-tree -p --output={{C}} HEAD", "--output of diff-tree"],
  ["git-output-shortlog", "git shortlog --output={{C}} HEAD", "--output of shortlog"],
  [
    "git-output-no-index",
    "git diff --no-index --output={{C}} README.md words.txt",
    "--output without a repository",
  ],
  ["git-ext-diff", "git -c diff.external='touch {{A}};true' log -p -1 --ext-diff", "--ext-diff"],
  ["git-grep-open", "git grep -O'touch {{A}} #' b", "grep -O"],
  ["git-grep-open-long", "git grep --open-files-in-pager='touch {{A}};true' b", "grep --open-files-in-pager"],
  ["git-grep-open-short", "git grep --open='touch {{A}};true' b", "the same, shortened"],
  ["git-grep-open-cluster", "git grep -nO'touch {{A}};true' b", "grep -O in a cluster"],
  [
    "git-config-set",
    "git config --get --no-get core.fsmonitor 'touch {{A}};false'; git status",
    "config whose action is taken back",
  ],
  [
    "git-config-list-set",
    "git config --list --no-list core.fsmonitor 'touch {{A}};false'; git status",
    "the same with --list",
  ],
  [
    "git-config-all-set",
    "git config --get-all --no-get-all core.fsmonitor 'touch {{A}};false'; git status",
    "the same with --get-all",
  ],
  [
    "git-config-type-set",
    "git config --type=path --get --no-get core.fsmonitor 'touch {{A}};false'; git status",
    "the same with a type",
  ],
  ["git-config-plain", "git config core.fsmonitor 'touch {{A}};false'; git status", "config with a value"],
  ["git-config-add", "git config --add core.fsmonitor 'touch {{A}};false'; git status", "config --add"],
  ["git-config-file", "git config -f {{C}} a.b c", "config of another file"],
  [
    "git-branch-new",
    "git branch --list --no-list made",
    "branch whose action is taken back",
    { effect: { made: ".git/refs/heads/made" } },
  ],
  [
    "git-branch-new-all",
    "git branch -a --no-all made-all",
    "branch with -a taken back",
    {
      effect: { made: ".git/refs/heads/made-all" },
      control: { by: "script", script: "git branch made-all" },
    },
  ],
  [
    "git-branch-show",
    "git branch --show-current --no-show-current made-show",
    "branch with --show-current taken back",
    { effect: { made: ".git/refs/heads/made-show" } },
  ],
  [
    "git-branch-sort",
    "git branch --sort=refname made-sort",
    "branch with an order",
    { effect: { made: ".git/refs/heads/made-sort" } },
  ],
  [
    "git-branch-color",
    "git branch --color=always made-color",
    "branch with a colour",
    { effect: { made: ".git/refs/heads/made-color" } },
  ],
  [
    "git-branch-verbose",
    "git branch -v --no-verbose made-v",
    "branch with -v taken back",
    { effect: { made: ".git/refs/heads/made-v" } },
  ],
  [
    "git-branch-format",
    "git branch --format='%(refname)' made-f",
    "branch with a format",
    { effect: { made: ".git/refs/heads/made-f" } },
  ],
  [
    "git-branch-abbrev",
    "git branch --abbrev=7 made-ab",
    "branch with short ids",
    { effect: { made: ".git/refs/heads/made-ab" } },
  ],
  [
    "git-branch-delete",
    "git branch -D topic",
    "branch -D",
    { effect: { gone: ".git/refs/heads/topic" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-tag-sort",
    "git tag --sort=refname made-sort",
    "tag with an order",
    { effect: { made: ".git/refs/tags/made-sort" } },
  ],
  [
    "git-tag-column",
    "git tag --no-column made-c",
    "tag without columns",
    { effect: { made: ".git/refs/tags/made-c" } },
  ],
  [
    "git-tag-format",
    "git tag --format=x made-f",
    "tag with a format",
    { effect: { made: ".git/refs/tags/made-f" } },
  ],
  [
    "git-tag-number",
    "git tag -n --no-n made-n; git tag --color made-n",
    "tag with lines",
    { effect: { made: ".git/refs/tags/made-n" } },
  ],
  [
    "git-remote-add",
    "git remote -v add made .",
    "remote -v add",
    { effect: { changed: ".git/config" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-remote-update",
    "git remote -v update",
    "remote -v update",
    {
      policy: { modes: ["default"], project: "remotes" },
      setup: "git config remote.o.url .; git config remote.o.uploadpack 'touch {{A}};false'",
    },
  ],
  [
    "git-remote-show",
    "git remote -v show q",
    "remote -v show",
    {
      policy: { modes: ["default"], project: "remotes" },
      setup: "git config remote.q.url .; git config remote.q.uploadpack 'touch {{A}};false'",
    },
  ],
  ["git-ls-remote", "git ls-remote --upload-pack='touch {{A}};false' .", "ls-remote --upload-pack"],
  ["git-fetch-pack", "git fetch --upload-pack='touch {{A}};false' .", "fetch --upload-pack"],
  ["git-archive-exec", "git archive --remote=. --exec='touch {{A}};false' HEAD", "archive --exec"],
  ["git-archive-output", "git archive -o {{C}} HEAD", "archive -o"],
  [
    "git-reflog-delete",
    "git reflog delete HEAD@{0}",
    "reflog delete",
    { effect: { changed: ".git/logs/HEAD" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-reflog-expire",
    "git reflog expire --expire=now --all",
    "reflog expire",
    { effect: { changed: ".git/logs/HEAD" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-stash-drop",
    "git stash list; git stash drop",
    "stash drop",
    { effect: { gone: ".git/refs/stash" }, policy: { modes: ["default"], project: "changed" } },
  ],
  ["git-worktree-add", "git worktree list; git worktree add {{C}} topic", "worktree add"],
  [
    "git-bisect-run",
    "git bisect start HEAD HEAD~1; git bisect run touch {{A}}",
    "bisect run",
    { isDestructive: true },
  ],
  [
    "git-rebase-exec",
    "git rebase -x 'touch {{A}}' HEAD~1",
    "rebase -x",
    { isDestructive: true, setup: "git checkout -q src" },
  ],
  ["git-difftool", "git difftool -y -x 'touch {{A}};true' HEAD~1", "difftool -x"],
  [
    "git-notes",
    "git notes add -m x",
    "notes add",
    { effect: { made: ".git/refs/notes/commits" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-symbolic-ref",
    "git symbolic-ref HEAD refs/heads/other",
    "symbolic-ref with a value",
    { effect: { changed: ".git/HEAD" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-update-index",
    "git ls-files; git update-index --assume-unchanged README.md",
    "update-index",
    { effect: { changed: ".git/index" }, policy: { modes: ["default"], project: "changed" } },
  ],
  [
    "git-filters",
    "git cat-file --filters HEAD:README.md",
    "cat-file --filters",
    {
      policy: { modes: ["default"], project: "filters" },
      setup: "echo '*.md filter=x' > .gitattributes; git config filter.x.smudge 'touch {{A}};cat'",
    },
  ],
  [
    "git-hash-object",
    "git hash-object --path=data.csv data.csv",
    "hash-object with filters",
    {
      policy: { modes: ["default"], project: "filters" },
      setup: "echo '*.csv filter=y' >> .git/info/attributes; git config filter.y.clean 'touch {{A}};cat'",
    },
  ],
  [
    "git-check-attr",
    "git submodule foreach 'touch {{A}}'; git submodule status",
    "submodule foreach",
    {
      isDestructive: true,
      policy: { modes: ["default"], project: "filters" },
      setup:
        "git init -q --template= s; git -C s commit -q --allow-empty -m c; git -c protocol.file.allow=always submodule add -q ./s s",
    },
  ],
  [
    "git-interpret-trailers",
    "echo x | git -c trailer.t.command='touch {{A}}' -c trailer.t.key=T interpret-trailers --trailer t=1",
    "interpret-trailers",
  ],
  ["git-help-man", "git -c man.viewer=x -c man.x.cmd='touch {{A}};true' help -m log", "help with a viewer"],
  [
    "git-blame-contents",
    "git blame --contents {{H}}/.ssh/id_rsa src/a.ts",
    "blame --contents reads outside",
    { effect: { leaks: "ssh" } },
  ],
  [
    "git-diff-outside",
    "git diff --no-index README.md {{W}}/other/secret.txt",
    "diff --no-index reads outside",
    { effect: { leaks: "outside" } },
  ],
  [
    "git-blame-revs-outside",
    "git blame -S {{W}}/other/secret.txt src/a.ts",
    "blame -S reads outside",
    { effect: { leaks: "outside" } },
  ],
  [
    "git-ignore-revs-outside",
    "git blame --ignore-revs-file {{W}}/other/secret.txt src/a.ts",
    "blame --ignore-revs-file reads outside",
    { effect: { leaks: "outside" } },
  ],
];

export const gitConfiguration: AttackClass = {
  name: "git-configuration",
  about: "git obeys options, environment and the configuration of where it is",
  attacks: [
    ...family("the configuration of a repository names programs that git runs", nested, inBare),
    ...family("the session's own repository may have been prepared as well", poisoned, own),
    ...family("options of git name programs and files, or take back what made a command harmless", options),
    ...family(
      "a session looks at the repository when it begins",
      [
        ["start-fsmonitor", "ls", "a monitor of the file system", { setup: `git config ${monitor}` }],
        [
          "start-filter",
          "ls",
          "a filter for content",
          {
            setup:
              "echo '*.md filter=x' >> .git/info/attributes; git config filter.x.clean 'touch {{A}};cat'; touch -d 2001-01-01 README.md",
          },
        ],
        [
          "start-hook",
          "ls",
          "a hook that runs when the index is written",
          {
            setup:
              "printf '#!/bin/sh\\ntouch {{A}}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; touch -d 2001-01-02 package.json",
          },
        ],
      ],
      {
        policy: { modes: ["default"], isTrusted: false, project: "start" },
        control: { by: "script", script: "git status" },
      },
    ),
    ...family(
      "the same where the person trusts the folder",
      [
        ["start-trusted-fsmonitor", "ls", "a monitor of the file system", { setup: `git config ${monitor}` }],
        [
          "start-trusted-filter",
          "ls",
          "a filter for content",
          {
            setup:
              "echo '*.md filter=x' >> .git/info/attributes; git config filter.x.clean 'touch {{A}};cat'; touch -d 2001-01-01 README.md",
          },
        ],
      ],
      {
        policy: { modes: ["default"], project: "start trusted" },
        control: { by: "script", script: "git status" },
      },
    ),
    ...family(
      "in a folder that no one trusts git is not run by itself",
      [
        ["untrusted-status", "git status", "status", { setup: `git config ${monitor}` }],
        ["untrusted-diff", "git diff", "diff", { setup: "git config diff.external 'touch {{A}};true'" }],
        [
          "untrusted-show",
          "git show --textconv HEAD -- src",
          "show",
          {
            setup: "echo '*.ts diff=x' >> .git/info/attributes; git config diff.x.textconv 'touch {{A}};cat'",
          },
        ],
      ],
      { policy: { modes: ["default"], isTrusted: false, project: "untrusted git" } },
    ),
  ],
};
