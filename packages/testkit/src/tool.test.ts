import { AppError, defineFeature, defineTool, type Feature, type Host, type Tool } from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { brokenRules } from './rules.ts'
import { inputFor, notJson } from './schema-input.ts'
import { type ToolSubject, toolConformance, toolRules } from './tool.ts'

const SECRET = 'hunter2-hunter2'

/** A tool that keeps every rule; a test breaks one by changing a member. */
const feature = (changes: Partial<Tool> = {}, also: (host: Host) => void = () => {}): Feature =>
  defineFeature({
    id: 'x-sample',
    build: (host) => {
      also(host)
      const sample = defineTool({
        name: 'sample_run',
        description: 'Runs a program and returns its output.',
        input: v.object({
          path: v.pipe(v.string(), v.maxLength(100)),
          times: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 1),
        }),
        risk: ({ path }) => (path === '' ? 'read' : 'execute'),
        egress: false,
        untrusted: false,
        async run({ path }, { signal }) {
          if (path.includes('..')) throw new AppError('forbidden', `'${path}' is outside`)
          const base = { args: [path], cwd: '/', env: {}, policy: { writable: [], network: false }, timeoutMs: 1, outputBytesMax: 1 }
          const { stdout } = await host.spawn({ ...base, file: 'true', signal })
          return `it said ${stdout}`
        },
      })
      return { tools: [{ ...sample, ...changes }] }
    },
  })

const subject = (under: Feature): ToolSubject => ({
  feature: under,
  host: () => ({
    spawn: async () => ({ exitCode: 0, signal: null, timedOut: false, stdout: 'hi', stderr: '', truncated: false, sandbox: 'none' }),
  }),
  examples: [{ tool: 'sample_run', input: { path: 'a' } }],
  secrets: [SECRET],
})

toolConformance(subject(feature()))

describe('a broken tool breaks only its own rule', () => {
  test.each<[rule: string, under: Feature]>([
    ['build does no I/O', feature({}, (host) => host.log.info('hello'))],
    ['each tool is described in full sentences', feature({ description: 'runs' })],
    ['input is an object of plain JSON', feature({ input: v.object({ path: v.string(), at: v.optional(v.date()) }) })],
    ['the risk of any input is read, write or execute', feature({ risk: () => 'harmless' as 'read' })],
    ['availability is a boolean', feature({ available: () => 'yes' as unknown as boolean })],
    [
      'run returns a text or throws an AppError for any input',
      feature({ run: async ({ path }) => (path === 'a' ? 'fine' : broken(path)) }),
    ],
    ['no secret reaches a result, an error or the log', feature({ run: async () => SECRET })],
    ['no secret reaches a result, an error or the log', feature({ run: async () => fail('forbidden', SECRET, 'a') })],
    ['close may be called twice', { ...feature(), build: (host) => ({ ...feature().build(host, {}), close: onlyOnce() }) }],
  ])('%s', async (rule, under) => {
    const found = await brokenRules(toolRules(subject(under)))
    expect(found).toContain(rule)
    // A tool that answers every call with a refusal also fails its example.
    expect(found.filter((name) => name !== rule && !name.startsWith('each tool has an example'))).toEqual([])
  })

  test('validating any JSON never throws', async () => {
    const input = v.pipe(
      v.object({ path: v.string() }),
      v.check(({ path }) => path === 'a' || broken(path)),
    )
    const found = await brokenRules(toolRules(subject(feature({ input }))))
    expect(found).toContain('validating any JSON never throws')
  })

  test('names equal the catalogue row', async () => {
    const under = { ...feature(), id: 'tool-shell' as const }
    expect(await brokenRules(toolRules(subject(under)))).toEqual(['names equal the catalogue row'])
  })

  test('names are snake_case', async () => {
    const under = { ...subject(feature({ name: 'sampleRun' })), examples: [{ tool: 'sampleRun', input: { path: 'a' } }] }
    expect(await brokenRules(toolRules(under))).toEqual(['names are snake_case'])
  })

  test('each tool has an example, and the examples work', async () => {
    expect(await brokenRules(toolRules({ ...subject(feature()), examples: [] }))).toEqual([
      'each tool has an example, and the examples work',
    ])
  })

  test('an aborted call ends promptly', async () => {
    const under = feature({ run: () => new Promise(() => {}) })
    const rules = toolRules({ ...subject(under), host: () => ({}) })
    const names = ['an aborted call ends promptly even if the host never answers', 'a call with an aborted signal ends']
    const chosen = Object.fromEntries(Object.entries(rules).filter(([name]) => names.includes(name)))
    expect(await brokenRules(chosen)).toEqual(names)
  })

  test("a process inherits nothing from the daemon's environment", async () => {
    let host: Host | undefined
    const under = feature(
      {
        run: async (_input, { signal }) => {
          const env = { ...process.env } as Record<string, string>
          const base = { args: [], cwd: '/', policy: { writable: [], network: false }, timeoutMs: 1, outputBytesMax: 1 }
          await host?.spawn({ ...base, file: 'true', env, signal })
          return 'done'
        },
      },
      (given) => {
        host = given
      },
    )
    expect(await brokenRules(toolRules(subject(under)))).toEqual(["a process inherits nothing from the daemon's environment"])
  })
})

test('random input fits the schema it is made for', () => {
  const schema = v.object({
    text: v.pipe(v.string(), v.minLength(3), v.maxLength(5)),
    count: v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(4)),
    kind: v.picklist(['a', 'b']),
    list: v.optional(v.array(v.boolean())),
    map: v.optional(v.record(v.string(), v.number())),
    either: v.nullable(v.union([v.literal(1), v.string()])),
  })
  const values = Array.from({ length: 5 }, (_, seed) => v.safeParse(schema, sampleOf(schema, seed)).success)
  expect(values).toEqual([true, true, true, true, true])
  expect(notJson(schema)).toBeUndefined()
  expect(notJson(v.object({ a: v.array(v.object({ b: v.optional(v.date()) })) }))).toBe('input.a.*.b.*: date')
})

const sampleOf = (schema: v.GenericSchema, seed: number): unknown => fc.sample(inputFor(schema), { numRuns: 1, seed })[0]

const broken = (path: unknown): never => {
  throw new TypeError(`cannot read ${path}`)
}

const fail = (code: 'forbidden', detail: string, _path: string): never => {
  throw new AppError(code, detail)
}

const onlyOnce = () => {
  let isClosed = false
  return async () => {
    if (isClosed) throw new Error('closed already')
    isClosed = true
  }
}
