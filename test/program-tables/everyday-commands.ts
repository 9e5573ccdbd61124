/**
 * Commands that coding agents run all day to look around, one per line, for a folder with `src/`, `test/`, `docs/`,
 * `package.json` and a git repository. All of them only read.
 */
export const everydayCommands: readonly string[] = readList(String.raw`
ps -e | head -5
ps -eo pid,ppid,comm | head
echo $PATH
echo "$OSTYPE"
make --version | head -1
curl --version
case "$OSTYPE" in linux*) echo linux;; *) echo other ;; esac
for f in src/*.ts; do case "$f" in *.test.ts) echo test;; *) echo source;; esac; done
numfmt --to=iec 1048576
ls
ls -la
ls -la src/ test/ 2>/dev/null
ls -lah --color=never
ls -1 src | head -20
ls -lt | head -n 10
ls -R src | head -50
ls -d */
ls -la *.json
ls src/*.ts | wc -l
ls -ltr --time-style=long-iso src
ls node_modules/.bin 2>/dev/null | head
cat package.json
cat -n src/a.ts
cat -A src/a.ts | head -5
cat src/a.ts src/b.ts
cat package.json | head -40
cat README.md 2>/dev/null || echo "no readme"
head -50 src/a.ts
head -n 5 src/*.ts
head -c 200 src/a.ts
tail -20 src/a.ts
tail -n +10 src/a.ts | head -20
tail -n 5 docs/*.md
head -100 src/a.ts | tail -50
nl -ba src/a.ts | sed -n '1,20p'
wc -l src/*.ts
wc -l src/a.ts src/b.ts | tail -1
find . -name "*.ts" -not -path "./node_modules/*" | head -20
find . -type f -name "*.ts" -not -path '*/node_modules/*' -not -path '*/.git/*' | sort
find . -type f | grep -v node_modules | head
find src test -type f \( -name '*.ts' -o -name '*.tsx' \) | sort
find . -maxdepth 2 -type d | sort
find . -maxdepth 1 -type f -printf '%f\n'
find . -path ./node_modules -prune -o -name '*.json' -print
find . -name '*.ts' -newer package.json
find . -mtime -1 -type f
find . -size +100k -type f
find . -type f -name '*.md' -print0
find . -empty
find src -name "*.ts" -exec grep -l "TODO" {} \;
find src -name "*.ts" -type f -exec wc -l {} +
find . -iname '*readme*' 2>/dev/null
find src -type f -name '*.ts' -exec head -5 {} \;
grep -rn "TODO" src
grep -rn "TODO" src --include='*.ts'
grep -rnE "TODO|FIXME" src test | head -30
grep -rln "import" src
grep -n "export function" src/a.ts
grep -rn "foo" . --include=*.ts --exclude-dir=node_modules
grep -c "import" src/*.ts
grep -A 5 -B 2 "export" src/a.ts
grep -A5 "export" src/a.ts
grep -rn -C 3 'value' src | head -40
grep -i "version" package.json
grep -oP '"version":\s*"\K[^"]+' package.json
grep -q "foo" src/a.ts && echo yes || echo no
grep -v '^#' docs/guide.md | grep -v '^$'
grep -rhoE "from '[^']+'" src | sort | uniq -c | sort -rn | head
grep -rn -e '--flag' -e 'value' src
grep -rn "a\.b" src || true
grep -rL "export" src
grep -w "x" src/a.ts
grep -rn --color=never "x" src/
egrep -rn "a|b" src
rg TODO
rg -n "TODO" src
rg -l "export" --type ts
rg --files | head -20
rg --files -g '*.ts'
rg -n --glob '!node_modules' "import .* from" src
rg -uu "x" src
rg -c "import" src
rg -A 3 -B 3 "function" src/a.ts
rg "a|b" -t ts --no-heading -n
rg -i "error" --max-count 5
rg --json "x" src/a.ts | head -5
rg -o "v[0-9]+" package.json
sed -n '1,50p' src/a.ts
sed -n '10,20p;30q' src/a.ts
sed -n 5p src/a.ts
sed -n '/export/,/^}/p' src/a.ts
sed -n '/export/p' src/a.ts | head
sed 's/foo/bar/g' src/a.ts | head -20
sed -e 's/^[ \t]*//' -e '/^$/d' src/a.ts
sed -E 's/([a-z]+)-([0-9]+)/\1 \2/' src/a.ts
sed '/^#/d' docs/guide.md
sed '$d' src/a.ts
sed -n '$=' src/a.ts
sed -n '/start/,/end/{p}' src/a.ts
sed -n '/export/{=;p}' src/a.ts
sed ':a;N;$!ba;s/\n/ /g' src/a.ts
sed 's|/|.|g' src/a.ts
sed 's/[^a-z]//g' src/a.ts
sed -n "s/.*\"version\": \"\(.*\)\".*/\1/p" package.json
awk '{print $1}' src/a.ts
awk -F: '{print $1, $2}' src/a.ts
awk 'NR>=10 && NR<=20' src/a.ts
awk 'NR==5,NR==10 {print NR": "$0}' src/a.ts
awk '/export/ {print FILENAME": "$0}' src/a.ts
awk '{sum+=$1} END {print sum}' src/a.ts
awk -F',' 'NR>1 {print $2}' docs/data.csv
awk '{print NR": "$0}' src/a.ts | head
awk '!seen[$0]++' src/a.ts
awk 'length > 80' src/a.ts
awk 'length($0) > 120 {print FILENAME":"FNR}' src/*.ts
awk '{ printf "%-10s %s\n", $1, $2 }' src/a.ts
awk '{count[$1]++} END {for (k in count) print k, count[k]}' src/a.ts | sort
awk -v n=3 'NR==n' src/a.ts
jq . package.json
jq '.scripts' package.json
jq -r '.name' package.json
jq -r '.dependencies | keys[]' package.json
jq -r '.scripts | to_entries[] | "\(.key): \(.value)"' package.json
jq '.scripts["test"]' package.json
jq -r '.version // "none"' package.json
jq '[.a[]? | select(.b == "x") | {b, c: .d}]' docs/data.json
jq -r '.a[] | [.b, .d] | @tsv' docs/data.json
jq 'length' docs/data.json
jq '.a | map(.d) | add' docs/data.json
jq --arg name x '.a[] | select(.b == $name)' docs/data.json
jq -c '.a[]' docs/data.json | head -3
jq -r 'paths | join(".")' docs/data.json 2>/dev/null
cat package.json | jq -r '.scripts | keys | .[]'
jq 'keys' package.json tsconfig.json
sort docs/data.csv | uniq -c | sort -rn | head -5
sort -t, -k2,2n docs/data.csv
sort -u src/a.ts
cut -d, -f1 docs/data.csv | sort -u
cut -c1-80 src/a.ts
tr -d '\r' < src/a.ts | head -3
tr a-z A-Z < src/a.ts
paste -sd, docs/data.csv
comm -12 docs/data.csv docs/other.csv
column -t -s, docs/data.csv
diff src/a.ts src/b.ts
diff -u src/a.ts src/b.ts | head -50
diff -rq src test
diff <(sort docs/data.csv) <(sort docs/other.csv)
cmp src/a.ts src/b.ts
stat src/a.ts
stat -c '%s %n' src/*.ts
file src/a.ts
du -sh .
du -sh * 2>/dev/null | sort -h
du -h --max-depth=1 . | sort -rh | head
df -h .
tree -L 2
tree -L 2 -I 'node_modules|dist'
tree -a -L 1 --dirsfirst
md5sum src/a.ts src/b.ts
sha256sum package.json
xxd src/a.ts | head -3
xxd -l 64 src/a.ts
hexdump -C src/a.ts | head -3
od -c src/a.ts | head -3
base64 src/a.ts | head -c 40
strings src/a.ts | head
realpath src/a.ts
readlink -f src
basename src/a.ts .ts
dirname src/a.ts
which node npm git
command -v rg
type git
pwd
pwd && ls
whoami
date
date +%Y-%m-%d
date -u +"%Y-%m-%dT%H:%M:%SZ"
uname -a
id
nproc
echo "hello"
echo "$PWD"
echo "exit: $?"
printf '%s\n' a b c
printf "%-20s %5d\n" name 3
node --version
node -v
npm --version
git --version
python3 --version
seq 1 5
seq 5 -1 1
test -f package.json && echo yes
[ -d src ] && ls src || echo none
[[ -f tsconfig.json ]] && cat tsconfig.json
for f in src/*.ts; do echo "== $f"; head -5 "$f"; done
for f in src/a.ts src/b.ts; do wc -l $f; done
for d in src test docs; do echo "$d: $(ls $d | wc -l)"; done
for i in 1 2 3; do echo $i; done
if [ -f package.json ]; then cat package.json; else echo missing; fi
while read -r line; do echo "> $line"; done < docs/data.csv
cat docs/data.csv | while IFS=, read -r a b; do echo "$b $a"; done
cd src && ls
cd src && ls -la && cd ..
cd src; cat a.ts
(cd src && ls)
ls src; echo ---; ls test
ls src && echo ok || echo failed
ls missing 2>&1 | head -5
cat missing 2>/dev/null || true
cat src/a.ts 2>&1
n=$(wc -l < src/a.ts); echo "lines: $n"
echo "files: $(find src -name '*.ts' | wc -l)"
echo "branch: $(git branch --show-current)"
git status
git status --short
git status -sb
git status --porcelain
git status --porcelain=v1 -uno
git log --oneline -10
git log --oneline -n 20 --graph --all
git log -5 --stat
git log -p -1
git log --format='%h %an %s' -10
git log --pretty=format:"%h %ad %s" --date=short -5
git log --since="2 weeks ago" --oneline
git log --author=someone --oneline
git log --oneline main..HEAD
git log --oneline -- src/a.ts
git log --follow -p -- src/a.ts
git log -S'value' --oneline
git log --grep=fix --oneline -i
git log -L 1,5:src/a.ts
git log --name-only --oneline -3
git log --name-status -2
git log -1 --format=%H
git diff
git diff --stat
git diff --cached
git diff --staged --name-only
git diff HEAD
git diff HEAD~1
git diff HEAD~1 HEAD --stat
git diff main...HEAD --name-only
git diff -U5 src/a.ts
git diff --name-status HEAD~1
git diff -- src/a.ts
git diff --no-color | head -100
git diff --check
git diff -w HEAD~1
git diff --word-diff HEAD~1
git diff HEAD~1 -- src | head -20
git show
git show HEAD
git show HEAD --stat
git show --name-only HEAD
git show HEAD:src/a.ts
git show HEAD~1:src/a.ts | head -20
git show HEAD:src/a.ts | sed -n '1,5p'
git show --format='%h %s' --no-patch HEAD
git show -s --format=%ci HEAD
git branch
git branch -a
git branch -vv
git branch --show-current
git branch -r
git branch --merged main
git branch --contains HEAD
git branch --list 'w-*'
git tag
git tag -l 'v*'
git tag --sort=-creatordate | head -5
git remote -v
git remote
git remote get-url origin
git rev-parse HEAD
git rev-parse --short HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-parse --is-inside-work-tree
git rev-parse --git-dir
git rev-list --count HEAD
git rev-list HEAD --max-count=3
git ls-files
git ls-files | head -20
git ls-files 'src/*.ts'
git ls-files --others --exclude-standard
git ls-files -m
git ls-tree -r --name-only HEAD
git ls-tree HEAD src/
git blame src/a.ts
git blame -L 1,3 src/a.ts
git grep -n value
git grep -l 'export' -- 'src/*.ts'
git stash list
git worktree list
git reflog -5
git reflog
git shortlog -sn HEAD
git describe --tags --always
git merge-base main HEAD
git config --get user.name
git config user.email
git config --get remote.origin.url
git check-ignore -v node_modules
git cat-file -p HEAD
git cat-file -t HEAD
git symbolic-ref --short HEAD
git diff-tree --no-commit-id --name-only -r HEAD
git --no-pager log --oneline -3
git --no-pager diff --stat
git status && git diff --stat
git status; git log --oneline -3
git diff --quiet || echo changed
git log --oneline | wc -l
git log --oneline | grep -i first
git for-each-ref --sort=-committerdate --format='%(refname:short)' refs/heads
git count-objects -vH
git ls-files | grep -E '\.ts$' | sed 's|/[^/]*$||' | sort | uniq -c
git log --format='%an' | sort | uniq -c | sort -rn
git diff --numstat HEAD~1 | awk '{add+=$1; del+=$2} END {print add, del}'
timeout 10 grep -rn x src
time ls
sleep 1; ls
ls -la && git status --short && git log --oneline -5
cat package.json | grep '"name"'
cat src/a.ts | tr -s ' ' | cut -d' ' -f1 | sort | uniq
find src -type f | sed 's/.*\.//' | sort | uniq -c | sort -rn
grep -n "name" package.json | head -3; echo "---"; sed -n '1,3p' src/a.ts
echo '{"a": 1}' | jq .a
test -x src/a.ts; echo $?
ls *.md *.json 2>/dev/null
cat src/{a,b}.ts
head -5 src/a.ts; echo; head -5 src/b.ts
echo "--- a"; cat src/a.ts; echo "--- b"; cat src/b.ts
fold -w 80 -s README.md | head
expand -t 2 src/a.ts | head -2
tac src/a.ts | head -1
rev src/a.ts | head -1
join -t, docs/data.csv docs/other.csv
basename "$(pwd)"
dirname "$(realpath src/a.ts)"
grep -rn "x" src | awk -F: '{print $1}' | sort | uniq -c
grep -n '' src/a.ts | sed -n '2p'
ls -l --block-size=K src
git log --oneline --decorate --graph -5
git log --merges --oneline -3
git log --diff-filter=A --name-only --format= -3
git log --reverse --oneline | head -1
git log HEAD~1..HEAD --format=%B
git show-ref --heads
git diff --summary HEAD~1
git diff --color=always HEAD~1 | head -5
git diff --ignore-all-space HEAD~1
git name-rev HEAD
git var GIT_AUTHOR_IDENT
git show-branch
git diff-index --name-only HEAD
git diff-files --name-only
git -C . status
cd src && git status
cd src && git log --oneline -3
find src -name '*.ts' | xargs wc -l
find . -name '*.ts' -not -path '*/node_modules/*' | xargs grep -ln value
find src -name '*.ts' -print0 | xargs -0 grep -n value
grep -rl value src | xargs sed -n '1,3p'
`);

/** Commands that only read too, but by names or programs that are not known beforehand: they ask. */
export const askingCommands: readonly string[] = readList(`
wc -l $(find src -name '*.ts')
cat $(git ls-files 'src/*.ts' | head -1)
env | grep -i node
git ls-files 'src/*' | xargs wc -l
cat package.json | python3 -m json.tool
`);

function readList(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}
