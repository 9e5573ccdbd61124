import { readFileSync } from "node:fs";

/** Written by scripts/docs-site.ts, which makes every page below `pages/` too. */
const groups = JSON.parse(readFileSync(new URL("../pages/groups.json", import.meta.url), "utf8"));
const repository = JSON.parse(
  readFileSync(new URL("../pages/site.json", import.meta.url), "utf8"),
).repository;

const item = ({ title, link }) => ({ text: title, link });

export default {
  title: "Retinue",
  description: "The subagent runtime for TypeScript",
  lang: "en",
  srcDir: "pages",
  outDir: "dist",
  cacheDir: ".cache",
  base: process.env.RETINUE_SITE_BASE ?? "/",
  cleanUrls: false,
  head: [
    ["link", { rel: "icon", type: "image/svg+xml", href: `${process.env.RETINUE_SITE_BASE ?? "/"}mark.svg` }],
  ],
  // Text such as <name> on the pages is text, never a component.
  markdown: {
    html: false,
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(md) {
      // Indented code scrolls like a fenced block.
      md.renderer.rules.code_block = (tokens, at, ...rest) => {
        tokens[at].info = "text";
        return md.renderer.rules.fence(tokens, at, ...rest);
      };
      // The corner above a column of names is no header.
      md.core.ruler.push("empty-corner", ({ tokens }) => {
        for (const [at, token] of tokens.entries())
          if (token.type === "th_open" && tokens[at + 1]?.content === "") {
            token.tag = "td";
            tokens[at + 2].tag = "td";
          }
      });
    },
  },
  themeConfig: {
    logo: "/mark.svg",
    nav: groups.map(({ title, pages }) => ({
      text: title,
      link: pages[0].link,
      activeMatch: `^/(${pages.map(({ link }) => link.slice(1)).join("|")})`,
    })),
    sidebar: groups.map(({ title, pages }) => ({ text: title, items: pages.map(item) })),
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: repository }],
    footer: { message: "MIT licence. Every example on these pages is run by the tests." },
  },
};
