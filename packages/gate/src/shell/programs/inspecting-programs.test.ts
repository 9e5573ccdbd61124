import { describe, expect, it } from "vitest";
import { decide, type PermissionPolicy } from "../../decide.ts";
import { gatherCallFacts } from "../../gather-call-facts.ts";

const policy: PermissionPolicy = {
  mode: "default",
  allow: [],
  ask: [],
  deny: [],
  workingDirectories: ["/p"],
  home: "/h",
  trusted: true,
};

async function judge(command: string) {
  const call = { tool: "Bash", effect: "execute", input: { command } };
  return decide(await gatherCallFacts(call, { policy, directory: "/p" }), policy);
}

describe("[PRM-9] commands of every day that only read need no question", () => {
  it.each([
    "ps -e",
    "ps -eo pid,comm --sort=-%mem | head",
    "zcat a.gz | head",
    "gzip -l a.gz",
    "gunzip -c a.gz",
    "xz -l a.xz",
    "less a.txt",
    "ls | more",
    "shuf -n1 a.txt",
    "nm a.o",
    "lscpu",
    "getconf ARG_MAX",
    "numfmt --to=iec 1024",
    "printenv PATH",
    "echo $PATH $OSTYPE",
    "make --version",
    "java -version",
    "kubectl version --client",
    "git -c color.ui=always log -1",
    "git -c core.pager=cat log -1",
    "GIT_PAGER=cat git log -1",
    "pushd src && ls && popd",
    "pushd src && popd && cat a.txt",
    'case "$OSTYPE" in linux*) echo linux;; *) echo other;; esac',
    "for ((i=0; i<3; i++)); do echo $i; done",
    "for ((i=0,j=3; i<j; i++,j--)); do echo $i $j; done",
    "help cd",
  ])("%s", async (command) => {
    expect(await judge(command)).toMatchObject({ type: "allow", allowedBy: "read-only" });
  });

  it.each([
    "ps aux",
    "ps -ef",
    "ps x",
    "ps 1",
    "ps -eo pid,cmd",
    "pgrep -fa node",
    "ps auxe",
    "ps e",
    "ps -auxe",
    "ps -eo pid,environ",
    "zcat /etc/a.gz",
    "gzip -d a.gz",
    "gzip -k a.txt",
    "gzip -cr src",
    "less +!ls a.txt",
    "less -o b a.txt",
    "shuf -o b a.txt",
    "nm @a",
    "getconf -v x ARG_MAX",
    "printenv",
    "printenv AWS_SECRET_ACCESS_KEY",
    "echo $AWS_SECRET_ACCESS_KEY",
    `echo \${TOKEN:-none}`,
    "cargo --version",
    "yarn --version",
    "mvn --version",
    "./make --version",
    "make --version -f evil.mk",
    "PATH=. make --version",
    "git -c core.pager=less log",
    "git -c diff.external=x diff",
    "git -c alias.log=!x log",
    "GIT_PAGER=less git log -1",
    "pushd /etc && ls",
    "pushd +1 && ls",
    "pushd src; popd; popd; pushd ..; ls",
    "case x in a) touch b;; esac",
    "echo a;; echo b",
    "for ((i=0; i<$N; i++)); do echo $i; done",
    "for ((i=0; i<3; i++)); do i=$(cat a.txt); done",
    "for ((i=0; i<3; i++)); do touch $i; done",
    "for ((i=a[$(touch b)]; i<3; i++)); do echo $i; done",
    "npm ls",
  ])("but not %s", async (command) => {
    expect((await judge(command)).type).toBe("ask");
  });

  it("a pager runs as cat, and a loop that counts keeps its numbers in private variables", async () => {
    expect((await judge("less -N a.txt")).run?.command).toBe("cat -- a.txt");
    expect((await judge("for ((i=0; i<2; i++)); do echo $i; done")).run?.command).toContain("_r_i < 2");
  });
});
