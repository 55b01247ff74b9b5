/** `sluice setup`: chooses the provider, its key and the model, tests them, and writes the configuration. */
import { type ProviderConfig, providerSection, readConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { catalogueProviders } from '@sluice/runtime/provider-problem'
import { AppError, errorText, type OfferedModel, Secret } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'
import { readInput } from '../read-input.ts'
import { toolLines } from '../setup/agent-tools.ts'
import { askBaseUrl, askCandidate, askKey, askModel, findCandidate, proposedModel } from '../setup/ask-endpoint.ts'
import { askOwner } from '../setup/ask-owner.ts'
import { askSearch } from '../setup/ask-search.ts'
import { type Candidate, findCandidates, proposedCandidate } from '../setup/candidates.ts'
import { changesOf, type EndpointChoice, isMediaSet, type ModelChoice, offeredModels, settingsOf } from '../setup/choice.ts'
import { aborted, type Dialogue, terminalDialogue } from '../setup/dialogue.ts'
import { cureOf, type Tried, tryModel } from '../setup/try-model.ts'
import { printChanges, untilReloaded, writeChanges } from '../setup/write.ts'

const KEY_BYTES_MAX = 16_384

/** The surroundings of one run. */
export interface Setup {
  readonly context: CliContext
  /** Undefined: nothing is asked. */
  readonly dialogue: Dialogue | undefined
  readonly candidates: readonly Candidate[]
  /** The configuration in force. */
  readonly current: ProviderConfig
  /** The key of an option. */
  readonly givenKey: Secret | undefined
  readonly signal: AbortSignal
}

/** Exits with 1 if the model failed its test or the person gave up; nothing is written then. */
export async function run(context: CliContext): Promise<number> {
  const { stdin, options, json, env, features } = context
  const asks = stdin.isTTY === true && options.yes !== true && !json && options['api-key-stdin'] !== true
  const current = (await readConfig(context)).core(providerSection)
  const candidates = await findCandidates(catalogueProviders(features), env)
  const givenKey = await readKey(context)
  const interrupted = context.interrupted()
  const dialogue = asks ? terminalDialogue(stdin, process.stdout, interrupted) : undefined
  using either = signalScope([interrupted, dialogue?.closed])
  try {
    return await setUp({ context, dialogue, candidates, current, givenKey, signal: either.signal })
  } finally {
    dialogue?.close()
  }
}

async function readKey({ stdin, options, env }: CliContext): Promise<Secret | undefined> {
  const variable = options['api-key-env']
  if (options['api-key-stdin'] !== true && variable === undefined) return undefined
  const key = (options['api-key-stdin'] === true ? await readInput(stdin, KEY_BYTES_MAX) : (env[String(variable)] ?? '')).trim()
  if (key !== '') return new Secret(key)
  throw new AppError('invalid_request', variable === undefined ? 'Standard input holds no key' : `The variable ${variable} is not set`)
}

/** Chooses, tests and writes. */
export async function setUp(first: Setup): Promise<number> {
  // The options answer the first questions; a person who chooses again is asked for everything.
  const again: Setup = { ...first, givenKey: undefined, context: { ...first.context, options: {} } }
  for (let setup = first; ; setup = again) {
    const choice = await chooseEndpoint(setup)
    const offered = await listModels(setup, choice)
    if (offered === 'again') continue
    const model = await chooseModel(setup, choice, offered)
    const verdict = await tryChoice(setup, choice, model)
    if (verdict.next === 'write') return writeChoice(setup, choice, { ...verdict, model })
    if (verdict.next === 'end') return failed(setup, verdict.results)
  }
}

async function chooseEndpoint({ context, dialogue, candidates, current, givenKey }: Setup): Promise<EndpointChoice> {
  const kind = textOption(context, 'provider')
  const given = textOption(context, 'base-url')
  const named = kind === undefined ? undefined : findCandidate(context, candidates, kind)
  if (!dialogue) {
    const candidate = named ?? proposedCandidate(candidates, current.kind)
    if (!candidate)
      throw new AppError('invalid_request', '--provider is missing: there is no key in the environment and no server on this machine')
    const kept = current.kind === candidate.kind && !kind ? current.base_url : undefined
    return { kind: candidate.kind, provider: candidate.provider, baseUrl: given ?? kept, newKey: givenKey }
  }
  const candidate = named ?? (await askCandidate(context, dialogue, { candidates, configured: current.kind }))
  const baseUrl = given ?? (await askBaseUrl(context, dialogue, { candidate, current }))
  const isStored = current.kind === candidate.kind && current.base_url === baseUrl && current.api_key !== undefined
  const newKey = givenKey ?? (await askKey(context, dialogue, { candidate, baseUrl, isStored }))
  return { kind: candidate.kind, provider: candidate.provider, baseUrl, newKey }
}

/** Resolves to `again` when the person shall choose the endpoint again; undefined when the endpoint has no list. */
async function listModels(
  { context: { out, env, options }, dialogue, current, signal }: Setup,
  choice: EndpointChoice,
): Promise<readonly OfferedModel[] | undefined | 'again'> {
  if (!dialogue && (options['skip-test'] === true || options.model !== undefined)) return undefined
  try {
    return await offeredModels(choice, settingsOf(choice, { current, env }), signal)
  } catch (error) {
    if (signal.aborted) throw aborted()
    if (!dialogue) throw error
    out.print(`${out.style('red', 'failed')}: ${errorText(error)}`)
    const hasNoList = error instanceof AppError && error.code === 'upstream'
    if (!hasNoList) out.print('Check the address and the key.')
    return hasNoList ? undefined : 'again'
  }
}

async function chooseModel(
  { context, dialogue, current }: Setup,
  choice: EndpointChoice,
  offered: readonly OfferedModel[] | undefined,
): Promise<string> {
  const named = textOption(context, 'model')
  if (named !== undefined) return named
  const proposed = proposedModel(choice, current, offered)
  if (dialogue) return askModel(context, dialogue, { offered: offered ?? [], proposed })
  if (proposed !== undefined) return proposed
  throw new AppError('invalid_request', "--model is missing: 'sluice models' and the provider list the names")
}

interface Verdict {
  readonly next: 'write' | 'again' | 'end'
  readonly results: readonly Tried[]
  readonly seesPictures: boolean
}

async function tryChoice({ context, dialogue, current, signal }: Setup, choice: EndpointChoice, model: string): Promise<Verdict> {
  const { out, env, json, options } = context
  const results: Tried[] = []
  const onResult = (result: Tried) => {
    results.push(result)
    if (!json) printResult(out, result)
  }
  const settings = settingsOf(choice, { current, env, model })
  if (options['skip-test'] === true) return { next: 'write', results, seesPictures: false }
  if (!json) out.print(`Testing ${settings.kind}:${model} …`)
  const trial = { settings, isMediaSet: isMediaSet(current, choice), signal, onResult }
  const { isGood, seesPictures } = await tryModel(context, choice, trial).catch((error: unknown) => {
    throw signal.aborted ? aborted() : error
  })
  if (isGood) return { next: 'write', results, seesPictures }
  if (!dialogue) return { next: 'end', results, seesPictures }
  for (;;) {
    const answer = await dialogue.ask('Choose again (a), write it anyway (w) or quit (q)', { proposed: 'a' })
    const next = ({ a: 'again', w: 'write', q: 'end' } as const)[answer]
    if (next) return { next, results, seesPictures }
  }
}

function printResult(out: CliContext['out'], result: Tried): void {
  const { test, outcome, detail, tookMs } = result
  const style = { ok: 'green', failed: 'red', not_supported: 'yellow' } as const
  out.print(
    `  ${out.style(style[outcome], outcome.replace('_', ' '))}  ${test.replace('_', ' ')}, ${(tookMs / 1000).toFixed(1)} s: ${detail}`,
  )
  const cure = cureOf(result)
  if (cure !== undefined) out.print(`  ${cure}`)
}

function failed({ context: { json, out } }: Setup, results: readonly Tried[]): number {
  if (json) out.json({ written: false, tests: results.map(shownResult) })
  else out.warn('Nothing has changed.')
  return 1
}

const shownResult = ({ test, outcome, detail, tookMs }: Tried) => ({ test, outcome, detail, took_ms: tookMs })

async function writeChoice(
  { context, dialogue, current }: Setup,
  choice: EndpointChoice,
  { model, seesPictures, results }: ModelChoice & { readonly results: readonly Tried[] },
): Promise<number> {
  const { out, json, configFile } = context
  const changes = changesOf(current, choice, { model, seesPictures })
  if (!json && changes.length > 0) printChanges(context, changes)
  if (dialogue && changes.length > 0) {
    const answer = await dialogue.ask('Write this (y/n)', { proposed: 'y' })
    if (!/^y(es)?$/i.test(answer)) throw aborted()
  }
  if (changes.length > 0) await writeChanges(context, changes, (now) => changesOf(now, choice, { model, seesPictures }))
  if (dialogue) {
    await askOwner(context, dialogue)
    await askSearch(context, dialogue)
  }
  const daemon = await untilReloaded(context, `${choice.kind}:${model}`)
  if (json) {
    const shown = changes.map(({ key, before, after }) => ({ key, before, after }))
    out.json({ written: changes.length > 0, file: configFile, changes: shown, tests: results.map(shownResult), daemon })
  } else printEnd(context, { daemon, hasChanged: changes.length > 0, tools: await toolLines(context) })
  return 0
}

const DAEMON_NOTES = {
  applied: 'The running daemon uses it now.',
  waiting: 'The running daemon does not use it yet: its log and `sluice doctor` say why.',
  none: 'No daemon runs; start it with: sluice daemon',
} as const

function printEnd(
  { out, configFile }: CliContext,
  { daemon, hasChanged, tools }: { daemon: keyof typeof DAEMON_NOTES; hasChanged: boolean; tools: readonly string[] },
): void {
  out.hint(hasChanged ? `Written to ${configFile}. ${DAEMON_NOTES[daemon]}` : `The configuration has this already. ${DAEMON_NOTES[daemon]}`)
  out.print('')
  out.print('The agent:')
  for (const line of tools) out.print(line)
  out.print('')
  out.print('Next:')
  out.hint('  sluice agent -m "hello"    a first message')
  out.hint('  sluice pair new            a code for an app or another person')
  out.hint('  sluice models test         everything that the model can do; with --tasks, ten tasks of an agent')
  out.hint('  sluice doctor              what the agent can do here, and what is missing')
}
