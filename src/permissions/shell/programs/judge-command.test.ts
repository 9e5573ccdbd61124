import { describe, expect, it } from "vitest";
import { loadAnalysis } from "../load-analysis.ts";
import type { ShellAnalysis, ShellUnit } from "../shell-analysis.ts";

function analyze(command: string): Promise<ShellAnalysis> {
  return loadAnalysis(command, { home: "/home/u", directory: "/nowhere" });
}

async function lastUnit(command: string): Promise<ShellUnit> {
  const unit = (await analyze(command)).units.at(-1);
  if (unit === undefined) throw new Error(`no command in ${command}`);
  return unit;
}

/** Options by which tools of developers start programs, write files or obey others; a wildcard does not cover them. */
const developmentRisks = [
  "go test -exec ./run.sh ./...",
  "go test -toolexec=./run.sh",
  "go test --toolexec ./run.sh",
  "go test -o x",
  "go test -coverprofile=x",
  "go test -C sub",
  "go vet -vettool=./run.sh",
  "go build -ldflags=-extld=./x",
  "cargo test --config 'build.rustc-wrapper=\"./run.sh\"'",
  "cargo test --manifest-path sub/Cargo.toml",
  "gradle test -I evil.gradle",
  "./gradlew test --init-script evil.gradle",
  "gradle test -p sub",
  "mvn test -f sub",
  "mvn test -Dexec.executable=x",
  "pytest -p evil",
  "pytest -c x.ini",
  "pytest --junitxml=x",
  "pytest --cov-report=xml:x",
  "prettier --plugin ./evil.js a",
  "prettier --write .",
  "eslint -c ./evil.js a",
  "eslint -o x a",
  "eslint -f ./evil.js a",
  "eslint --format=./evil.js a",
  "tsc --outDir x",
  "jest --globalSetup=./evil.js",
  "vitest run --config evil.ts",
  "vitest --reporter=./evil.ts",
  "yarn test --cwd sub",
  "pnpm test -C sub",
  "helm template x y --post-renderer ./run.sh",
  "kubectl get pods --kubeconfig=evil",
  "psql -c x",
  "gh pr view --web",
  "gcc -wrapper ./run.sh,x a.c",
  "gcc -fplugin=./x.so a.c",
  "gcc @x",
  "openssl rand -out x 5",
  "shuf -e x -o y",
];

const readOnly = [
  "ls -la src",
  "cat a b",
  "head -n 5 a | tail -2",
  "wc -l *.ts",
  "grep -rn TODO src",
  "rg --pretty TODO",
  "find src -name '*.ts' -type f",
  "stat a",
  "du -sh .",
  "which node",
  "file a",
  "pwd",
  "echo $?",
  'echo "$HOME $(pwd)"',
  "x=a; echo $x",
  "printf '%s\\n' a",
  "date +%s",
  "sort -u a | uniq -c",
  "sort --unique a",
  "cut -d: -f1 a",
  "jq .name package.json",
  "diff -u a b",
  "sed -n '1,20p' a",
  "sed -e 's/a/b/g' -e '/x/d' a",
  "[ -f a ]",
  'x=$(pwd); [ "$x" = y ]',
  "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; [ $i -eq 3 ]",
  "node --version",
  "test -d a",
  "cd src",
  "command -v node",
  "set -euo pipefail",
  "export NODE_ENV=test",
  "while read -r line; do true; done",
  "git status",
  "cd src && git log -1",
  "git -C src log -1",
  "tar tf a.tar",
  "tar -tzvf a.tgz",
  "unzip -l a.zip",
  "docker --version",
  "go version",
  "tsc --version",
  "git --no-pager log --oneline -5",
  "git diff HEAD~1 -- src",
  "git show HEAD:a",
  "git branch --show-current",
  "git branch -a",
  "git remote -v",
  "git stash list",
  "git config --get user.name",
  "git tag --list 'v*'",
  "CI=1 ls",
  "timeout 5 ls",
];

describe("[PRM-9] processes, packages, packed files and versions", () => {
  it.each([
    "ps -eo pid,ppid,%cpu,comm --sort=-%cpu",
    "ps -p 12",
    "ps -u ada",
    "zcat a.gz",
    "bzcat a.bz2",
    "curl --version",
    "sqlite3 --version",
    "java -version",
  ])("%s only reads", async (command) => {
    expect((await lastUnit(command)).readOnly).toBe(true);
  });

  it.each([
    "ps aux",
    "ps -ef",
    "ps auxe",
    "ps e",
    "ps -auxe",
    "ps aux eww",
    "ps -o environ",
    "ps -eo pid,env",
    "npm ls",
    "npm run",
    "npm ls --prefix x",
    "npm run build",
    "npm --prefix x ls",
    "npm ls --userconfig x",
    "zcat -f a.gz",
    "curl --version https://example.com",
    "cargo --version",
    "yarn --version",
    "mvn --version",
  ])("%s may do more", async (command) => {
    expect((await lastUnit(command)).readOnly).toBe(false);
  });
});

