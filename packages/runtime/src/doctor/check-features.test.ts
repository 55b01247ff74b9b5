import { gatewaySection } from '@sluice/config'
import { defineTool } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { testSnapshot } from '../testing/test-snapshot.ts'
import { checkAbilities, checkCallableTools, type MainAgent } from './check-features.ts'

const tool = (name: string) =>
  defineTool({ name, description: name, input: v.object({}), risk: 'read', egress: false, untrusted: false, run: async () => name })

test('names of callable tools that no tool has, or that are not available, have a row', () => {
  const gateway = v.parse(gatewaySection.schema, { callable_tools: ['file_read', 'fil_read', 'left_out'] })
  const { registry } = testSnapshot()
  const tools = [tool('file_read'), tool('left_out')]
  const offered = tools.slice(0, 1)
  const rows = checkCallableTools({ gateway, registry: { ...registry, offered, tools: new Map(tools.map((one) => [one.name, one])) } })
  expect(rows.map(({ status, detail }) => [status, detail])).toEqual([
    ['warn', "there is no tool 'fil_read'; similar names: file_read"],
    ['warn', "'left_out' is not available"],
  ])
})

test('says what the agent does, and what it lacks for the rest', () => {
  const { registry } = testSnapshot()
  const main = { policy: { shell: 'script', level: 'supervised' }, confines: true, timezone: 'Asia/Kolkata' } as const
  const details = (
    names: readonly string[],
    compiled: readonly string[],
    { media, ...of }: Partial<MainAgent> & { media?: ['image'] } = {},
  ) =>
    checkAbilities(
      {
        registry: {
          ...registry,
          offered: names.map(tool),
          models: { ...registry.models, labels: [{ provider: 'openai', model: 'm' }], settings: () => ({ kind: 'openai', media }) },
        },
        features: compiled.map((feature) => ({ feature, compiled: true })) as never,
      },
      { ...main, ...of },
    ).detail.split('\n')
  expect(details(['file_edit', 'shell', 'web_fetch', 'web_search', 'memory_recall'], [], { media: ['image'] })).toEqual([
    'edits files',
    'runs scripts in a sandbox',
    'reads web pages',
    'searches the web',
    'recalls memories',
    'sees pictures',
    'knows the date, in the time zone Asia/Kolkata',
  ])
  expect(details(['file_edit', 'shell'], ['tool-web', 'tool-memory'], { confines: false, timezone: undefined })).toEqual([
    'edits files',
    "runs plain commands, and scripts once a sandbox works: see 'sandbox'",
    'reads no web pages: set [tools.web] fetch = true',
    'does not search the web: set [tools.web] search',
    'recalls no memories: the tool memory_recall is not available',
    'sees no pictures: where the model can, set [provider] media = ["image"]',
    expect.stringMatching(/^knows the date, in the time zone .* of this machine; for another one, set \[agent\] timezone$/),
  ])
  const ofShell = (policy: MainAgent['policy']) => details(['shell'], [], { policy, confines: false })[1]
  expect(ofShell({ shell: 'script', level: 'full' })).toBe('runs scripts without a sandbox')
  expect(ofShell({ shell: 'plain', level: 'full' })).toBe('runs plain commands: for scripts, set [security.policy] shell = "script"')
  const readonly = details(['file_edit', 'shell', 'memory_recall'], [], { policy: { shell: 'script', level: 'readonly' } })
  const because = 'because [security.policy] level is "readonly"'
  expect([readonly[0], readonly[1], readonly[4]]).toEqual([
    `reads files and edits none, ${because}`,
    `runs commands that only read, ${because}`,
    `recalls memories and stores none, ${because}`,
  ])
  expect(details([], [])[2]).toMatch(/^reads no web pages: .*web/)
})
