/** A feature in a package of its own: it passes the suite that Sluice's features pass, and its row represents it while it is not ready. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { featureCommands } from '@sluice/cli/feature-commands'
import { createSluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import type { Feature } from '@sluice/sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'

const EXAMPLE = join(import.meta.dirname, '../../examples/feature-hello')
const { default: hello } = (await import(join(EXAMPLE, 'index.mjs'))) as { default: Feature }
await import(join(EXAMPLE, 'conformance.test.mjs'))

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'third-party-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const openWith = (feature: Feature) => createSluice({ features: [offline, feature], dataDir, logger: false })

test('is listed with the kind of its row, and its tool runs', { timeout: 60_000 }, async () => {
  await using sluice = await openWith(hello)
  const { features } = (await sluice.call({ method: 'GET', path: '/api/features' })) as { features: object[] }
  expect(features).toContainEqual(expect.objectContaining({ feature: 'x-hello', kind: 'tool', state: 'ready' }))
  const { text } = await sluice.run('/tool hello_greet {"name":"Ann"}')
  expect(text).toContain('Hello, Ann!')
})

test('that is not ready has a tool that answers with the reason', { timeout: 60_000 }, async () => {
  const failing: Feature = { ...hello, build: () => ({ tools: [], register: () => Promise.reject(new Error('the greeter is asleep')) }) }
  await using sluice = await openWith(failing)
  const { text } = await sluice.run('/tool hello_greet {"name":"Ann"}')
  expect(text).toContain('the greeter is asleep')
})

test('that brings a name which its row does not list is failed with this reason', { timeout: 60_000 }, async () => {
  const { tools, ...row } = hello.row ?? { kind: 'tool', summary: '' }
  expect(tools).toEqual(['hello_greet'])
  await using sluice = await openWith({ ...hello, row })
  const { features } = (await sluice.call({ method: 'GET', path: '/api/features' })) as { features: object[] }
  expect(features).toContainEqual(
    expect.objectContaining({ feature: 'x-hello', state: 'failed', reason: expect.stringContaining("the tool 'hello_greet'") }),
  )
})

test('has its commands in help', () => {
  const command = featureCommands([hello]).find(({ name }) => name === 'hello say')
  expect(command).toMatchObject({ summary: 'Greet somebody', usage: '<name>' })
  expect(featureCommands([]).map(({ name }) => name)).not.toContain('hello say')
})
