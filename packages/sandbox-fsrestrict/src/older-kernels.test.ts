/** The kernel here, asked for no more than an older one gives: what is promised there, and what is documented as not. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { escapeRules } from '@sluice/qa/escape'
import { brokenRules } from '@sluice/testkit/rules'
import { sandboxRules } from '@sluice/testkit/sandbox'
import { afterAll, describe, expect, test } from 'vitest'
import { NEEDS_ABI_6 } from './testing/left-out.ts'
import { inWorkspace } from './testing/run-inside.ts'
import { answering, subject } from './testing/subject.ts'

const AREAS =
  /^(?:a command cannot change|a command without a writable|a command cannot read|the network|other processes|sockets|outside files|network)/
const SLOW_MS = 120_000

const oldest = await subject({ run: answering(1) })
const beforeScopes = await subject({ run: answering(5) })
afterAll(() => {
  for (const { folder } of [oldest, beforeScopes]) rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!oldest.available)('an older Landlock', () => {
  test('says what it takes away, and no more', () => {
    expect(oldest.detail).toMatch(/^Landlock ABI 1: files; seccomp;/)
    expect(beforeScopes.detail).toMatch(/^Landlock ABI 5: files, TCP, device control; seccomp;/)
  })

  test('the first version holds files, network and sockets; of processes only signals get out', { timeout: SLOW_MS }, async () => {
    const suite = { name: 'oldest', create: () => oldest.sandbox }
    const rules = Object.entries({ ...sandboxRules(suite), ...escapeRules(suite) }).filter(([rule]) => AREAS.test(rule))
    expect(rules.length).toBeGreaterThan(60)
    expect((await brokenRules(Object.fromEntries(rules))).toSorted()).toEqual(NEEDS_ABI_6)
  })

  test.each([
    ['by a path', 'truncate $ARGV[0], 0'],
    ['while it opens it for reading', 'use Fcntl; sysopen my $f, $ARGV[0], O_RDONLY | O_TRUNC'],
  ])('the first version knows no truncating: the filter keeps a command from it %s', async (_, script) => {
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
