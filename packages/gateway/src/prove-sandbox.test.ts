import type { Sandbox } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { expect, test } from 'vitest'
import { proveSandbox } from './prove-sandbox.ts'
import { noSandbox } from './sandbox-none.ts'

const prove = (wrap: Sandbox['wrap']) => proveSandbox({ ...noSandbox, wrap }, runBare, new AbortController().signal)
/** Confines by what the script cannot say. */
const without =
  (pattern: RegExp): Sandbox['wrap'] =>
  (command) => ({
    ...command,
    args: command.args.map((each) => each.replaceAll(pattern, 'false')),
  })
const READS = /cat "\$1[^\n]*|cat soft[^\n]*|ln "[^\n]*/g
const CHANGES = /^\(echo[^\n]*|^\(: >"[^\n]*|^rm[^\n]*/gm

test('a file that can be read is found', async () => {
  expect(await prove((command) => command)).toBe('a file outside was read')
})

test('a file that can be changed is found', async () => {
  expect(await prove(without(READS))).toBe('a file outside was changed')
})

test('a network that can be reached is found', async () => {
  expect(await prove(without(new RegExp(`${READS.source}|${CHANGES.source}`, 'gm')))).toBe('the network was reached')
})

test('a backend in which nothing works is found', async () => {
  expect(await prove((command) => ({ ...command, file: 'false' }))).toBe('a command could not do its work: exit code 1')
})
