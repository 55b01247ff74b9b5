import { openPolicy } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import type { Snapshot } from '../features/snapshot.ts'
import { checkPolicyLevel, checkShell } from './check-config.ts'

const snapshotWith = (...allow: string[]): Snapshot => ({ channels: [{ name: 'mail', allow }] }) as unknown as Snapshot
const check = (policy: object, ...allow: string[]) =>
  checkPolicyLevel({ ...openPolicy, ...policy }, 'security.policy', snapshotWith(...allow))

test('names the setting that protects an agent at level full from unknown senders', () => {
  expect(check({}, 'ada', '*')).toMatchObject({ status: 'warn', fix: 'set [security.policy] ask_after_untrusted = true' })
  expect(check({ ask_after_untrusted: true }, '*')?.fix).toBe('set [security.policy] level = "supervised"')
  expect(check({}, 'ada')?.fix).toBe('set [security.policy] level = "supervised"')
  expect(check({ level: 'supervised' }, '*')).toBeUndefined()
})

test('says which commands the shell takes, and what makes them plain', () => {
  const shell = (policy: object, confines = true, ...reasons: string[]) =>
    checkShell({ ...openPolicy, level: 'supervised', ...policy }, 'security.policy', { reasons, confines })
  expect(shell({}, true, 'security.policy.allowed_commands')).toMatchObject({
    status: 'ok',
    detail: expect.stringMatching(
      /plain commands.*because `security\.policy\.allowed_commands` is set.*\[security\.policy] shell = "script"/,
    ),
  })
  expect(shell({ shell: 'script' })).toMatchObject({ status: 'ok', detail: 'runs scripts' })
  expect(shell({ shell: 'script' }, false).detail).toMatch(/plain commands until a sandbox works/)
  expect(shell({ shell: 'script', level: 'readonly' }).detail).toBe(
    'runs commands that only read, because [security.policy] level is "readonly"',
  )
  expect(shell({ shell: 'script', level: 'full' }, false).detail).toBe('runs scripts')
})
