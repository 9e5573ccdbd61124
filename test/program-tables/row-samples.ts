import type { ProgramTable, TableRow } from "./table-rows.ts";

/** Is in contents that the repository holds, on a line with a blank at its end. */
export const secret = "tracked-secret";

/** The files that rows are about. */
export const fileSetup = String.raw`
printf 'b 2\na 1\nc 3\n' > a.txt
printf 'a 1\nb 2\nd 4\n' > b.txt
printf 'text\0more\n' > c.bin
printf '{"a": [1, 2], "b": "x"}\n' > d.json
printf 'a.txt\0' > names
printf 'now\n' > dates
printf '1+2\nquit\n' > numbers
printf 'YQo=\n' > encoded
mkdir -p sub/deep empty
cp a.txt sub/a.txt
cp b.txt sub/deep/b.txt
cp "$(type -P true)" binary
gzip -c a.txt > a.gz
! command -v bzip2 > /dev/null || bzip2 -c a.txt > a.bz2
! command -v xz > /dev/null || xz -c a.txt > a.xz
! command -v zip > /dev/null || zip -q a.zip a.txt
ln -s a.txt link
`;

/** The same, in a repository whose configuration names programs that must not run. */
export const setup = String.raw`${fileSetup}
git init -q -b main .
git config user.name somebody
git config user.email somebody@example.org
printf '*.txt diff=own\n' > .gitattributes
printf '*.ignored\n' > .gitignore
git add -A
git commit -q -m one
printf 'd ${secret} \n' >> a.txt
git commit -q -a -m two
git tag -a v1 -m v1
git branch side HEAD~1
printf 'e ${secret} \n' >> a.txt
git stash -q
printf 'f ${secret} \n' >> a.txt
printf 'new\n' > untracked.txt
for name in core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy diff.external \
  diff.own.textconv diff.own.command credential.helper gpg.program gpg.ssh.program remote.origin.uploadpack; do
  git config "$name" "touch '$HOME/started'; false"
done
git config alias.status '!touch "$HOME/started"'
git config core.hooksPath "$HOME/hooks"
git config log.showSignature true
mkdir "$HOME/hooks"
`;

/** What follows the options; a table that is missing here gets one file. */
const operands = readPairs(`
  grep: a a.txt
  egrep: a a.txt
  fgrep: a a.txt
  rg: a a.txt
  fd: a .
  diff: a.txt b.txt
  tree: sub
  ls: sub
  tr: a b
  join: b.txt b.txt
  comm: b.txt b.txt
  cmp: a.txt b.txt
  du: sub
  df: .
  which: ls
  basename: a/b
  dirname: a/b
  readlink: link
  seq: 2
  sleep: 0
  base64: encoded
  nm: binary
  readelf: binary
  size: binary
  zcat: a.gz
  bzcat: a.bz2
  xzcat: a.xz
  zipinfo: a.zip
  bc: numbers
  factor: 12
  numfmt: 1024
  getconf: ARG_MAX
  whereis: ls
  pgrep: sh
  locale: LC_TIME
  jq: . d.json
  sed: p a.txt
  gawk: 1 a.txt
  mawk: 1 a.txt
  git cat-file: HEAD
  git check-attr: diff a.txt
  git check-ignore: a.ignored
  git cherry: side
  git diff-index: HEAD
  git diff-tree: HEAD
  git blame: a.txt
  git annotate: a.txt
  git grep: a
  git ls-tree: HEAD
  git merge-base: side HEAD
  git name-rev: HEAD
  git rev-list: HEAD
  git rev-parse: HEAD
  git shortlog: HEAD
  git symbolic-ref: HEAD
  git var: GIT_AUTHOR_IDENT
  git config: user.name
  git: version
`);

const withoutOperands =
  /^(?:date|expr|uname|arch|whoami|groups|nproc|uptime|tty|hostname|free|id|cal|lscpu|lsblk|git (?:status|diff|log|show|whatchanged|reflog|diff-files|ls-files|show-ref|for-each-ref|count-objects|describe|version|show-branch|branch|tag|remote|stash|worktree))$/;

export function operandsOf({ name, readOnly }: ProgramTable): readonly string[] {
  if (withoutOperands.test(name) || (!readOnly && name !== "git")) return [];
  return operands.get(name) ?? ["a.txt"];
}

