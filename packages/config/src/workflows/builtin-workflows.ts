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
const finding = {
  type: 'object',
  properties: { file: { type: 'string' }, line: { type: 'number' }, problem: { type: 'string' }, evidence: { type: 'string' } },
  required: ['file', 'problem', 'evidence'],
}
const findings = { type: 'array', items: finding }

phase('Look')
const reviews = await parallel(lenses.map((lens) => () =>
  agent('Review the changes of this repository against ' + base + ' (git diff ' + base + '...HEAD, and what is not committed) for one thing only: ' + lens + '.'
    + ' Read the code around each change. Report only what you can show in the code.', {
    label: lens,
    schema: { type: 'object', properties: { findings }, required: ['findings'] },
  })))
const notReviewed = lenses.filter((lens, index) => !reviews[index])
if (notReviewed.length === lenses.length) throw new Error('No review was finished, so nothing is known about the changes.')
const found = reviews.flatMap((review, index) => (review ? review.findings.map((one) => ({ ...one, lens: lenses[index] })) : []))
log('findings: ' + found.length + (notReviewed.length > 0 ? '; not reviewed: ' + notReviewed.join(', ') : ''))
if (found.length === 0) return { summary: 'Nothing was found.', findings: [], notReviewed }

phase('Judge')
const judged = await agent('Several reviewers looked at the changes against ' + base + '. Check each finding below in the code yourself.'
  + ' Keep those that are true and matter, merge those that say the same, most serious first.\\n' + JSON.stringify(found), {
  label: 'judge',
  schema: { type: 'object', properties: { summary: { type: 'string' }, findings }, required: ['summary', 'findings'] },
})
if (!judged) throw new Error('The findings were not judged. A resume takes them from the journal and asks the judge again.')
return { ...judged, notReviewed }
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
  if (!found) throw new Error('The files could not be listed. Name them with args.files, or resume the run.')
  files = found.files
}
log('files: ' + files.length)

const verdict = { type: 'object', properties: { passes: { type: 'boolean' }, reason: { type: 'string' } }, required: ['passes', 'reason'] }
const worked = await pipeline(files,
  (file) => agent('Work on the file ' + file + ' only: ' + args.task, { label: file, phase: 'Work' }),
  async (report, file) => ({
    file,
    report,
    check: await agent('Another agent worked on ' + file + ' with this task: ' + args.task + '\\nIts report: ' + report
      + '\\nCheck the file itself' + (args.check ? ': ' + args.check : ' against the task') + '. Change nothing.', {
      label: 'check ' + file,
      phase: 'Check',
      schema: verdict,
    }),
  }))
const results = worked.filter(Boolean)
return {
  passed: results.filter(({ check }) => check && check.passes).length,
  failed: results.filter(({ check }) => !check || !check.passes).map(({ file }) => file),
  notFinished: files.filter((file, index) => !worked[index]),
  results,
}
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
const claim = { type: 'object', properties: { claim: { type: 'string' }, source: { type: 'string' } }, required: ['claim', 'source'] }
const listOf = (name, items) => ({ type: 'object', properties: { [name]: { type: 'array', items } }, required: [name] })

phase('Plan')
const plan = await agent('Name up to ' + ((args && args.angles) || 4) + ' different directions from which this question should be looked into, each one sentence: ' + question, {
  label: 'plan',
  schema: listOf('angles', { type: 'string' }),
})
const angles = plan ? plan.angles : [question]

const checked = await pipeline(angles,
  (angle) => agent('Look into this, for the question "' + question + '": ' + angle
    + '\\nReport claims, each with its source (an address, or a file with its line). No claim without a source you have opened.', {
    label: angle,
    phase: 'Search',
    schema: listOf('claims', claim),
  }),
  (found, angle) => agent('Open the source of each claim and keep only the claims that their source really supports, corrected where they overstate:\\n' + JSON.stringify(found.claims), {
    label: 'check ' + angle,
    phase: 'Check',
    schema: listOf('claims', claim),
  }))
const claims = checked.filter(Boolean).flatMap((one) => one.claims)
const notSearched = angles.filter((angle, index) => !checked[index])
if (claims.length === 0) throw new Error('No claim with a source that supports it was found.')

phase('Write')
const answer = await agent('Answer this question from the claims below and nothing else; cite the source behind each sentence, and say what stays open.\\n' + question + '\\n' + JSON.stringify(claims), { label: 'write' })
return { answer, claims, notSearched }
`,
  ),
];
