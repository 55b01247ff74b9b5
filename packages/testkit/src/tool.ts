/** The conformance suite of tools: call `toolConformance` in the tests of a feature with tools. */

import {
  AppError,
  type CallingAgent,
  type ClientId,
  type Feature,
  type Host,
  type Parts,
  type Risk,
  rowOfFeature,
  type Tool,
  type ToolContext,
} from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { expect } from 'vitest'
import { type TestHost, type TestHostOverrides, testHost, throwingHost } from './host.ts'
import { effort } from './random.ts'
import { type LeftOut, type Rules, registerRules } from './rules.ts'
import { inputAround, inputFor, notJson } from './schema-input.ts'
import { within } from './within.ts'

/** A feature with tools, and calls to try. */
export interface ToolSubject {
  readonly feature: Feature
  /** The values of the feature's section as in TOML; default: none. */
  readonly config?: object
  /** Returns the host members the tools need; called once for each rule. */
  readonly host?: () => TestHostOverrides
  /** Calls that succeed, at least one for each tool. */
  readonly examples: readonly { readonly tool: string; readonly input: object }[]
  /** Secrets in `config` or in the members of `host` that must never appear in a result, an error or the log. */
  readonly secrets?: readonly string[]
  /** Rules this feature does not keep, each with its reason. */
  readonly except?: readonly LeftOut[]
}

/** Registers one test for each rule. */
export const toolConformance = (subject: ToolSubject): void =>
  registerRules(`tool conformance: ${subject.feature.id}`, toolRules(subject), subject.except)

/** A tool context for calling a tool outside a turn, as the agent `by`; unless given, one without limits and with an empty workspace. */
export const toolContext = (signal: AbortSignal = new AbortController().signal, by: CallingAgent = testHost().by): ToolContext => ({
  ...by,
  client: 'client' as ClientId,
  standing: 'operator',
  session: 'session',
  turn: 'turn',
  signal,
  trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
})

const RISKS: readonly Risk[] = ['read', 'write', 'execute']
const RUNS = effort(120)
/** Real milliseconds within which an aborted call must end; a passing tool needs far less. */
const PROMPT_MS = 1000

/** Returns the rules by title. */
export function toolRules(subject: ToolSubject): Rules {
  const bench = createToolBench(subject)
  return { ...definitionRules(subject, bench), ...callRules(subject, bench), ...secrecyRules(subject, bench) }
}

interface ToolBench {
  build(host: Host): Parts
  /** A test host with the members the tools need, and with `changes`. */
  host(changes?: TestHostOverrides): TestHost
  toolsOf(host: Host): readonly Tool[]
  /** The tool of that name; throws if the feature has none. */
  named(tools: readonly Tool[], name: string): Tool
  /** Calls a tool as the executor does. */
  run(
    on: Host & Partial<Pick<TestHost, 'by'>>,
    call: { readonly tool: string; readonly input: unknown },
    signal?: AbortSignal,
  ): Promise<string>
  /** Calls each tool with random valid input and passes each result or error to `sink`. */
  runRandomly(on: Host & Partial<Pick<TestHost, 'by'>>, sink: (outcome: unknown) => void): Promise<void>
}

function createToolBench({ feature, config = {}, host: hostOf = () => ({}) }: ToolSubject): ToolBench {
  const build = (host: Host) => feature.build(host, feature.section ? v.parse(feature.section.schema, config) : config)
  const toolsOf = (host: Host): readonly Tool[] => build(host).tools ?? []
  const named = (tools: readonly Tool[], name: string): Tool => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`${feature.id} has no tool ${name}`)
    return tool
  }
  return {
    build,
    host: (changes = {}) => testHost({ ...hostOf(), ...changes }),
    toolsOf,
    named,
    async run(on, { tool: name, input }, signal) {
      const tool = named(toolsOf(on), name)
      // The executor does the same: a tool that always asks runs only with an approval.
      const who = { caller: 'device:kit', ...(tool.alwaysAsks && { approvedBy: 'device:kit' }) }
      return tool.run(v.parse(tool.input, input), { ...toolContext(signal, on.by), ...who })
    },
    async runRandomly(on, sink) {
      for (const tool of toolsOf(on)) {
        for (const input of fc.sample(inputFor(tool.input), { numRuns: RUNS, seed: 1 })) {
          const parsed = v.safeParse(tool.input, input)
          if (parsed.success) sink(await tool.run(parsed.output, toolContext(undefined, on.by)).catch((error: unknown) => error))
        }
      }
    },
  }
}