/** Values that fit an option, by the table and for all of them. */
const values = readValues(`
  *: color=never colour=never encoding=utf-8 since=yesterday after=yesterday until=now before=now exclude=*.x include=*.txt
  *: sort=refname points-at=HEAD contains=HEAD no-contains=HEAD merged=HEAD no-merged=HEAD column=never date=short
  *: format=%s pretty=%s ignore-submodules=all
  grep: d=skip D=skip directories=skip devices=skip binary-files=text
  rg: t=py T=py type=py type-not=py sort=path sortr=path colors=path:none E=utf-8 engine=default type-add=x:*.x type-clear=py
  rg: regex-size-limit=1M dfa-size-limit=1M
  fd: t=f type=f S=+1b size=+1b c=never changed-within=1d changed-before=1d changed-after=1d newer=1d older=1d
  fd: change-newer-than=1d change-older-than=1d o=root owner=root search-path=sub
  ls: classify=never format=long hyperlink=never indicator-style=none quoting-style=literal sort=size time=ctime
  nl: b=a f=a h=a n=ln body-numbering=a footer-numbering=a header-numbering=a number-format=ln
  tail: follow=name pid=1
  join: o=1.1
  column: R=x H=x W=x E=x O=x table-right=x table-hide=x table-wrap=x table-noextreme=x table-order=x T=x table-truncate=x
  tree: sort=size
  cksum: l=8 length=8
  stat: cached=never
  du: time=ctime
  df: t=ext4 type=ext4 x=nfs exclude-type=nfs output=size
  file: e=tar exclude=tar exclude-quiet=tar P=bytes=9 parameter=bytes=9
  seq: f=%g format=%g
  b2sum: l=8 length=8
  cksum: a=md5 algorithm=md5
  strings: t=d e=s U=hex radix=d encoding=s unicode=hex
  od: A=d t=x1 address-radix=d format=x1 endian=big
  hexdump: e="%x" format="%x" L=never
  nm: t=d radix=d
  size: format=sysv radix=10
  shuf: i=1-3 input-range=1-3
  numfmt: d=x delimiter=x format=%f from=auto invalid=warn round=up to=iec
  pgrep: P=0 parent=0 u=root euid=root U=root uid=root G=root group=root
  lscpu: C=NAME e=CPU p=CPU caches=NAME extended=CPU parse=CPU
  lsblk: o=NAME x=NAME output=NAME sort=NAME exclude=1 include=8
  sort: sort=numeric batch-size=2 check=quiet
  uniq: all-repeated=none group=append
  date: d=now date=now f=dates file=dates I=date iso-8601=date rfc-3339=date
  sed: e=p expression=p
  gawk: v=x=1
  mawk: v=x=1
  git status: u=no untracked-files=no ignored=no
  git diff: word-diff=plain diff-algorithm=myers diff-filter=A ws-error-highlight=all find-object=HEAD:a.txt skip-to=a.txt
  git diff: rotate-to=a.txt color-moved-ws=no
  git log: word-diff=plain diff-algorithm=myers diff-filter=A ws-error-highlight=all find-object=HEAD:a.txt color-moved-ws=no
  git log: no-walk=sorted ancestry-path=HEAD L=1,2:a.txt diff-merges=off
  git rev-list: no-walk=sorted ancestry-path=HEAD disk-usage=human
  git shortlog: w=9,1,2 group=author
  git blame: ignore-rev=HEAD L=1,2
  git annotate: L=1,2
  git rev-parse: abbrev=4 abbrev-ref=strict path-format=absolute show-object-format=storage
  git ls-files: format=%(path) with-tree=HEAD
  git ls-tree: format=%(path)
  git config: type=path
  git describe: match=v*
  git for-each-ref: format=%(refname)
  git branch: format=%(refname)
  git tag: format=%(refname)
`);

export function sampleValue({ table, name, signs }: TableRow): string {
  const found = values.get(`${table.name} ${name}`) ?? values.get(`* ${name}`);
  if (found !== undefined) return found;
  return signs.includes("<") ? "b.txt" : "1";
}

