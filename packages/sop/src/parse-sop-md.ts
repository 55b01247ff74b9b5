/**
 * `SOP.md` (§4.3): the steps of a procedure, in the section `## Steps`. Line by line:
 * `1. **Title** - body` begins a step, `- tools: …` and its like set it up, and whatever else stands below is its body.
 */
import type { SopStep } from '@sluice/sdk'
import { type MarkdownLine, type MdProblem, readLines } from './markdown-lines.ts'
import { readSetting, type StepSettings } from './step-settings.ts'

export interface ParsedSteps {
  readonly steps: readonly SopStep[]
  /** Where each step begins, from 1. */
  readonly lines: readonly number[]
  readonly problems: readonly MdProblem[]
}

export const STEPS_MAX = 200

const STEP = /^(?<number>\d{1,9})\.(?:\s+|(?=\*\*)|$)(?<text>.*)$/s
const BOLD = /^\*\*(?<title>.*?)\*\*\s*(?:[-–—:]\s*)?(?<body>.*)$/s

interface OpenStep {
  readonly number: number
  readonly line: number
  readonly title: string
  readonly body: string[]
  readonly settings: Map<keyof StepSettings, unknown>
}

/** Never throws. With problems, the steps are as far as they could be read. */
export function parseSopMd(text: string): ParsedSteps {
  const problems: MdProblem[] = []
  const section = stepsSection(readLines(text, problems), problems)
  const opened: OpenStep[] = []
  for (const line of section) {
    const step = line.isCode ? undefined : beginStep(line, opened.at(-1), problems)
    if (step) opened.push(step)
    else addLine(opened.at(-1), line, problems)
  }
  if (section.length > 0 && opened.length === 0) {
    problems.push({ message: 'there are no steps: one looks like `1. **Title** - what to do`, from the start of its line' })
  }
  const [over] = opened.slice(STEPS_MAX)
  if (over) problems.push({ line: over.line, message: `there are more than ${STEPS_MAX} steps` })
  return { steps: opened.map(asStep), lines: opened.map(({ line }) => line), problems }
}

/** The lines between `## Steps` and the next heading of its level or the one above. */
function stepsSection(lines: readonly MarkdownLine[], problems: MdProblem[]): MarkdownLine[] {
  const section: MarkdownLine[] = []
  let state: 'before' | 'in' | 'behind' = 'before'
  for (const line of lines) {
    const isHeading = !line.isCode && /^#{1,2}\s/.test(line.text)
    const isSteps = isHeading && /^## \s*steps[\s#]*$/i.test(line.text)
    if (isSteps && state !== 'before') problems.push({ line: line.number, message: 'there is a second section `## Steps`' })
    if (isSteps) state = 'in'
    else if (isHeading && state === 'in') state = 'behind'
    // The heading stays: with it, a section without a line is told from none.
    if (state === 'in') section.push(isSteps ? { ...line, text: '' } : line)
  }
  if (section.length === 0) problems.push({ message: 'there is no section `## Steps`' })
  return section
}

function beginStep({ text, number: line }: MarkdownLine, before: OpenStep | undefined, problems: MdProblem[]): OpenStep | undefined {
  const groups = STEP.exec(text)?.groups
  if (!groups) return undefined
  const number = Number(groups.number)
  const next = (before?.number ?? 0) + 1
  if (number !== next) {
    const found = number === before?.number ? `there is a step ${number} already` : `this is step ${number}`
    problems.push({ line, column: 1, message: `${found}; the next is number ${next}` })
  }
  const { title, body } = titleOf(groups.text ?? '')
  if (title === '') problems.push({ line, column: 1, message: `step ${number} has no title` })
  if (title.startsWith('**'))
    problems.push({ line, column: 1, message: `the title of step ${number} does not end: its closing ** is missing` })
  return { number, line, title, body: body === '' ? [] : [body], settings: new Map() }
}

/** Without bold letters at its start the whole line is the title. */
function titleOf(text: string): { readonly title: string; readonly body: string } {
  const { title = text, body = '' } = BOLD.exec(text)?.groups ?? {}
  return { title: title.trim(), body: body.trim() }
}

/** Prose in front of the first step belongs to nobody. */
function addLine(step: OpenStep | undefined, line: MarkdownLine, problems: MdProblem[]): void {
  if (!step) return
  const setting = line.isCode ? undefined : readSetting(line.text)
  if (!setting) return void step.body.push(line.text)
  const place = { line: line.number, column: setting.column }
  if ('message' in setting) problems.push({ ...place, message: setting.message })
  else if (step.settings.has(setting.key)) problems.push({ ...place, message: `\`${setting.key}\` is set twice in step ${step.number}` })
  else step.settings.set(setting.key, setting.value)
}

function asStep({ title, body, settings }: OpenStep, index: number): SopStep {
  const given = Object.fromEntries(settings) as Partial<StepSettings>
  return {
    number: index + 1,
    title,
    body: dedent(body)
      .join('\n')
      .replace(/^(?:[ \t]*\n)+/, '')
      .trimEnd(),
    tools: given.tools ?? null,
    requiresConfirmation: given.requires_confirmation ?? false,
    kind: given.kind ?? 'execute',
    input: given.input ?? null,
    output: given.output ?? null,
  }
}

/** Takes off what all lines below the title are indented by. */
function dedent([first, ...rest]: readonly string[]): string[] {
  const indents = rest.filter((line) => line.trim() !== '').map((line) => line.length - line.trimStart().length)
  const common = Math.min(...indents, Number.MAX_SAFE_INTEGER)
  return [first ?? '', ...rest.map((line) => line.slice(common))]
}
