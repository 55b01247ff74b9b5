/** Rules about the shape of the code that let a reader find their way: how large a class is, and who asks whether there is a cluster. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const shipped = globSync(['packages/*/src/**/*.ts', 'packages/*/page/src/**/*.{ts,tsx}'], { cwd: ROOT }).filter(
  (file) => !file.includes('.test.') && !file.includes('/testing') && !file.startsWith('packages/testkit/'),
)
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

/** Returns the name and the number of lines of each class in a file that the formatter has formatted. */
function classesIn(text: string): { readonly name: string; readonly lines: number }[] {
  const lines = text.split('\n')
  return lines.flatMap((line, start) => {
    const name = /^(?:export )?(?:default )?(?:abstract )?class (\w+)/.exec(line)?.[1]
    if (name === undefined) return []
    const end = line.endsWith('{}') ? start : lines.indexOf('}', start)
    return [{ name, lines: end - start + 1 }]
  })
}

describe('a class', () => {
  const LINES_MAX = 250
  /** The classes that are longer, with their lines. A list that only shrinks. */
  const LONGER: Readonly<Record<string, number>> = {
    Conversation: 401,
    GroupCommit: 290,
    RelayLink: 289,
  }

  test('has at most 250 lines', () => {
    const found = shipped.flatMap((file) => classesIn(read(file)).map((one) => ({ file, ...one })))
    expect(found.length).toBeGreaterThan(300)
    expect(found.filter(({ name, lines }) => lines > (LONGER[name] ?? LINES_MAX))).toEqual([])
    expect(Object.keys(LONGER).filter((name) => !found.some((one) => one.name === name && one.lines > LINES_MAX))).toEqual([])
  })

  test('is counted from its first line to its last one', () => {
    const text = [
      'class A extends B {',
      '  x = {}',
      '}',
      '',
      'export class Empty {}',
      'export abstract class C {',
      '  y(): void {}',
      '',
      '}',
    ].join('\n')
    expect(classesIn(text)).toEqual([
      { name: 'A', lines: 3 },
      { name: 'Empty', lines: 1 },
      { name: 'C', lines: 4 },
    ])
  })
})

describe('whether there is a cluster', () => {
  /** A condition on the cluster of the store, such as `if (cluster)`, `cluster?.notices` or `cluster ? a : b`. */
  const ASKS = /\bif \([^)\n]*\bcluster\b|!cluster\b|(?:&&|\|\|) (?:\w+\.)*cluster\b|\bcluster\s*(?:\?(?!:)|&&|\|\|)/g
  const asksIn = (text: string): readonly string[] => text.match(ASKS) ?? []

  test('is asked in one place of each package that works in shards, which chooses a part for one node or for several', () => {
    const asking = shipped.filter(
      (file) => /^packages\/(?:agent|approvals|delivery|ownership|sop)\/src\//.test(file) && asksIn(read(file)).length > 0,
    )
    expect(asking.toSorted()).toEqual([
      'packages/agent/src/cluster/choose-node.ts',
      'packages/delivery/src/cluster/arrival-order.ts',
      'packages/ownership/src/ownership.ts',
    ])
    for (const file of asking) expect(asksIn(read(file))).toHaveLength(1)
  })

  test('is recognised in each form of a condition', () => {
    const forms = [
      'if (!cluster) return',
      'if (options.cluster) {',
      'cluster?.notices.send(x)',
      'cluster && new A()',
      'cluster\n  ? new A()',
    ]
    expect(forms.map((text) => asksIn(text).length)).toEqual([1, 1, 1, 1, 1])
    expect(asksIn('readonly cluster?: ClusterStore\n// without a cluster\nconst { cluster } = store')).toEqual([])
  })
})