describe("[PRM-9] commands that only read need no rule", () => {
  it.each(readOnly)("%s", async (command) => {
    expect(await lastUnit(command)).toMatchObject({ readOnly: true });
  });
});

const notReadOnly = [
  "npm test",
  "/tmp/ls",
  "./cat a",
  "env",
  "python3 -VV",
  "touch a",
  "sort -o b a",
  "uniq a b",
  "date -s 2020-01-01",
  "date 01010000",
  "hostname evil",
  "printf -v x y",
  "printf '%n' x",
  "[ -v x ]",
  "[ $(x) ]",
  "find . $x",
  "git diff $x",
  "git branch -D main",
  "git branch new",
  "git tag v1",
  "git remote add a b",
  "git stash pop",
  "git config user.name x",
  "git -C $x status",
  'cd "$x" && git status',
  "git -C other -c core.pager=x status",
  "tar xf a.tar",
  "tar tf a.tar -I x",
  "unzip a.zip",
  "unzip -l a.zip -d x",
  "cargo --version",
  "tsc",
  "git -c core.pager=x log",
  "git unknown",
  "sed -i s/a/b/ a",
  "sed 'w x' a",
  "awk '{print > FILENAME}' a",
  "tree -o x",
  "PATH=. ls",
  "set -a",
  "read 'x[0]'",
];

describe("[PRM-9] what may do more needs a rule", () => {
  it.each(notReadOnly)("%s", async (command) => {
    expect(await lastUnit(command)).toMatchObject({ readOnly: false });
  });
});

const exactOnly = [
  "find . -exec ls {} +",
  "find . -delete",
  "find . -ex\\ec ls \\;",
  "find . -fprintf x y",
  "sed '1e ls' a",
  "sed s/a/b/e a",
  "sed 's/a/b/w x' a",
  "sed -n '$!{N;D};W x' a",
  "sed -f s a",
  "sed -ni p a",
  "sed --in-p s/a/b/ a",
  'sed "$x" a',
  "sort -ob a",
  "sort -uob a",
  "sort --outp=b a",
  "sort --compress-program=x a",
  "awk 'BEGIN{system(\"x\")}'",
  "awk '{print > \"x\"}' a",
  "awk '{print $1,\n$2 > \"x\"}' a",
  "awk '{print | \"x\"}' a",
  "awk '{\"x\" | getline}' a",
  'awk \'{print /"/; system("x"); y = /"/}\' a',
  'awk \'{a++ /"/ 1; system("x") }\' a',
  "awk '@load \"x\"' a",
  "awk 'BEGIN{ARGV[1]=\"x\"}' a",
  "awk -f s a",
  "rg --pre=x y",
  "rg --pre x y",
  "tar -cf a --checkpoint-action=exec=x b",
  "tar --use-comp=x -cf a b",
  "tar xf a -I x",
  "tar cIf x a b",
  "tar --to-command=x -xf a",
  "git diff --output=x",
  "git diff --outpu x",
  "git log --ext-diff",
  "git --no-pager log --output=x",
  "git grep -Oless x",
  "git clone -u x a b",
  "git clone ext::sh a",
  "git fetch ext::x",
  "git archive --remote=a --exec=x HEAD",
  "git bisect run x",
  "git submodule foreach x",
  "git rebase -x y main",
  "git config core.pager x",
  "git format-patch -1 -o x",
  "git difftool",
  "git -p log",
  "git $x",
  "git log $x",
  "zip a b -T -TT x",
  "man -P x y",
  "man -Hx y",
  "less +!x a",
  "rsync -e x a b:c",
  "ssh -o ProxyCommand=x a",
  "curl -K x a",
  "curl -sSLo x a",
  "curl file:///etc/passwd",
  "wget --exec x=y a",
  "npm test --script-shell=x",
  "npm config set a b",
  "source x",
  ". x",
  "eval ls",
  "hash -p x ls",
  "alias ls=x",
  "compgen -W x",
  "unset 'x[0]'",
  "export FOO=1",
  "bash x.sh",
  "sh",
  "python3 -c x",
  'cd "$x" && git status',
  ...developmentRisks,
];

