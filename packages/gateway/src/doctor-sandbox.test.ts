import type { Sandbox } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { checkSandbox } from './doctor-sandbox.ts'
import type { SandboxChoice } from './sandbox-select.ts'

const choice = (part: Partial<SandboxChoice> = {}): SandboxChoice => ({ sandbox: { name: 'jail' } as Sandbox, probes: [], ...part })
const probe = (available: boolean, detail: string) => ({ name: 'jail', available, detail })
const AUTO = { enabled: true, backend: 'auto', required: false } as const

test('one that works is told with what was measured', () => {
  expect(checkSandbox(choice({ probes: [probe(true, 'version 1')] }), AUTO)).toMatchObject({
    status: 'ok',
    detail: 'jail: jail works (version 1)',
  })
})

test('of auto every backend that was tried is told', () => {
  const tried = choice({ probes: [probe(false, 'not installed')], warning: 'commands run without a sandbox: no backend works' })
  const detail = 'commands run without a sandbox: no backend works: jail does not (not installed)'
  expect(checkSandbox(tried, AUTO)).toMatchObject({ status: 'warn', detail, fix: expect.stringContaining('install') })
})

test('of a backend that was named the reason is told once', () => {
  const warning = "commands are refused, since a sandbox is required and 'jail' does not work on this machine: not installed"
  const tried = choice({ probes: [probe(false, 'not installed')], warning })
  expect(checkSandbox(tried, { ...AUTO, backend: 'jail', required: true })).toMatchObject({ status: 'fail', detail: warning })
})

test.each([{ enabled: false }, { backend: 'none' as const }])('%j: switched off is said, and how to switch it on', (off) => {
  expect(checkSandbox(choice(), { ...AUTO, ...off })).toMatchObject({ status: 'warn', fix: expect.stringContaining('enabled = true') })
  const refused = choice({ warning: 'commands are refused' })
  expect(checkSandbox(refused, { ...AUTO, ...off, required: true })).toMatchObject({
    status: 'fail',
    detail: 'commands are refused',
    fix: expect.stringContaining('enabled = true'),
  })
})
