/** Tests the built documentation site in a browser: every page, its links, search, both colour schemes, narrow screens. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launchBrowser, missingBrowser } from "../test/studio/sample-sessions.ts";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** Resolves to a line that says what was checked, and rejects with all problems. */
export async function checkSite(folder: string, base: string): Promise<string> {
  if (missingBrowser !== undefined) throw new Error(`The site cannot be tested: ${missingBrowser}.`);
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const inside = normalize(decodeURIComponent(pathname).slice(base.length - 1));
    const file = join(folder, inside.endsWith("/") ? `${inside}index.html` : inside);
    const found = [file, `${file}.html`].find((each) => extname(each) !== "" && isFile(each));
    if (found === undefined) return response.writeHead(404).end();
    return response.writeHead(200, { "content-type": types[extname(found)] ?? "" }).end(readFileSync(found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await launchBrowser();
  try {
    const problems: string[] = [];
    const pages = await visitAll(browser, `${origin}${base}`, problems);
    problems.push(...(await searchProblems(browser, `${origin}${base}`)));
    if (problems.length > 0) throw new Error(`The site has problems:\n${problems.join("\n")}`);
    return `${pages} pages, dark and light, 390 and 1280 px: links, search and accessibility are in order.`;
  } finally {
    await browser.close();
    server.close();
  }
}

/** Follows every link from the first page, and tests each page once. */
async function visitAll(browser: Browser, start: string, problems: string[]): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  let at = start;
  page.on("pageerror", (error) => problems.push(`${at}: ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${at}: ${response.url()} answered ${response.status()}`);
  });
  const anchors = new Map<string, Set<string>>();
  const wanted: { from: string; to: string; anchor: string }[] = [];
  const queue = [start];
  const seen = new Set(queue);
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    at = next;
    await page.goto(next);
    const { links, ids } = await page.evaluate<{ links: string[]; ids: string[] }>(`({
      links: [...document.querySelectorAll("a[href]")].map((link) => link.href),
      ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
    })`);
    anchors.set(next, new Set(ids));
    for (const link of links) {
      const target = new URL(link);
      if (target.origin !== new URL(start).origin) continue;
      const anchor = decodeURIComponent(target.hash.slice(1));
      target.hash = "";
      if (anchor !== "") wanted.push({ from: next, to: target.href, anchor });
      if (seen.has(target.href) || extname(target.pathname) === ".md") continue;
      seen.add(target.href);
      queue.push(target.href);
    }
    problems.push(...(await layoutProblems(page)).map((problem) => `${next}: ${problem}`));
  }
  for (const { from, to, anchor } of wanted)
    if (anchors.get(to)?.has(anchor) === false) problems.push(`${from}: no #${anchor} on ${to}`);
  await context.close();
  return seen.size;
}

/** What is wider than a narrow screen, and what a screen reader would miss, in both colour schemes. */
async function layoutProblems(page: Page): Promise<string[]> {
  const problems: string[] = [];
  await page.setViewportSize({ width: 390, height: 800 });
  const width = await page.evaluate<number>("document.documentElement.scrollWidth");
  if (width > 390) problems.push(`is ${width} px wide at 390 px`);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.evaluate(readFileSync(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8"));
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as {
        axe: {
          run(
            where: object,
            how: object,
          ): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
        };
      };
      const { violations } = await axe.run(
        { include: ["main, .VPContent"] },
        { resultTypes: ["violations"] },
      );
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`);
    });
    problems.push(...found.map((violation) => `${colorScheme}: ${violation}`));
  }
  return problems;
}

async function searchProblems(browser: Browser, start: string): Promise<string[]> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(start);
  await page
    .getByRole("button", { name: /search/i })
    .first()
    .click();
  await page.locator("#localsearch-input").fill("acceptEdits");
  const first = page.locator("#localsearch-list a").first();
  await first.waitFor({ timeout: 10_000 });
  await first.click();
  await page
    .waitForURL((address) => address.pathname.includes("accept"), { timeout: 10_000 })
    .catch(() => undefined);
  const found = page.url();
  await page.close();
  return found === start ? ["the search for acceptEdits leads nowhere"] : [];
}

function isFile(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}
