/** Limits this kernel to the features of older ones, and tests their protection and their known limitations. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { escapeRules } from '@sluice/qa/escape'
import { brokenRules } from '@sluice/testkit/rules'
import { sandboxRules } from '@sluice/testkit/sandbox'
import { afterAll, describe, expect, test } from 'vitest'
import { NEEDS_ABI_6 } from './testing/excluded-rules.ts'
import { answering, probedFsrestrict } from './testing/probed-fsrestrict.ts'
import { inWorkspace } from './testing/run-inside.ts'

const AREAS =
  /^(?:a command cannot change|a command without a writable|a command cannot read|the network|other processes|sockets|outside files|network)/
const SLOW_MS = 120_000

const oldest = await probedFsrestrict({ run: answering(1) })
const beforeScopes = await probedFsrestrict({ run: answering(5) })
afterAll(() => {
  for (const { folder } of [oldest, beforeScopes]) rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!oldest.available)('fsrestrict with an older Landlock', () => {
  test('reports only the protection of its version', () => {
    expect(oldest.detail).toMatch(/^Landlock ABI 1: files; seccomp;/)
    expect(beforeScopes.detail).toMatch(/^Landlock ABI 5: files, TCP, device control; seccomp;/)
  })

  test('confines files, network and sockets in version 1, but not signals', { timeout: SLOW_MS }, async () => {
    const suite = { name: 'oldest', create: () => oldest.sandbox }
    const rules = Object.entries({ ...sandboxRules(suite), ...escapeRules(suite) }).filter(([rule]) => AREAS.test(rule))
    expect(rules.length).toBeGreaterThan(60)
    expect((await brokenRules(Object.fromEntries(rules))).toSorted()).toEqual(NEEDS_ABI_6)
  })

  test.each([
    ['by its path', 'truncate $ARGV[0], 0'],
    ['while opening it for reading', 'use Fcntl; sysopen my $f, $ARGV[0], O_RDONLY | O_TRUNC'],
  ])('refuses in version 1 to truncate a file %s, by the filter', async (_, script) => {
    const outside = mkdtempSync(join(tmpdir(), 'fsrestrict-outside-'))
    try {
      writeFileSync(join(outside, 'kept'), 'kept')
      await inWorkspace(oldest.sandbox, async ({ run, workspace }) => {
        writeFileSync(join(workspace, 'own'), 'own')
        await run('perl', ['-e', script, join(outside, 'kept')])
        await run('perl', ['-e', script, join(workspace, 'own')])
        await run('sh', ['-c', ': > emptied; echo new > own2'])
        expect(readFileSync(join(outside, 'kept'), 'utf8')).toBe('kept')
        expect(readFileSync(join(workspace, 'own'), 'utf8')).toBe('own')
        expect(readFileSync(join(workspace, 'own2'), 'utf8')).toBe('new\n')
      })
    } finally {
      rmSync(outside, { recursive: true })
    }
  })
})
