/**
 * Parses `SOP.md`: the steps of a procedure, in its section `## Steps`. A line `1. **Title** - body` begins a step, bullets such
 * as `- tools: …` configure it, and all other lines are its body. Lines in fenced code blocks are always body.
 */
import type { SopStep } from '@sluice/sdk'
import { readSetting, type StepSettings } from './step-settings.ts'

export interface MdProblem {
  /** Counts from 1; absent when the problem is about the whole file. */
  readonly line?: number
  readonly column?: number
  readonly message: string
}

/** The steps of a file with their positions. */
export interface ParsedSteps {
  readonly steps: readonly SopStep[]
  /** The line of each step, counted from 1. */
  readonly lines: readonly number[]
  readonly problems: readonly MdProblem[]
}

export const STEPS_MAX = 200

const STEP = /^(?<number>\d{1,9})\.(?:\s+|(?=\*\*)|$)(?<text>.*)$/s
const BOLD = /^\*\*(?<title>.*?)\*\*\s*(?:[-–—:]\s*)?(?<body>.*)$/s
const FENCE = /^\s*(?<fence>`{3,}|~{3,})(?<info>.*)$/s

interface MarkdownLine {
  /** Counts from 1. */
  readonly number: number
  readonly text: string
  /** True for the lines of a code block and for its fences. */
  readonly isCode: boolean
}

interface OpenStep {
  readonly number: number
  readonly line: number
  readonly title: string
  readonly body: string[]
  readonly settings: Map<keyof StepSettings, unknown>
}

/** Never throws. When there are problems, `steps` holds the steps that could be read. */
export function parseSopMd(text: string): ParsedSteps {
  const problems: MdProblem[] = []
  const section = stepsSection(markdownLines(text, problems), problems)
  const opened: OpenStep[] = []
  for (const line of section) {
    const step = line.isCode ? undefined : beginStep(line, opened.at(-1), problems)
    if (step) opened.push(step)
    else addLine(opened.at(-1), line, problems)
  }
  if (section.length > 0 && opened.length === 0) {
    problems.push({ message: 'there are no steps; a step looks like `1. **Title** - what to do` and is not indented' })
  }
  const [over] = opened.slice(STEPS_MAX)
  if (over) problems.push({ line: over.line, message: `there are more than ${STEPS_MAX} steps` })
  return { steps: opened.map(asStep), lines: opened.map(({ line }) => line), problems }
}

/** An unclosed code block would swallow the rest of the file, so it is a problem. */
function markdownLines(text: string, problems: MdProblem[]): MarkdownLine[] {
  let open: { readonly fence: string; readonly line: number } | undefined
  const lines = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .map((line, index): MarkdownLine => {
      const number = index + 1
      const { fence, info = '' } = FENCE.exec(line)?.groups ?? {}
      const wasOpen = open !== undefined
      if (open && fence?.startsWith(open.fence) && info.trim() === '') open = undefined
      else if (!open && fence && !(fence.startsWith('`') && info.includes('`'))) open = { fence, line: number }
      return { number, text: line, isCode: wasOpen || open !== undefined }
    })
  if (open) problems.push({ line: open.line, column: 1, message: 'this code block does not end' })
  return lines
}

/** Returns the lines from `## Steps` to the next heading of level 1 or 2. */
function stepsSection(lines: readonly MarkdownLine[], problems: MdProblem[]): MarkdownLine[] {
  const section: MarkdownLine[] = []
  let state: 'before' | 'inside' | 'after' = 'before'
  for (const line of lines) {
    const isHeading = !line.isCode && /^#{1,2}\s/.test(line.text)
    const isSteps = isHeading && /^## \s*steps[\s#]*$/i.test(line.text)
    if (isSteps && state !== 'before') problems.push({ line: line.number, message: 'there is a second section `## Steps`' })
    if (isSteps) state = 'inside'
    else if (isHeading && state === 'inside') state = 'after'
    // The heading's own line is kept, so that an empty section differs from a missing one.
    if (state === 'inside') section.push(isSteps ? { ...line, text: '' } : line)
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
    const found = number === before?.number ? `there already is a step ${number}` : `this is step ${number}`
    problems.push({ line, column: 1, message: `${found}; the next step is number ${next}` })
  }
  const { title, body } = titleOf(groups.text ?? '')
  if (title === '') problems.push({ line, column: 1, message: `step ${number} has no title` })
  if (title.startsWith('**'))
    problems.push({ line, column: 1, message: `the title of step ${number} does not end: its closing ** is missing` })
  return { number, line, title, body: body === '' ? [] : [body], settings: new Map() }
}

/** Without a bold start, the whole line is the title. */
function titleOf(text: string): { readonly title: string; readonly body: string } {
  const { title = text, body = '' } = BOLD.exec(text)?.groups ?? {}
  return { title: title.trim(), body: body.trim() }
}

/** Prose before the first step is ignored. */
function addLine(step: OpenStep | undefined, line: MarkdownLine, problems: MdProblem[]): void {
  if (!step) return
  const setting = line.isCode ? undefined : readSetting(line.text)
  if (!setting) return void step.body.push(line.text)
  const position = { line: line.number, column: setting.column }
  if ('message' in setting) problems.push({ ...position, message: setting.message })
  else if (step.settings.has(setting.key)) problems.push({ ...position, message: `\`${setting.key}\` is set twice in step ${step.number}` })
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

/** Removes the common indentation of the lines below the title. */
function dedent([first, ...rest]: readonly string[]): string[] {
  const indents = rest.filter((line) => line.trim() !== '').map((line) => line.length - line.trimStart().length)
  const common = Math.min(...indents, Number.MAX_SAFE_INTEGER)
  return [first ?? '', ...rest.map((line) => line.slice(common))]
}
