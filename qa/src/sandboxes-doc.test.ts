import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Sandbox } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { escapeRules } from './escape.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const doc = readFileSync(join(ROOT, 'docs/sandboxes.md'), 'utf8')
const rules = escapeRules({ name: 'none', create: () => ({}) as Sandbox })

test('there are at least as many attempts as the documentation says', () => {
  expect(Object.keys(rules).length).toBeGreaterThan(Number(/more than (\d+)/.exec(doc)?.[1]))
})

test.each(['jail', 'container'])('the documentation lists the known limitations of %s', async (name) => {
  const { KNOWN_LIMITATIONS } = (await import(join(ROOT, `packages/sandbox-${name}/src/known-limitations.ts`))) as {
    KNOWN_LIMITATIONS: readonly { rule: string; why: string }[]
  }
  const rows = doc.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  const documented = rows.filter((cells) => cells[1] === `\`${name}\`` && cells.length === 5 && cells[2] && cells[2] in rules)
  expect(documented.map(([, , rule, why]) => ({ rule, why }))).toEqual(KNOWN_LIMITATIONS)
})
