/** One procedure from its folder: both files read, each checked by itself, then together (§4.3). */
import { join } from 'node:path'
import { locateFindings } from '@sluice/config'
import type { SopMode } from '@sluice/sdk'
import { contentHash } from './agreements.ts'
import { stepProblems, tomlWarnings } from './check-definition.ts'
import type { SopDefinition, SopProblem } from './definition.ts'
import { type ParsedSteps, parseSopMd } from './parse-sop-md.ts'
import { parseSopToml, type SopToml } from './parse-sop-toml.ts'
import { readInside } from './read-inside.ts'

export interface LoadedSop {
  readonly folder: string
  /** Absent if there are errors. */
  readonly definition?: SopDefinition
  /** The text of `SOP.toml`, for pointing into it. */
  readonly toml: string
  readonly problems: readonly SopProblem[]
  /** Present instead of a definition: an operator has to agree to it first. */
  readonly waiting?: WaitingSop
}

/** A procedure in a folder that the agent can write, which is not loaded until an operator agrees to it. */
export interface WaitingSop {
  /** Absolute. */
  readonly folder: string
  /** Of both files as they are. */
  readonly hash: string
  /** True: an operator agreed to another content of this folder. */
  readonly isChanged: boolean
  readonly toml: string | null
  readonly md: string | null
}

export interface LoadSopOptions {
  /** The real path nothing is read outside of. */
  readonly root: string
  readonly defaultMode: SopMode
  readonly nowMs: number
  /** Why no trigger may name a path; undefined: it may. Absent: every path is allowed. */
  readonly pathProblem?: (path: string) => string | undefined
}

export const SOP_FILE_BYTES_MAX = 256 * 1024

/**
 * Undefined for a folder that has neither of the two files. `agreed` is given for a folder that the agent can write: the hash an
 * operator agreed to, or null. Never throws.
 */
export async function loadSop(
  folder: string,
  { root, defaultMode, nowMs, pathProblem }: LoadSopOptions,
  agreed?: string | null,
): Promise<LoadedSop | undefined> {
  const tomlFile = join(folder, 'SOP.toml')
  const mdFile = join(folder, 'SOP.md')
  const [toml, md] = await Promise.all([tomlFile, mdFile].map((file) => readInside(root, file, SOP_FILE_BYTES_MAX)))
  if (!toml || !md || ('isMissing' in toml && 'isMissing' in md)) return undefined
  if (agreed !== undefined) {
    const texts = { toml: 'text' in toml ? toml.text : null, md: 'text' in md ? md.text : null }
    const hash = contentHash(texts.toml, texts.md)
    if (hash !== agreed) return { folder, toml: '', problems: [], waiting: { folder, hash, isChanged: agreed !== null, ...texts } }
  }
  const head: ToldParts<SopToml> = 'text' in toml ? await parseSopToml(toml.text, tomlFile, nowMs) : told(toml)
  const steps: ToldParts<ParsedSteps> = 'text' in md ? withValue(parseSopMd(md.text)) : told(md)
  const problems = [
    ...head.problems.map((problem) => asError(tomlFile, problem)),
    ...steps.problems.map((problem) => asError(mdFile, problem)),
  ]
  const text = 'text' in toml ? toml.text : ''
  if (!head.value || !steps.value) return { folder, toml: text, problems }

  const mode = head.value.sop.deterministic ? 'deterministic' : (head.value.sop.execution_mode ?? defaultMode)
  problems.push(...(await pathProblems(tomlFile, text, head.value, pathProblem)))
  problems.push(...(await tomlWarnings(tomlFile, text, head.value)), ...stepProblems(mdFile, mode, steps.value))
  const isBroken = problems.some(({ severity }) => severity === 'error')
  return { folder, toml: text, problems, ...(!isBroken && { definition: define(head.value, steps.value.steps, { folder, mode }) }) }
}

async function pathProblems(
  file: string,
  text: string,
  { triggers }: SopToml,
  problem: LoadSopOptions['pathProblem'],
): Promise<SopProblem[]> {
  const findings = triggers.flatMap((trigger, index) => {
    const message = trigger.type === 'webhook' ? problem?.(trigger.path) : undefined
    return message === undefined ? [] : { path: ['triggers', index, 'path'], at: 'value' as const, message }
  })
  const located = findings.length > 0 ? await locateFindings(file, text, findings) : []
  return located.map((found) => asError(file, found))
}

interface Told {
  readonly message: string
  readonly line?: number
  readonly column?: number
}

interface ToldParts<Value> {
  readonly value?: Value
  readonly problems: readonly Told[]
}

const told = ({ problem }: { readonly problem: string }): ToldParts<never> => ({ problems: [{ message: problem }] })

const withValue = (steps: ParsedSteps): ToldParts<ParsedSteps> => ({ value: steps, problems: steps.problems })

export const asError = (file: string, { message, line, column }: Told): SopProblem => ({
  file,
  ...(line !== undefined && { line }),
  ...(column !== undefined && { column }),
  message,
  severity: 'error',
})

const define = (
  { sop, triggers }: SopToml,
  steps: SopDefinition['steps'],
  { folder, mode }: Pick<SopDefinition, 'folder' | 'mode'>,
): SopDefinition => ({
  name: sop.name,
  description: sop.description,
  version: sop.version,
  priority: sop.priority,
  mode,
  cooldownSecs: sop.cooldown_secs,
  maxConcurrent: sop.max_concurrent,
  triggers,
  steps,
  folder,
})
