import type { WorkflowMeta } from "./workflow-meta.ts";

/** A workflow that comes with the product: what it says about itself can be shown without parsing its text. */
export interface BuiltinWorkflow {
  readonly meta: WorkflowMeta;
  readonly text: string;
}

function builtin(meta: WorkflowMeta, body: string): BuiltinWorkflow {
  return { meta, text: `export const meta = ${JSON.stringify(meta, undefined, 2)};\n${body}` };
}

/** The workflows that come with the product, each small enough to read and to copy. */
export const builtinWorkflows: readonly BuiltinWorkflow[] = [
  builtin(
    {
      name: "review-diff",
      description:
        "Reviews the changes of this branch through several lenses, and lets a judge keep what holds",
      whenToUse: 'Before a change is handed in. args: { base?: "main", lenses?: ["…"] }',
      phases: [{ title: "Look" }, { title: "Judge" }],
    },
    `const base = (args && args.base) || 'main'
const lenses = (args && args.lenses) || ['bugs and broken edge cases', 'security', 'tests that are missing or cannot fail', 'names and structure']
const findings = {
  type: 'object',
  properties: { findings: { type: 'array', items: { type: 'object', properties: { file: { type: 'string' }, line: { type: 'number' }, problem: { type: 'string' }, evidence: { type: 'string' } }, required: ['file', 'problem', 'evidence'] } } },
  required: ['findings'],
}
phase('Look')
const seen = await parallel(lenses.map((lens) => () =>
  agent('Review the changes of this repository against ' + base + ' (git diff ' + base + '...HEAD, and what is not committed) for one thing only: ' + lens + '. Read the code around each change. Report only what you can show in the code.', { label: lens, schema: findings })))
const all = seen.flatMap((one, index) => (one ? one.findings.map((finding) => ({ ...finding, lens: lenses[index] })) : []))
log(all.length + ' findings')
if (all.length === 0) return { findings: [], summary: 'Nothing was found.' }
phase('Judge')
return await agent('Several reviewers looked at the changes against ' + base + '. Check each finding below in the code yourself. Keep those that are true and matter, merge those that say the same, most serious first.\\n' + JSON.stringify(all), {
  label: 'judge',
  schema: { type: 'object', properties: { summary: { type: 'string' }, findings: findings.properties.findings }, required: ['summary', 'findings'] },
})
`,
  ),
  builtin(
    {
      name: "sweep-files",
      description: "Does the same piece of work on many files, each with a check of its own",
      whenToUse:
        'The same change or question for many files. args: { task: "…", files?: ["…"], pattern?: "…", check?: "…" }',
      phases: [{ title: "Find" }, { title: "Work" }, { title: "Check" }],
    },
    `if (!args || !args.task) throw new Error('args.task must say what to do with each file.')
let files = args.files
if (!files) {
  phase('Find')
  const found = await agent('List the files of this repository for this work, as paths from its root: ' + (args.pattern || args.task), {
    label: 'find',
    schema: { type: 'object', properties: { files: { type: 'array', items: { type: 'string' } } }, required: ['files'] },
  })
  files = found ? found.files : []
}
log(files.length + ' files')
const results = await pipeline(files,
  (file) => agent('Work on the file ' + file + ' only: ' + args.task, { label: file, phase: 'Work' }),
  async (report, file) => ({
    file,
    report,
    check: await agent('Somebody worked on ' + file + ' with this task: ' + args.task + '\\nTheir report: ' + report + '\\nCheck the file itself' + (args.check ? ': ' + args.check : ' against the task') + '. Change nothing.', {
      label: 'check ' + file,
      phase: 'Check',
      schema: { type: 'object', properties: { passes: { type: 'boolean' }, reason: { type: 'string' } }, required: ['passes', 'reason'] },
    }),
  }))
const done = results.filter(Boolean)
return { files: files.length, passed: done.filter(({ check }) => check && check.passes).length, results: done }
`,
  ),
  builtin(
    {
      name: "research",
      description: "Answers a question from several directions, with every claim checked against its source",
      whenToUse: 'A question that needs sources. args: { question: "…", angles?: 4 } or the question itself',
      phases: [{ title: "Plan" }, { title: "Search" }, { title: "Check" }, { title: "Write" }],
    },
    `const question = typeof args === 'string' ? args : args && args.question
if (!question) throw new Error('args must be the question, or { question }.')
const list = (name, item) => ({ type: 'object', properties: { [name]: { type: 'array', items: item } }, required: [name] })
phase('Plan')
const plan = await agent('Name up to ' + ((args && args.angles) || 4) + ' different directions from which this question should be looked into, each one sentence: ' + question, { label: 'plan', schema: list('angles', { type: 'string' }) })
const claims = list('claims', { type: 'object', properties: { claim: { type: 'string' }, source: { type: 'string' } }, required: ['claim', 'source'] })
const checked = await pipeline(plan ? plan.angles : [question],
  (angle) => agent('Look into this, for the question "' + question + '": ' + angle + '\\nReport claims, each with its source (an address, or a file with its line). No claim without a source you have opened.', { label: angle, phase: 'Search', schema: claims }),
  (found, angle) => agent('Open the source of each claim and keep only the claims that their source really supports, corrected where they overstate:\\n' + JSON.stringify(found.claims), { label: 'check ' + angle, phase: 'Check', schema: claims }))
const kept = checked.filter(Boolean).flatMap((one) => one.claims)
phase('Write')
return { answer: await agent('Answer this question from the claims below and nothing else; cite the source behind each sentence, and say what stays open.\\n' + question + '\\n' + JSON.stringify(kept), { label: 'write' }), claims: kept }
`,
  ),
];