describe("[PRM-9] a wildcard does not cover options that execute or write", () => {
  it.each(exactOnly)("%s", async (command) => {
    expect((await analyze(command)).units.some((unit) => unit.exactOnly !== undefined)).toBe(true);
  });

  it.each([
    ["prettier --write .", "prettier --write"],
    ["eslint --fix -c x.js src", "eslint --fix -c"],
    ["python3 -c x", "python3"],
    ["bash scripts/a.sh --fast", "bash scripts/a.sh"],
    ["source env.sh", "source env.sh"],
    ["bash -i scripts/a.sh", undefined],
    ["sh", undefined],
  ])("of %s only one that begins with %s", async (command, head) => {
    expect((await lastUnit(command)).wildcardHead).toBe(head);
  });

  it.each([
    "awk -F: '$3 > 10 {print $1}' a",
    "awk '/a|b/ {print $1 / 2}' a",
    "sed -e 's|a/b|w e|' a",
    "sed '/w x/d' a",
    "tar -xzf a.tgz",
    "tar tf a",
    "git commit -m x",
    "git push origin main",
    "git add *.ts",
    "curl -s https://example.org",
    "npm run build -- --watch",
    "git log -5 -- --output=x",
    'grep "$x" a',
    "ls $x",
    "go test -v -run TestX -count=1 ./...",
    "go test -race ./... -- -x",
    "cargo test --workspace -q -- --nocapture",
    "gradle test --tests X --info",
    "mvn -q test -Dtest=X",
    "pytest -xvs tests -k name --tb=short",
    "pytest -n4 -rA",
    "prettier --check .",
    "eslint --max-warnings 0 -f json src",
    "tsc --noEmit -p tsconfig.build.json",
    "jest -t name --coverage",
    "vitest run --reporter=dot src",
    "yarn test --watch",
    "helm template x y -f values.yaml",
    "kubectl get pods -n x -ojson",
    "gh pr view 1 --json title",
    "gcc -Wall -O2 -c a.c -Iinclude",
    "openssl x509 -in a.pem -noout -text",
    "shuf -n 3 a",
    "git -C src commit -m x",
  ])("it does cover %s", async (command) => {
    expect(await lastUnit(command)).not.toHaveProperty("exactOnly");
  });
});

describe("[PRM-9] files that commands read and write", () => {
  it.each<[string, string[]]>([
    ["cat a ~/b $HOME/c '~/d' -", ["read a", "read ~/b", "read ~/c", "read ./~/d"]],
    ["cat ~root/a", ["read ~root/a ?"]],
    ["cat .en[v]", ["read .en[v]"]],
    ["cat $'\\x2eenv'", ["read .env"]],
    ["cat <(ls)", []],
    ["ls", ["read ."]],
    ["grep -f a b c", ["read a", "read c", "read b"]],
    ["grep x a", ["read a"]],
    ["wc --files0-from=a", ["read a"]],
    ["find -files0-from a", ["read .", "read a"]],
    ["tail -n 5 a", ["read a"]],
    ["sed -n 1p a", ["read a"]],
    ["sed -i s/a/b/ a", ["read a", "write a"]],
    ["awk x=1 a", ["read a"]],
    ["awk '{print}' x=1 a", ["read a"]],
    ["cp a b c", ["read a", "read b", "copy c"]],
    ["cp -t c a", ["write c", "read a"]],
    ["mv a b", ["read a below", "remove a below", "copy b below"]],
    ["rm -rf a", ["remove a below"]],
    ["ls | xargs rm", ["remove  ?"]],
    ["chmod +x a", ["write a"]],
    ["tee -a a", ["write a"]],
    ["dd if=a of=b", ["read a", "write b"]],
    ["tar xzf a -C b", ["read a", "write b below"]],
    ["tar -cf a b", ["write a", "read b below"]],
    ["unzip a", ["read a", "read a.ZIP", "read a.zip", "write . below"]],
    ["curl -d @a -o b x", ["read a", "write b"]],
    ["curl -F f=@a x", ["read a"]],
    ["git diff --no-index /dev/null a", ["read a"]],
    ["git archive -o a HEAD", ["write a"]],
    ["grep -r x", ["read . below"]],
    ["source a", ["read a"]],
  ])("%s", async (command, paths) => {
    const { operands } = await lastUnit(command);
    const shown = operands.map(
      ({ use, path, literal, below }) =>
        `${use} ${path}${literal ? "" : " ?"}${below === undefined ? "" : " below"}`,
    );
    expect(shown.sort()).toEqual([...paths].sort());
  });
});
