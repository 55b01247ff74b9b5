/** The table of who decides the calls of each tool (docs/tools.md): every tool declares it, and no person below `listed` decides. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Feature, ROWS, STANDINGS, type Standing, type Tool } from '@sluice/sdk'
import { expect, test } from 'vitest'

interface Case {
  readonly tool: Tool
  readonly label: string
  readonly input: unknown
}

const ROOT = resolve(import.meta.dirname, '../..')
const { WAYS, casesOf, decisionsPage, outcomeOf, toolsOf } = (await import(join(ROOT, 'scripts/decisions.mjs'))) as {
  WAYS: readonly { readonly way: string; readonly standings: readonly Standing[]; readonly asks: string }[]
  casesOf(tool: Tool): readonly Case[]
  outcomeOf(one: Case, standing: Standing, asks: string): string
  toolsOf(features: readonly Feature[], confines?: boolean): Promise<readonly Tool[]>
  decisionsPage(features: readonly Feature[]): Promise<string>
}
const features = await Promise.all(
  ROWS.map(async ([id]) => ((await import(join(ROOT, 'packages', id, 'src/index.ts'))) as { default: Feature }).default),
)

test('every tool of the catalogue declares who decides, and the page shows all of them', async () => {
  const tools = await toolsOf(features)
  expect(tools.map(({ name }) => name).toSorted()).toEqual(ROWS.flatMap(([, { tools = [] }]) => tools).toSorted())
  expect(tools.flatMap(({ name, decider }) => (decider === undefined ? name : []))).toEqual([])
  expect(await decisionsPage(features)).toBe(readFileSync(join(ROOT, 'docs/tools.md'), 'utf8'))
})

test('a tool without a declaration, or without an input for it, has no place in the table', () => {
  const tool: Tool = {
    name: 'reach',
    description: '',
    input: {} as never,
    risk: 'execute',
    egress: false,
    untrusted: false,
    run: async () => '',
  }
  expect(() => casesOf(tool)).toThrow('reach declares no decider')
  expect(() => casesOf({ ...tool, decider: 'asker', risk: () => 'read' })).toThrow('reach depends on its input')
})

test('no call asks a stranger, and only operators decide what a machine without a sandbox runs', async () => {
  const open = (await toolsOf(features, false)).flatMap(casesOf)
  for (const one of open)
    for (const { way, standings, asks } of WAYS)
      for (const standing of standings) {
        const outcome = outcomeOf(one, standing, asks)
        const isOpen = outcome === 'runs' || outcome === 'refused' || outcome === 'operators'
        if (standing === 'stranger' || standing === 'unverified') expect([one.label, way, isOpen]).toEqual([one.label, way, true])
        if (one.label === 'shell: does more' && standing !== 'operator')
          expect([way, standing, outcome]).toEqual([way, standing, 'operators'])
      }
  expect(STANDINGS.map((standing) => outcomeOf(open.find(({ tool }) => tool.name === 'sop_approve') as Case, standing, 'asker'))).toEqual([
    'asker',
    'operators',
    'operators',
    'operators',
    'operators',
  ])
})