/** Options that need others beside them, or other operands; the words are in place of the operands. */
const companions = readPairs(`
  rg --type-list:
  rg --files: sub
  rg --pcre2-version:
  fd --strip-cwd-prefix: a
  fd --search-path: a
  grep -e: a.txt
  grep --regexp: a.txt
  grep -f: a.txt
  grep --file: a.txt
  rg -e: a.txt
  rg --regexp: a.txt
  rg -f: a.txt
  rg --file: a.txt
  tr -d: a
  tr --delete: a
  column -x: a.txt
  column --fillrows: a.txt
  column -r: -i 1 -p 1 -t -N 1 a.txt
  column --tree: -i 1 -p 1 -t -N 1 a.txt
  id -n: -u
  id --name: -u
  id -r: -u
  id --real: -u
  id -z: -u
  id --zero: -u
  cut -d: -f1 a.txt
  cut --delimiter: -f1 a.txt
  cut -s: -f1 a.txt
  cut --only-delimited: -f1 a.txt
  cut -n: -b1 a.txt
  cut -z: -b1 a.txt
  cut --zero-terminated: -b1 a.txt
  cut --complement: -b1 a.txt
  cut --output-delimiter: -b1 a.txt
  cksum -l: -a blake2b a.txt
  cksum --length: -a blake2b a.txt
  sed -e: a.txt
  sed --expression: a.txt
  diff --from-file: a.txt
  diff --to-file: a.txt
  pgrep -P: .
  pgrep --parent: .
  pgrep -u: .
  pgrep --euid: .
  pgrep -U: .
  pgrep --uid: .
  pgrep -G: .
  pgrep --group: .
  shuf -i:
  shuf --input-range:
  readelf -W: -h binary
  readelf --wide: -h binary
  git diff --combined-all-paths: -c
  git diff --merge-base: side
  git diff --no-index: a.txt a.txt
  git log --combined-all-paths: -c
  git log --grep-reflog: -g
  git log --follow: a.txt
  git log -L:
  git rev-list --grep-reflog: -g HEAD
  git rev-list --count: HEAD
  git blame --reverse: HEAD~1..HEAD -- a.txt
  git grep -e: a.txt
  git worktree -z: --porcelain
  git grep --not: -e a
  git grep --or: -e a --or -e b
  git grep --exclude-standard: --untracked a
  git ls-files -i: -c -x *.x
  git ls-files --ignored: -c -x *.x
  git name-rev --all:
  git show-ref --verify: refs/heads/main
  git check-ignore -n: -v a.ignored
  git check-ignore --non-matching: -v a.ignored
  git cat-file --mailmap: -p HEAD
  git cat-file --use-mailmap: -p HEAD
  git cat-file --no-mailmap: -p HEAD
  git check-attr -a: a.txt
  git check-attr --all: a.txt
  git remote --all: get-url origin
  git remote --push: get-url origin
  git config -l:
  git config --list:
`);

/** A call with nothing but this option and what it needs. */
export function rowWords(row: TableRow): readonly string[] {
  const { table, option, signs, name } = row;
  if (table.name === "git grep" && name === "and") return [...table.command, "-e", "a", option, "-e", "b"];
  const value = sampleValue(row);
  const attached = name.length === 1 ? `${option}${value}` : `${option}=${value}`;
  const given = signs.includes(":") ? [option, value] : [signs.includes("?") ? attached : option];
  const rest = companions.get(`${table.name} ${option}`) ?? columnWords(row) ?? operandsOf(table);
  return isVerbLast(row) ? [...table.command, ...rest, ...given] : [...table.command, ...given, ...rest];
}

/** Most options of `column` belong to tables. */
function columnWords({ table, name }: TableRow): readonly string[] | undefined {
  const isTable = table.name === "column" && /^(?:[nNRHWEOJdeTlLiop]|table-.*|json|tree-.*)$/.test(name);
  return isTable ? ["-t", "-N", "x,y", "a.txt"] : undefined;
}

/** `git remote get-url --all origin`: the option belongs to the verb. */
function isVerbLast({ table, name }: TableRow): boolean {
  return table.name === "git remote" && /^(?:all|push)$/.test(name);
}

function readPairs(text: string): ReadonlyMap<string, readonly string[]> {
  return new Map(
    lines(text).map((line) => {
      const at = line.search(/:(?: |$)/);
      return [
        line.slice(0, at),
        line
          .slice(at + 2)
          .split(" ")
          .filter((word) => word !== ""),
      ];
    }),
  );
}

function readValues(text: string): ReadonlyMap<string, string> {
  return new Map(
    lines(text).flatMap((line) => {
      const at = line.indexOf(": ");
      const pairs = line.slice(at + 2).split(" ");
      return pairs.map((pair): [string, string] => {
        const equals = pair.indexOf("=");
        return [`${line.slice(0, at)} ${pair.slice(0, equals)}`, pair.slice(equals + 1)];
      });
    }),
  );
}

function lines(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