/** Rules for the definitions of the tools, none of which is called. */
function definitionRules({ feature }: ToolSubject, { build, host, toolsOf }: ToolBench): Rules {
  return {
    'names equal the catalogue row': () => {
      const row = rowOfFeature(feature)
      if (row) expect(toolsOf(host()).map(({ name }) => name)).toEqual(row.tools)
      else expect(feature.id).toMatch(/^x-/)
    },

    'names are snake_case': () => {
      for (const { name } of toolsOf(host())) expect(name).toMatch(/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/)
    },

    'build does no I/O': () => {
      build(throwingHost())
    },

    'each tool is described in full sentences': () => {
      for (const { description } of toolsOf(host())) {
        expect(description).toMatch(/^[A-Z].*\.$/s)
        expect(description.length).toBeLessThan(1000)
      }
    },

    'input is an object of plain JSON': () => {
      for (const { input } of toolsOf(host())) {
        expect(input.type).toMatch(/^(?:strict_)?object$/)
        expect(notJson(input)).toBeUndefined()
      }
    },

    'validating any JSON never throws': () => {
      for (const { input } of toolsOf(host())) {
        fc.assert(
          fc.property(inputAround(input), (json) => {
            v.safeParse(input, json)
          }),
        )
      }
    },

    'the risk of any input is read, write or execute': () => {
      const on = host()
      const { by } = on
      for (const { input, risk } of toolsOf(on)) {
        for (const value of fc.sample(inputFor(input), { numRuns: RUNS, seed: 2 })) {
          const parsed = v.safeParse(input, value)
          if (parsed.success) expect(RISKS).toContain(typeof risk === 'function' ? risk(parsed.output, by) : risk)
        }
      }
    },

    'availability is a boolean': () => {
      for (const tool of toolsOf(host())) expect(typeof (tool.available?.() ?? true)).toBe('boolean')
    },

    'close may be called twice': async () => {
      const parts = build(host())
      await parts.close?.()
      await parts.close?.()
    },
  }
}

/** Rules for calls, their results and their end. */
function callRules({ examples }: ToolSubject, { host, toolsOf, named, run, runRandomly }: ToolBench): Rules {
  return {
    'each tool has an example, and the examples work': async () => {
      expect([...new Set(examples.map(({ tool }) => tool))].sort()).toEqual(
        toolsOf(host())
          .map(({ name }) => name)
          .sort(),
      )
      for (const example of examples) {
        const result = await run(host(), example)
        expect(typeof result).toBe('string')
        expect(result).not.toBe('')
      }
    },

    'precheck passes valid calls and throws only AppError': async () => {
      const { signal } = new AbortController()
      for (const { tool: name, input } of examples) {
        const on = host()
        const tool = named(toolsOf(on), name)
        await tool.precheck?.(v.parse(tool.input, input), { ...on.by, standing: 'operator', signal })
      }
      const on = host()
      const by = { ...on.by, standing: 'operator', signal } as const
      for (const tool of toolsOf(on)) {
        if (!tool.precheck) continue
        for (const input of fc.sample(inputFor(tool.input), { numRuns: RUNS, seed: 2 })) {
          const parsed = v.safeParse(tool.input, input)
          if (!parsed.success) continue
          const refusal = await (async () => tool.precheck?.(parsed.output, by))().catch((error: unknown) => error)
          if (refusal !== undefined) expect(refusal).toBeInstanceOf(AppError)
        }
      }
    },

    'run returns a text or throws an AppError for any input': async () => {
      await runRandomly(host(), (outcome) => {
        if (typeof outcome !== 'string') expect(outcome).toBeInstanceOf(AppError)
      })
    },

    'an aborted call ends promptly even if the host never answers': async () => {
      for (const example of examples) {
        const abort = new AbortController()
        const ended = run(host(silentHost), example, abort.signal).catch(() => undefined)
        await new Promise((resolve) => setImmediate(resolve))
        abort.abort()
        await expect(within(PROMPT_MS, ended)).resolves.toBe('ended')
      }
    },

    'a call with an aborted signal ends': async () => {
      for (const example of examples) {
        const ended = run(host(silentHost), example, AbortSignal.abort()).catch(() => undefined)
        await expect(within(PROMPT_MS, ended)).resolves.toBe('ended')
      }
    },
  }
}

/** Rules that keep secrets and the daemon's environment inside. */
function secrecyRules({ host: hostOf = () => ({}), examples, secrets = [] }: ToolSubject, { host, run, runRandomly }: ToolBench): Rules {
  return {
    'no secret reaches a result, an error or the log': async () => {
      const on = host()
      const seen: unknown[] = []
      for (const example of examples) seen.push(await run(on, example).catch((error: unknown) => error))
      await runRandomly(on, (outcome) => seen.push(outcome))
      const shown = JSON.stringify([seen.map(textOf), on.logs, on.emitted])
      for (const secret of secrets) expect(shown).not.toContain(secret)
    },

    "a process inherits nothing from the daemon's environment": async () => {
      const given = hostOf()
      const environments: Readonly<Record<string, string>>[] = []
      const on = host({
        spawn: (request) => {
          environments.push(request.env)
          if (!given.spawn) throw new AppError('unavailable', 'This test host cannot start processes')
          return given.spawn(request)
        },
      })
      process.env.SVC_CONFORMANCE_CANARY = 'canary'
      try {
        for (const example of examples) await run(on, example).catch(() => undefined)
      } finally {
        delete process.env.SVC_CONFORMANCE_CANARY
      }
      expect(JSON.stringify(environments)).not.toContain('canary')
    },
  }
}

const textOf = (outcome: unknown): unknown => (outcome instanceof Error ? [outcome.message, outcome.stack, { ...outcome }] : outcome)

/** Rejects when the signal aborts; never resolves. */
const rejectOnAbort = (signal: AbortSignal | null | undefined): Promise<never> =>
  new Promise((_resolve, reject) => {
    const onAbort = () => reject(new AppError('aborted', 'the call was aborted'))
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
  })

/** Host members that accept every call and never answer. */
const silentHost: TestHostOverrides = {
  spawn: ({ signal }) => rejectOnAbort(signal),
  publicFetch: (_url, init) => rejectOnAbort(init?.signal),
  fetch: (input, init) => rejectOnAbort(init?.signal ?? (input instanceof Request ? input.signal : undefined)),
}
