/** The style of the page; light or dark as the reader's system is. */
export const pageStyle = `
:root { color-scheme: light dark; --text: #1c2024; --soft: #60666d; --line: #d9dde1; --back: #fff; --panel: #f5f6f8;
  --model: #2f6fdb; --tool: #2c9a5b; --failed: #d4572a; --refused: #c2185b; --other: #c5cbd1; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ea; --soft: #9aa1a8; --line: #343a40; --back: #14171a; --panel: #1d2125;
    --model: #6aa0ff; --tool: #4cc282; --failed: #ff8a5c; --refused: #ff6b9d; --other: #4a5158; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.soft, th { color: var(--soft); }
.bad { color: var(--failed); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.figures div { background: var(--panel); border-radius: .4rem; padding: .5rem .75rem; }
.figures b { display: block; font-size: 1.1rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
.row { display: grid; grid-template-columns: 15rem 1fr; gap: .75rem; align-items: center; }
.row a { color: inherit; text-decoration: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.row a:hover { text-decoration: underline; }
svg { display: block; width: 100%; height: 1rem; background: var(--panel); }
.model { fill: var(--model); } .tool { fill: var(--tool); } .failed { fill: var(--failed); }
.refused { fill: var(--refused); } .other { fill: var(--other); }
.legend span { display: inline-block; margin-right: 1rem; }
.legend svg { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; vertical-align: -.08rem; }
.deep1 { padding-left: 1rem; } .deep2 { padding-left: 2rem; } .deep3 { padding-left: 3rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .6rem; border-radius: .4rem;
  max-height: 20rem; overflow: auto; font-size: .85rem; }
button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: .3rem;
  padding: .15rem .6rem; cursor: pointer; }
`;
