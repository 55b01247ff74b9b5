/** Loads one procedure from its folder: reads both files, checks each of them, then both together. */
import { join } from 'node:path'
import { type Finding, locateFindings } from '@sluice/config'
import type { SopMode } from '@sluice/sdk'
import { asError, type Located, type SopDefinition, type SopProblem } from '../definition/definition.ts'
import { type ParsedSteps, parseSopMd } from '../definition/parse-sop-md.ts'
import { parseSopToml, type SopToml } from '../definition/parse-sop-toml.ts'
import { contentHash } from './agreements.ts'
import { stepProblems, tomlWarnings } from './check-definition.ts'
import type { LoadRules } from './load-rules.ts'
import { readPair, readSavedPair, type SopPair, textOf } from './sop-pair.ts'

/** The result for one folder. */
export interface LoadedSop {
  readonly folder: string
  /** Absent when there are errors. */
  readonly definition?: SopDefinition
  /** The text of `SOP.toml`, in which problems are located. */
  readonly toml: string
  readonly problems: readonly SopProblem[]
  /** Present instead of a definition while an operator has to agree to the procedure. */
  readonly waiting?: WaitingSop
}

/** A procedure in a folder that the agent can write. It is not loaded until an operator agrees to it. */
export interface WaitingSop {
  /** An absolute path. */
  readonly folder: string
  /** The hash of the present content of both files. */
  readonly hash: string
  /** True when an operator agreed to an earlier content of this folder. */
  readonly isChanged: boolean
  readonly toml: string | null
  readonly md: string | null
}

/**
 * Resolves to undefined for a folder with neither file. `root` is the real path outside of which no file is read. `agreed` is
 * given for a folder that the agent can write: the hash that an operator agreed to, or null. Never throws.
 */
export async function loadSop(folder: string, root: string, rules: LoadRules, agreed?: string | null): Promise<LoadedSop | undefined> {
  // The agent could write a hidden file of a save into a folder of its own.
  const { toml, md } = agreed === undefined ? await readSavedPair(root, folder) : await readPair(root, folder)
  if ('isMissing' in toml && 'isMissing' in md) return undefined
  if (agreed !== undefined) {
    const texts = { toml: textOf(toml), md: textOf(md) }
    const hash = contentHash(texts.toml, texts.md)
    if (hash !== agreed) return { folder, toml: '', problems: [], waiting: { folder, hash, isChanged: agreed !== null, ...texts } }
  }
  return checkSop(folder, { toml, md }, rules)
}

/** Checks both files of a procedure, as they were read or as they would be. `folder` is the one that problems name. Never throws. */
export async function checkSop(
  folder: string,
  { toml, md }: SopPair,
  { defaultMode, nowMs, pathProblem, agentProblem, ...rules }: LoadRules,
): Promise<LoadedSop> {
  const tomlFile = join(folder, 'SOP.toml')
  const mdFile = join(folder, 'SOP.md')
  const head: Parsed<SopToml> = 'text' in toml ? await parseSopToml(toml.text, tomlFile, nowMs) : unread(toml)
  const steps: Parsed<ParsedSteps> = 'text' in md ? withValue(parseSopMd(md.text)) : unread(md)
  const problems = [
    ...head.problems.map((problem) => asError(tomlFile, problem)),
    ...steps.problems.map((problem) => asError(mdFile, problem)),
  ]
  const text = 'text' in toml ? toml.text : ''
  if (!head.value || !steps.value) return { folder, toml: text, problems }

  const mode = head.value.sop.deterministic ? 'deterministic' : (head.value.sop.execution_mode ?? defaultMode)
  problems.push(...(await ruleProblems(tomlFile, text, head.value, { pathProblem, agentProblem })))
  problems.push(...(await tomlWarnings(tomlFile, text, head.value, rules)), ...stepProblems(mdFile, mode, steps.value))
  const isBroken = problems.some(({ severity }) => severity === 'error')
  return { folder, toml: text, problems, ...(!isBroken && { definition: define(head.value, steps.value.steps, folder, mode) }) }
}

/** Finds paths and agents that no procedure may name. */
async function ruleProblems(
  file: string,
  text: string,
  { sop, triggers }: SopToml,
  { pathProblem, agentProblem }: { readonly [Rule in 'pathProblem' | 'agentProblem']: LoadRules[Rule] | undefined },
): Promise<SopProblem[]> {
  const ofAgent = agentProblem?.(sop.agent)
  const ofPaths = triggers.flatMap((trigger, index): Finding[] => {
    const message = trigger.type === 'webhook' ? pathProblem?.(trigger.path, trigger.auth !== undefined) : undefined
    return message === undefined ? [] : [{ path: ['triggers', index, 'path'], at: 'value', message }]
  })
  const findings: Finding[] = [
    ...(ofAgent === undefined ? [] : [{ path: ['sop', 'agent'], at: 'value', message: ofAgent } as const]),
    ...ofPaths,
  ]
  const located = findings.length > 0 ? await locateFindings(file, text, findings) : []
  return located.map((found) => asError(file, found))
}

interface Parsed<Value> {
  readonly value?: Value
  readonly problems: readonly Located[]
}

const unread = ({ problem }: { readonly problem: string }): Parsed<never> => ({ problems: [{ message: problem }] })

const withValue = (steps: ParsedSteps): Parsed<ParsedSteps> => ({ value: steps, problems: steps.problems })

const define = ({ sop, triggers }: SopToml, steps: SopDefinition['steps'], folder: string, mode: SopMode): SopDefinition => ({
  name: sop.name,
  description: sop.description,
  version: sop.version,
  agent: sop.agent,
  priority: sop.priority,
  mode,
  cooldownSecs: sop.cooldown_secs,
  maxConcurrent: sop.max_concurrent,
  maxWaiting: sop.max_waiting,
  countWaiting: sop.count_waiting,
  triggers,
  steps,
  folder,
})
